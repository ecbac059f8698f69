package io.github.skewext.join

import io.github.skewext.join.InputRole.Required

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical._

/**
 * Plans the join of one large, required input with inputs that are small, or have a broadcast hint, as
 * broadcast joins. An example is a fact table with its dimensions on one key. The join returns only
 * keys of the large input, so the small ones can be broadcast and nothing is shuffled. Each optional
 * input becomes a left outer join, each required one an inner join, and each excluded one a left anti
 * join.
 *
 * With two large inputs a shuffle is necessary anyway, and the small ones add little to its cost.
 * Then the join stays one operator.
 */
object BroadcastSmallInputs {

  def unapply(join: MultiFullJoin): Option[LogicalPlan] = {
    val choices = PlannerChoices.of(join)
    val chosen = choices.streamed
    val large =
      if (chosen.isEmpty) choose(join)
      else {
        chosen.filter { large =>
          join.keepsBroadcasts(join.children.indices.filter(_ != large))
        }
      }
    large.map { large =>
      PlannerChoices.set(join, choices.copy(streamed = Some(large)))
      broadcastTo(large, join)
    }
  }

  private def choose(join: MultiFullJoin): Option[Int] = {
    val required = requiredOf(join)
    // Broadcasts would waste the shuffles that have already run.
    if (required.nonEmpty && join.indicator.isEmpty && join.hasExactKeys && !join.hasBegun) {
      val (hinted, others) = required.partition(join.strategyHint(_).contains(BROADCAST))
      val large = (if (others.isEmpty) hinted else others).maxBy(join.children(_).stats.sizeInBytes)
      val broadcast = join.children.indices.filter(_ != large)
      if (broadcast.nonEmpty && broadcast.forall(join.isSmall) && !join.asksForShuffle(large))
        Some(large)
      else None
    } else {
      None
    }
  }

  private def requiredOf(join: MultiFullJoin): Seq[Int] =
    join.roles.indices.filter(join.roles(_) == Required)

  /** Why the broadcast hint of an input of the operator has no effect. */
  def obstacle(join: MultiFullJoin, i: Int): String =
    if (requiredOf(join).forall(_ == i))
      "no other input is required, so its keys without a match are in the result"
    else if (join.indicator.isDefined) "the indicator needs all inputs in one operator"
    else if (!join.hasExactKeys) "keys that are equal may differ, as -0.0 and 0.0"
    else "another input is not broadcast, so all are shuffled"

  private def broadcastTo(large: Int, join: MultiFullJoin): LogicalPlan = {
    val others = join.children.indices.filter(_ != large)
    val filtered = RuntimeFilters.filtered(join, large, broadcastTo = Some(large))
    val joined = others.foldLeft(filtered) { (left, i) =>
      // Another broadcast may have begun before a shuffle has shown that this input is large.
      val hint =
        if (join.isBroadcast(i) || join.isSmall(i)) HintInfo(strategy = Some(BROADCAST))
        else HintInfo()
      val two = join.broadcastTo(left, join.keys(large), i, hint)
      JoinOrigin.set(two, JoinOrigin.Broadcasts(join))
      two
    }
    val keyOutput = join.keyOutput.zip(join.keyColumns(large)).map { case (out, value) =>
      Alias(value, out.name)(exprId = out.exprId, qualifier = out.qualifier)
    }
    Project(keyOutput ++ join.output.drop(keyOutput.size), joined)
  }
}
