package io.github.skewext.explain

import io.github.skewext.inputs.NewIds
import io.github.skewext.join.{JoinOrigin, MultiFullJoin}
import io.github.skewext.platform.{Guard, SkewConf}
import io.github.skewext.rewrite.RewriteJoinChains

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.exchange.ShuffleExchangeLike
import org.apache.spark.sql.internal.SQLConf

/** The exchanges that a rewrite would save, for joins of a session in which it is off. */
private[explain] object PossibleRewrite {

  def adviceOn(found: PlannedJoin, session: SparkSession): Option[String] =
    Guard.protect("looking for a rewrite", Option.empty[String]) {
      val (now, fewer) = exchangesOf(found)
      if (fewer < now) {
        rewritten(found, session).map { case (joins, join) =>
          s"$joins on ${NewIds.shownNames(join.keyOutput).mkString("[", ", ", "]")} take $now exchanges; " +
            s"as one operator of skewext they would take $fewer."
        }
      } else {
        None
      }
    }

  /** The joins as one operator, if the rewrite would apply to all of them. */
  private def rewritten(
      found: PlannedJoin,
      session: SparkSession): Option[(String, MultiFullJoin)] = {
    val conf = session.sessionState.conf.clone()
    conf.setConf(SkewConf.MULTI_JOIN_REWRITE, true)
    found.joins.head.logical
      .flatMap { top =>
        val plan =
          SQLConf.withExistingConf(conf)(RewriteJoinChains(Origins.withoutStages(top)))
        plan.collectFirst {
          case join: MultiFullJoin if join.children.size == found.inputs.size => join
        }
      }
      .flatMap(join => JoinOrigin.rewrittenFrom(join).map(_ -> join))
  }

  /** The exchanges of Spark's joins, and those of them that are on the inputs. */
  private def exchangesOf(found: PlannedJoin): (Int, Int) = {
    def number(children: Seq[SparkPlan]): Int =
      children.flatMap(PlannedJoin.pathFrom).count(_.isInstanceOf[ShuffleExchangeLike])
    (number(found.joins.flatMap(_.plan.children)), number(found.inputs))
  }
}
