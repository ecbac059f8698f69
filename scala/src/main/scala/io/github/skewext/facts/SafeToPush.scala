package io.github.skewext.facts

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.catalyst.trees.TreePattern.{CTE, INVOKE}
import org.apache.spark.sql.internal.SQLConf

/**
 * Whether a predicate on an expression over a plan may be added above the plan, given how far Spark
 * pushes it down. Spark replaces columns by the expressions that compute them, and does not check
 * whether these may fail:
 * {{{
 * Filter (k = 5)                         Project (CAST(s AS INT) AS k)
 * +- Project (CAST(s AS INT) AS k)       +- Join (s = t)
 *    +- Join (s = t)                =>      :- Filter (CAST(s AS INT) = 5)    fails for 'abc'
 *       :- raw (s)                          :  +- raw (s)
 *       +- valid (t)                        +- valid (t)
 * }}}
 * So no node below the expression, and none below the expressions of its columns, may drop rows if
 * the expression is not [[SafeToDuplicate]]. A filter may drop rows: Spark evaluates its predicate
 * before those that were above it. But below an aggregate or a window, it pushes only those on the
 * grouping columns, and not `count(*) > 1`.
 */
private[skewext] object SafeToPush {

  def apply(plan: LogicalPlan, e: Expression): Boolean = {
    val tables = if (plan.containsPattern(CTE)) {
      plan.collect { case table: CTERelationDef => table.id -> table.child }.toMap
    } else {
      Map.empty[Long, LogicalPlan]
    }
    new SafeToPush(tables).isSafe(plan, e.references, SafeToDuplicate(e), filtered = false)
  }

  /** The columns of a child that are the columns of a plan, by their positions. */
  def sameColumns(plan: LogicalPlan, child: LogicalPlan, columns: AttributeSet): AttributeSet =
    AttributeSet(plan.output.zip(child.output).collect {
      case (column, same) if columns.contains(column) => same
    })

  /** Whether Spark evaluates the condition before predicates that it pushes down to it. */
  private def isFirst(condition: Expression, child: LogicalPlan): Boolean = !condition.exists {
    // Subqueries may become joins above the other predicates, and Python's functions are computed
    // above them.
    case _: SubqueryExpression | _: UserDefinedExpression => true
    case _ => false
  } && !ComputedBelow.isExpensive(child, condition.references)
}

/** @param tables the plans of common table expressions by id */
private class SafeToPush(tables: Map[Long, LogicalPlan]) {
  import SafeToPush.sameColumns

  /**
   * @param columns the columns of the plan that the expressions above it read.
   * @param anywhere whether these expressions may be evaluated for rows that nodes below drop.
   * @param filtered whether there is a filter above.
   */
  def isSafe(
      plan: LogicalPlan,
      columns: AttributeSet,
      anywhere: Boolean,
      filtered: Boolean): Boolean = plan match {
    case Project(list, child) => isSafeBelow(list, child, columns, anywhere, filtered)
    case groups: Aggregate =>
      val list = groups.aggregateExpressions
      isSafeBelow(list, groups.child, columns, anywhere, filtered, staysAbove = filtered)
    case Filter(condition, child) if SafeToPush.isFirst(condition, child) =>
      isSafe(child, columns, anywhere, filtered = true)
    case window: Window =>
      (anywhere || !filtered) && isSafe(window.child, columns, anywhere, filtered)
    case _: SubqueryAlias | _: View | _: ResolvedHint | _: Sort | _: RepartitionOperation |
        _: RebalancePartitions | _: Distinct =>
      isSafe(plan.children.head, columns, anywhere, filtered)
    case union: Union =>
      union.children.forall { child =>
        isSafe(child, sameColumns(union, child, columns), anywhere, filtered)
      }
    case WithCTE(query, _) => isSafe(query, columns, anywhere, filtered)
    case ref: CTERelationRef =>
      // The query around the plan defines other tables. If one computes the column by an expression
      // that may fail, that is not seen.
      tables.get(ref.cteId).fold(anywhere || !SQLConf.get.ansiEnabled) { table =>
        val others = new SafeToPush(tables - ref.cteId)
        others.isSafe(table, sameColumns(ref, table, columns), anywhere, filtered)
      }
    case _: LeafNode => true
    case other =>
      anywhere && other.children.forall { child =>
        val own = columns.filter(child.outputSet.contains)
        own.isEmpty || isSafe(child, own, anywhere, filtered)
      }
  }

  /** @param staysAbove whether a filter above may stay above the node. */
  private def isSafeBelow(
      list: Seq[NamedExpression],
      child: LogicalPlan,
      columns: AttributeSet,
      anywhere: Boolean,
      filtered: Boolean,
      staysAbove: Boolean = false): Boolean = {
    val computed = list.collect { case a: Alias if columns.contains(a.toAttribute) => a }
    // Predicates on aggregates stay above.
    val values = computed.map(_.child).filterNot(_.exists(_.isInstanceOf[AggregateExpression]))
    val below = (columns -- computed.map(_.toAttribute)) ++
      AttributeSet.fromAttributeSets(values.map(_.references))
    val safe = anywhere && values.forall(SafeToDuplicate(_))
    (safe || !staysAbove) && isSafe(child, below, safe, filtered)
  }
}

/**
 * Whether a predicate on the key may be evaluated in every input. Other predicates stay in their
 * place, or go into one required input:
 *
 *  - A user-defined function may be arbitrarily slow, and would run on every row of every input.
 *  - A predicate that may fail would be evaluated for keys that other inputs or predicates drop.
 *    Outside of ANSI mode, most expressions return null in place of an error.
 */
private[skewext] object SafeToDuplicate {
  def apply(predicate: Expression): Boolean =
    !predicate.containsPattern(INVOKE) &&
      !predicate.exists(e => e.isInstanceOf[UserDefinedExpression] || e.isInstanceOf[RaiseError]) &&
      (CannotFail(predicate) ||
        (!SQLConf.get.ansiEnabled && !predicate.exists(CannotFail.failsInEachMode)))
}

/**
 * The predicates that rules have added to the inputs of a join. Each is added once: the optimizer may
 * simplify it beyond recognition, and the next run of a rule would add it again, and again.
 */
object AddedPredicates {

  private val tag = TreeNodeTag[Map[Int, ExpressionSet]]("skewext.addedPredicates")

  /** The predicates that were added, by the number of the input. */
  private def of(join: LogicalPlan): Map[Int, ExpressionSet] =
    join.getTagValue(tag).getOrElse(Map.empty)

  def has(join: LogicalPlan, input: Int, predicate: Expression): Boolean =
    of(join).get(input).exists(_.contains(predicate))

  /** Records predicates, beside those that the join has by the tags of its earlier form. */
  def record(join: LogicalPlan, added: Map[Int, Seq[Expression]]): Unit = {
    val before = of(join)
    val now = added.map { case (i, predicates) =>
      i -> ExpressionSet(before.get(i).toSeq.flatten ++ predicates)
    }
    join.setTagValue(tag, before ++ now)
  }

  /** For a join with other inputs: numbers have another meaning. */
  def forget(join: LogicalPlan): Unit = join.unsetTagValue(tag)
}
