package io.github.skewext.join.optimizer

import io.github.skewext.join.MultiFullJoin

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.optimizer.NestedColumnAliasing
import org.apache.spark.sql.catalyst.plans.LeftSemiOrAnti
import org.apache.spark.sql.catalyst.plans.logical.{Filter, Join, LogicalPlan, Project}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern.{EXTRACT_VALUE, JOIN}

/**
 * Extracts fields of structs below a join instead of above it, if only some fields are used. The
 * others are then neither shuffled nor read from columnar files. Spark's `NestedColumnAliasing`
 * does the same for the nodes that it supports:
 * {{{
 * Project [s.a]                 Project [_extract_a]
 * +- MultiFullJoin         =>   +- MultiFullJoin
 *    :- input [k, s]               :- Project [k, s.a AS _extract_a]
 *                                  :  +- input [k, s]
 * }}}
 * If an input lacks the key, its struct is null, and so is each field of it.
 */
object PruneNestedColumns extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = if (conf.nestedSchemaPruningEnabled) {
    plan.transformWithPruning(_.containsAllPatterns(EXTRACT_VALUE, JOIN)) {
      case project @ Project(list, join: MultiFullJoin) =>
        pruned(join, list) { (extracted, below) =>
          Project(replaced(list, extracted), below)
        }.getOrElse(project)
      // Handles both nodes together. Spark's rules for filters would remove a projection between
      // them.
      case project @ Project(list, filter @ Filter(condition, join: MultiFullJoin)) =>
        pruned(join, list :+ condition) { (extracted, below) =>
          val asked = replaced(Seq(condition), extracted).head
          Project(replaced(list, extracted), filter.copy(condition = asked, child = below))
        }.getOrElse(project)
      // Spark alternately moves these joins below projections and adds projections below them. So
      // the fields would reach the multi-way join only after the last run of Spark's rules for
      // them.
      case project @ Project(list, SemiJoined(semi, join)) =>
        pruned(join, list ++ semi.condition) { (extracted, below) =>
          val condition = replaced(semi.condition.toSeq, extracted).headOption
          Project(replaced(list, extracted), semi.copy(left = below, condition = condition))
        }.getOrElse(project)
    }
  } else {
    plan
  }

  /**
   * A semi or anti join whose left side is a multi-way join, or some columns of one. The other side
   * has none of the columns that are not selected.
   */
  private object SemiJoined {
    def unapply(plan: LogicalPlan): Option[(Join, MultiFullJoin)] = plan match {
      case semi @ Join(join: MultiFullJoin, _, LeftSemiOrAnti(_), _, _) => Some((semi, join))
      case semi @ Join(Project(list, join: MultiFullJoin), _, LeftSemiOrAnti(_), _, _)
          if list.forall(_.isInstanceOf[Attribute]) &&
            join.outputSet.intersect(semi.right.outputSet).isEmpty =>
        Some((semi, join))
      case _ => None
    }
  }

  private def pruned(join: MultiFullJoin, used: Seq[Expression])(
      above: (Map[Expression, Alias], LogicalPlan) => LogicalPlan): Option[LogicalPlan] = {
    // Structs that the join itself reads as keys are kept whole. Columns of no input are produced
    // by the join, or are of the other side of a semi or anti join above.
    val others = AttributeSet(used) -- join.children.flatMap(_.output)
    val fields =
      NestedColumnAliasing.getAttributeToExtractValues(used ++ join.expressions, others.toSeq)
    if (fields.isEmpty) {
      None
    } else {
      val aliases = fields.toSeq.map { case (column, extracts) =>
        column -> extracts.map(e => e.canonicalized -> Alias(e, s"_extract_${nameOf(e)}")())
      }
      val aliasesOf = AttributeMap(aliases.map { case (c, all) => c -> all.map(_._2) })
      val children = join.children.map { child =>
        if (child.output.exists(aliasesOf.contains)) {
          Project(child.output.flatMap(a => aliasesOf.getOrElse(a, Seq(a))), child)
        } else {
          child
        }
      }
      Some(above(aliases.flatMap(_._2).toMap, join.withInputs(children)))
    }
  }

  private def replaced[E <: Expression](
      expressions: Seq[E],
      extracted: Map[Expression, Alias]): Seq[E] = {
    expressions.map(_.transform {
      case e: ExtractValue if extracted.contains(e.canonicalized) =>
        extracted(e.canonicalized).toAttribute
    }.asInstanceOf[E])
  }

  private def nameOf(field: ExtractValue): String = field match {
    case f: GetStructField => f.extractFieldName
    case f: GetArrayStructFields => f.field.name
    case other => other.prettyName
  }
}
