package io.github.skewext.join.optimizer

import io.github.skewext.join.UnorderedInputs

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.optimizer.NestedColumnAliasing
import org.apache.spark.sql.catalyst.plans.LeftSemiOrAnti
import org.apache.spark.sql.catalyst.plans.logical.{Filter, Join, LogicalPlan, Project}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern.{EXTRACT_VALUE, JOIN}

/**
 * Extracts fields of structs below a multi-way join, an as-of join or latest rows instead of above
 * it, if only some fields are used. The others are then neither shuffled nor read from columnar
 * files. Spark's `NestedColumnAliasing` does the same for the nodes that it supports:
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
      case project @ Project(list, node: UnorderedInputs) =>
        pruned(node, list) { (extracted, below) =>
          Project(replaced(list, extracted), below)
        }.getOrElse(project)
      // Handles both nodes together. Spark's rules for filters would remove a projection between
      // them.
      case project @ Project(list, filter @ Filter(condition, node: UnorderedInputs)) =>
        pruned(node, list :+ condition) { (extracted, below) =>
          val asked = replaced(Seq(condition), extracted).head
          Project(replaced(list, extracted), filter.copy(condition = asked, child = below))
        }.getOrElse(project)
      // Spark alternately moves these joins below projections and adds projections below them. So
      // the fields would reach the node below only after the last run of Spark's rules for
      // them.
      case project @ Project(list, SemiJoined(semi, node)) =>
        pruned(node, list ++ semi.condition) { (extracted, below) =>
          val condition = replaced(semi.condition.toSeq, extracted).headOption
          Project(replaced(list, extracted), semi.copy(left = below, condition = condition))
        }.getOrElse(project)
    }
  } else {
    plan
  }

  /**
   * A semi or anti join whose left side is such a node, or some columns of one. The other side has
   * none of the columns that are not selected.
   */
  private object SemiJoined {
    def unapply(plan: LogicalPlan): Option[(Join, UnorderedInputs)] = plan match {
      case semi @ Join(node: UnorderedInputs, _, LeftSemiOrAnti(_), _, _) => Some((semi, node))
      case semi @ Join(Project(list, node: UnorderedInputs), _, LeftSemiOrAnti(_), _, _)
          if list.forall(_.isInstanceOf[Attribute]) &&
            node.outputSet.intersect(semi.right.outputSet).isEmpty =>
        Some((semi, node))
      case _ => None
    }
  }

  private def pruned(node: UnorderedInputs, used: Seq[Expression])(
      above: (Map[Expression, Alias], LogicalPlan) => LogicalPlan): Option[LogicalPlan] = {
    // Structs that the node itself reads as keys are kept whole. Columns of no input are produced
    // by the node, or are of the other side of a semi or anti join above.
    val others = AttributeSet(used) -- node.children.flatMap(_.output)
    val fields =
      NestedColumnAliasing.getAttributeToExtractValues(used ++ node.expressions, others.toSeq)
    if (fields.isEmpty) {
      None
    } else {
      val aliases = fields.toSeq.map { case (column, extracts) =>
        column -> extracts.map(e => e.canonicalized -> Alias(e, s"_extract_${nameOf(e)}")())
      }
      val aliasesOf = AttributeMap(aliases.map { case (c, all) => c -> all.map(_._2) })
      val children = node.children.map { child =>
        if (child.output.exists(aliasesOf.contains)) {
          Project(child.output.flatMap(a => aliasesOf.getOrElse(a, Seq(a))), child)
        } else {
          child
        }
      }
      val extracted = aliases.flatMap(_._2).toMap
      val below = node.withNewChildren(children).transformExpressions(byColumn(extracted))
      Some(above(extracted, below))
    }
  }

  private def replaced[E <: Expression](
      expressions: Seq[E],
      extracted: Map[Expression, Alias]): Seq[E] =
    expressions.map(_.transform(byColumn(extracted)).asInstanceOf[E])

  /**
   * Replaces the extraction of a field by the column of the input that has it. One above an outer join
   * may be null where one below it cannot.
   */
  private def byColumn(
      extracted: Map[Expression, Alias]): PartialFunction[Expression, Expression] = {
    case e: ExtractValue if extracted.contains(e.canonicalized) =>
      extracted(e.canonicalized).toAttribute.withNullability(e.nullable)
  }

  private def nameOf(field: ExtractValue): String = field match {
    case f: GetStructField => f.extractFieldName
    case f: GetArrayStructFields => f.field.name
    case other => other.prettyName
  }
}
