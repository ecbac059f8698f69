package io.github.skewext.asof

import io.github.skewext.facts.{AddedPredicates, ComparedByBytes, KeptInPlace, SafeToDuplicate, SafeToPush}
import io.github.skewext.latest.LatestRows

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern.JOIN

/**
 * Pushes predicates on keys below [[LatestRows]], because all rows of a key have the same key. Pushes
 * predicates on columns of the spine below a [[MultiAsOfJoin]], and those on its key into all
 * inputs:
 * {{{
 * Filter (k = 5 AND a > 1 AND v > 1)     Filter (v > 1)
 * +- MultiAsOfJoin [k]               =>  +- MultiAsOfJoin [k]
 *    :- spine (k, a)                        :- Filter (k = 5 AND a > 1)
 *    +- versions (k, v)                     :  +- spine
 *                                           +- Filter (k = 5)
 *                                              +- versions
 * }}}
 * A predicate on the versions stays above: with other versions, a row would get another one.
 */
object PushAsOfPredicates extends Rule[LogicalPlan] with PredicateHelper {

  override def apply(plan: LogicalPlan): LogicalPlan =
    plan.transformUpWithPruning(_.containsPattern(JOIN)) {
      case filter @ Filter(_, join: MultiAsOfJoin) =>
        pushed(filter, join.spine.outputSet) { below =>
          val spine = Filter(below, join.spine)
          join.withNewChildren(spine +: join.children.tail) match {
            case filtered: MultiAsOfJoin => withKeyPredicates(filtered)
          }
        }
      case filter @ Filter(_, latest: LatestRows) =>
        val keys = latest.keys.collect { case key: Attribute if ComparedByBytes(key) => key }
        pushed(filter, AttributeSet(keys)) { below =>
          latest.copy(child = Filter(below, latest.child))
        }
      case join: MultiAsOfJoin => withKeyPredicates(join)
    }

  /** The node with the predicates that read only these columns, below those that read others. */
  private def pushed(filter: Filter, columns: AttributeSet)(
      put: Expression => LogicalPlan): LogicalPlan = {
    val (below, above) = splitConjunctivePredicates(filter.condition).partition { p =>
      p.deterministic && p.references.nonEmpty && p.references.subsetOf(columns) &&
      !SubqueryExpression.hasCorrelatedSubquery(p)
    }
    below.reduceOption(And).fold[LogicalPlan](filter) { predicate =>
      val node = put(predicate)
      above.reduceOption(And).fold(node)(Filter(_, node))
    }
  }

  private def withKeyPredicates(join: MultiAsOfJoin): LogicalPlan = {
    def keysOf(input: Int) = AttributeMap(join.keys.head.zip(join.keys(input)).collect {
      case (column: Attribute, key) if ComparedByBytes(column) => column -> key
    })
    val onKeys = AttributeSet(keysOf(0).keys)
    val added = join.spine.constraints.toSeq.filter { p =>
      p.references.nonEmpty && p.references.subsetOf(onKeys) && !p.isInstanceOf[IsNotNull] &&
      SafeToDuplicate(p) && !SubqueryExpression.hasSubquery(p) && !AddedPredicates.has(join, 0, p)
    }
    if (added.isEmpty) {
      join
    } else {
      val versions = join.children.indices.tail.map { i =>
        val keyOf = keysOf(i)
        val onKey = added
          .map(_.transform { case a: Attribute => keyOf.getOrElse(a, a) })
          .filter(SafeToPush(join.children(i), _))
        KeptInPlace.filtered(join.children(i), onKey, keyOf.values.flatMap(_.references).toSeq)
      }
      val filtered = join.withNewChildren(join.spine +: versions)
      AddedPredicates.record(filtered, Map(0 -> added))
      filtered
    }
  }
}
