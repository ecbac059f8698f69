package io.github.skewext.technique

import io.github.skewext.facts.ComparedByBytes

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern.FILTER

/**
 * Pushes predicates on one side of a salted join below its salts, towards the scan. All copies of a
 * row are equal, so this is correct for rows without markers. A marker represents several rows by
 * their key alone. With markers, only predicates on key columns can be pushed, and only on columns
 * whose equal values are identical.
 */
object PushThroughSaltKeys extends Rule[LogicalPlan] with PredicateHelper {

  override def apply(plan: LogicalPlan): LogicalPlan =
    plan.transformDownWithPruning(_.containsPattern(FILTER)) {
      case filter @ Filter(condition, salts: SaltKeys) =>
        val columns = movable(salts)
        val (below, above) = splitConjunctivePredicates(condition).partition { predicate =>
          predicate.deterministic && predicate.references.subsetOf(columns)
        }
        if (below.isEmpty) {
          filter
        } else {
          val salted = salts.copy(child = Filter(below.reduce(And), salts.child))
          above.reduceOption(And).map(Filter(_, salted)).getOrElse(salted)
        }
    }

  private def movable(salts: SaltKeys): AttributeSet =
    if (salts.hotRows == HotRows.Shown) salts.child.outputSet
    else AttributeSet(salts.keys.collect { case a: Attribute if ComparedByBytes(a) => a })
}
