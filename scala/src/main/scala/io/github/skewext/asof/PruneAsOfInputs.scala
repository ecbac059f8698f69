package io.github.skewext.asof

import io.github.skewext.asof.exec.AsOfJoinExec
import io.github.skewext.facts.ComparedByBytes
import io.github.skewext.latest.LatestRows

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{CollectMetrics, Filter, LogicalPlan, Project}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern.JOIN
import org.apache.spark.sql.execution.{CodegenSupport, ProjectExec, SparkPlan}
import org.apache.spark.sql.types.StructType

/**
 * Removes from as-of joins and latest rows what the query does not read:
 *
 *  - a table of versions, from a left join: the rows of the spine do not depend on it;
 *  - columns at the end of the order that decides between versions of one time. A column of an order
 *    cannot change the values of the columns before it;
 *  - for the same reason, fields at the end of a struct that is the last column of such an order.
 *
 * By default all columns decide, so Spark alone would read them all.
 */
object PruneAsOfInputs extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan =
    plan.transformUpWithPruning(_.containsPattern(JOIN)) { case above: Project =>
      above.copy(child = pruned(above.child, above.projectList))
    }

  /** @param used the expressions that read columns of the plan. */
  private def pruned(plan: LogicalPlan, used: Seq[Expression]): LogicalPlan = plan match {
    case filter: Filter =>
      filter.copy(child = pruned(filter.child, used :+ filter.condition))
    case latest: LatestRows =>
      latest.copy(order = shortened(latest.order, latest.child, used, latest.keys))
    case join: MultiAsOfJoin =>
      val read = AttributeSet(used)
      val tables = join.children.indices.tail.filter { i =>
        join.inner || join.children(i).outputSet.exists(read.contains) ||
        isObserved(join.children(i))
      }
      if (tables.isEmpty) join.spine else withTables(join, tables, used)
    case other => other
  }

  /** The query reports metrics of such a table. */
  private def isObserved(table: LogicalPlan): Boolean = table.exists(_.isInstanceOf[CollectMetrics])

  private def withTables(
      join: MultiAsOfJoin,
      tables: Seq[Int],
      used: Seq[Expression]): MultiAsOfJoin = {
    val kept = join.only(tables)
    val pruned = kept.copy(ties = kept.ties.indices.map { i =>
      val same = kept.keys(i + 1) :+ kept.times(i + 1)
      shortened(kept.ties(i), kept.children(i + 1), used, same)
    })
    pruned.copyTagsFrom(join)
    pruned
  }

  /**
   * The beginning of an order, up to the last column that is read. The rest is needed if equal values
   * of such a column may differ, like 0.0 and -0.0.
   *
   * @param same expressions that are equal in all rows which the order compares.
   */
  private def shortened(
      order: Seq[SortOrder],
      input: LogicalPlan,
      used: Seq[Expression],
      same: Seq[Expression]): Seq[SortOrder] = {
    val read = AttributeSet(used)
    val decided = AttributeSet(same.collect { case a: Attribute if ComparedByBytes(a) => a })
    val open = input.outputSet.filter(read.contains) -- decided
    // In one pass, because a wide table's order has all its columns.
    val left = order.scanLeft(open.map(_.exprId).toSet) {
      case (ids, SortOrder(a: Attribute, _, _, _)) if ComparedByBytes.isExact(a.dataType) =>
        ids - a.exprId
      case (ids, _) => ids
    }
    val (needed, rest) = left.span(_.nonEmpty)
    order.take(needed.size) match {
      case before :+ last if rest.nonEmpty => before ++ byFields(last, used)
      case whole => whole
    }
  }

  /**
   * The order by a struct's fields up to the last one that is read, in place of the order by the
   * struct. A null struct has the place of one whose fields are null.
   */
  private def byFields(order: SortOrder, used: Seq[Expression]): Seq[SortOrder] = order match {
    case SortOrder(column: Attribute, direction, nulls, _)
        if nulls == direction.defaultNullOrdering =>
      (column.dataType, fieldsOf(used, column)) match {
        case (struct: StructType, Some(read)) if read.nonEmpty && read.max < struct.size - 1 =>
          (0 to read.max).map(i => SortOrder(GetStructField(column, i), direction))
        case _ => Seq(order)
      }
    case _ => Seq(order)
  }

  /** The fields of a struct that the expressions read, or none if one reads the whole struct. */
  private def fieldsOf(expressions: Seq[Expression], column: Attribute): Option[Set[Int]] =
    expressions.foldLeft(Option(Set.empty[Int])) {
      case (Some(fields), GetStructField(a: Attribute, i, _)) if a.exprId == column.exprId =>
        Some(fields + i)
      case (Some(_), a: Attribute) if a.exprId == column.exprId => None
      case (Some(fields), e) => fieldsOf(e.children, column).map(fields ++ _)
      case _ => None
    }
}

/**
 * Lets an as-of join select the columns of the projection above it, which drops the keys of the
 * versions. The join copies adjacent columns at once. Not below generated code, which reads the
 * columns that it needs without a row.
 */
object SelectAsOfColumns extends Rule[SparkPlan] {

  override def apply(plan: SparkPlan): SparkPlan = plan match {
    case project @ ProjectExec(list, join: AsOfJoinExec) => join.showing(list).getOrElse(project)
    case generated: CodegenSupport if generated.supportCodegen => plan
    case _ => plan.mapChildren(apply)
  }
}
