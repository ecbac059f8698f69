package io.github.skewext.asof

import io.github.skewext.stable.ComparedByBytes

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet, Expression, SortOrder}
import org.apache.spark.sql.catalyst.plans.logical.{CollectMetrics, Filter, LogicalPlan, Project}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern.JOIN

/**
 * Removes from as-of joins and latest rows what the query does not read:
 *
 *  - a table of versions, from a left join: the rows of the spine do not depend on it;
 *  - columns at the end of the order that decides between versions of one time. A column of an order
 *    cannot change the values of the columns before it.
 *
 * By default all columns decide, so Spark alone would read them all.
 */
object PruneAsOfInputs extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan =
    plan.transformUpWithPruning(_.containsPattern(JOIN)) { case above: Project =>
      above.copy(child = pruned(above.child, above.references))
    }

  private def pruned(plan: LogicalPlan, read: AttributeSet): LogicalPlan = plan match {
    case filter: Filter => filter.copy(child = pruned(filter.child, read ++ filter.references))
    case latest: LatestRows =>
      latest.copy(order = shortened(latest.order, latest.child, read, latest.keys))
    case join: MultiAsOfJoin =>
      val tables = join.children.indices.tail.filter { i =>
        join.inner || join.children(i).outputSet.exists(read.contains) ||
        isObserved(join.children(i))
      }
      if (tables.isEmpty) join.spine else withTables(join, tables, read)
    case other => other
  }

  /** The query reports metrics of such a table. */
  private def isObserved(table: LogicalPlan): Boolean = table.exists(_.isInstanceOf[CollectMetrics])

  private def withTables(
      join: MultiAsOfJoin,
      tables: Seq[Int],
      read: AttributeSet): MultiAsOfJoin = {
    val kept = join.only(tables)
    val pruned = kept.copy(ties = kept.ties.indices.map { i =>
      val same = kept.keys(i + 1) :+ kept.times(i + 1)
      shortened(kept.ties(i), kept.children(i + 1), read, same)
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
      read: AttributeSet,
      same: Seq[Expression]): Seq[SortOrder] = {
    val decided = AttributeSet(same.collect { case a: Attribute if ComparedByBytes(a) => a })
    val open = input.outputSet.filter(read.contains) -- decided
    // In one pass, because a wide table's order has all its columns.
    val left = order.scanLeft(open.map(_.exprId).toSet) {
      case (ids, SortOrder(a: Attribute, _, _, _)) if ComparedByBytes.isExact(a.dataType) =>
        ids - a.exprId
      case (ids, _) => ids
    }
    order.take(left.takeWhile(_.nonEmpty).size)
  }
}
