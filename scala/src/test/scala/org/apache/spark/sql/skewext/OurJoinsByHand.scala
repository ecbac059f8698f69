package org.apache.spark.sql.skewext

import io.github.skewext.facts.BuiltinShuffledJoin
import io.github.skewext.join.probe.BuildProbeJoinExec
import io.github.skewext.sparktests.{JoinCount, SparkSuite}

import org.apache.spark.sql.execution.{SparkPlan, SparkPlanTest}
import org.apache.spark.sql.{DataFrame, Row}

/** For a suite that puts Spark's operators into plans by hand: ours is there instead. */
trait OurJoinsByHand extends SparkPlanTest with SparkSuite {

  override protected def checkAnswer2(
      left: DataFrame,
      right: DataFrame,
      planFunction: (SparkPlan, SparkPlan) => SparkPlan,
      expectedAnswer: Seq[Row],
      sortAnswers: Boolean): Unit =
    super.checkAnswer2(
      left,
      right,
      (l, r) => JoinCount(withOurs(planFunction(l, r))),
      expectedAnswer,
      sortAnswers)

  private def withOurs(plan: SparkPlan): SparkPlan = plan.transformUp {
    case BuiltinShuffledJoin(j) =>
      BuildProbeJoinExec(j.leftKeys, j.rightKeys, j.joinType, j.condition, j.left, j.right)
  }
}
