package io.github.skewext.join

import io.github.skewext.facts.ComparedByBytes
import io.github.skewext.join.InputRole.Required
import io.github.skewext.platform.SkewConf

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.internal.SQLConf

/**
 * Plans the join of one large, required input with small inputs as broadcast joins. An example is a
 * fact table with its dimensions on one key. The join returns only keys of the large input, so the
 * small ones can be broadcast and nothing is shuffled. Each optional input becomes a left outer
 * join, each required one an inner join, and each excluded one a left anti join.
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
          join.keepsBroadcasts(join.children.indices.filter(_ != large))(isSmall(join, _))
        }
      }
    large.map { large =>
      PlannerChoices.set(join, choices.copy(streamed = Some(large)))
      broadcastTo(large, join)
    }
  }

  /** As in Spark's own joins, a hint goes before sizes. */
  private def isSmall(join: MultiFullJoin, i: Int): Boolean =
    join.isBelowThreshold(i) && join.strategyHint(i).forall(_ == BROADCAST)

  private def choose(join: MultiFullJoin): Option[Int] = {
    val conf = SQLConf.get
    val required = join.roles.indices.filter(join.roles(_) == Required)
    if (conf.getConf(SkewConf.MULTI_JOIN_BROADCAST) && required.nonEmpty && showsLargesKeys(join) &&
      // Broadcasts would waste the shuffles that have already run.
      !join.hasBegun) {
      val large = required.maxBy(join.children(_).stats.sizeInBytes)
      val others = join.children.indices.filter(_ != large)
      if (others.nonEmpty && others.forall(isSmall(join, _)) && !join.asksForShuffle(large))
        Some(large)
      else None
    } else {
      None
    }
  }

  /** Whether the join may return the key values of the large input, and has no indicator. */
  private def showsLargesKeys(join: MultiFullJoin): Boolean =
    join.indicator.isEmpty && join.keys == join.keyColumns &&
      join.keys.forall(_.forall(ComparedByBytes(_)))

  private def broadcastTo(large: Int, join: MultiFullJoin): LogicalPlan = {
    val others = join.children.indices.filter(_ != large)
    val filtered = RuntimeFilters.filtered(join, large, broadcastTo = Some(large))
    val joined = others.foldLeft(filtered) { (left, i) =>
      // Another broadcast may have begun before a shuffle has shown that this input is large.
      val hint =
        if (join.isBroadcast(i) || isSmall(join, i)) HintInfo(strategy = Some(BROADCAST))
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
