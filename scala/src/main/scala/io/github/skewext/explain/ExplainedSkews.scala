package io.github.skewext.explain

import io.github.skewext.facts.BuiltinShuffledJoin
import io.github.skewext.join.exec.{MultiJoinExec, SpineJoinExec}
import io.github.skewext.join.probe.BuildProbeJoinExec
import io.github.skewext.platform.{LoadedExtension, SkewConf}
import io.github.skewext.skew.plan.{SkewReason, SkewSplits}
import io.github.skewext.skew.run.{SplitOperator, SplitReadSpecs}

import org.apache.spark.sql.execution.{PartialReducerPartitionSpec, SparkPlan}
import org.apache.spark.sql.internal.SQLConf

/** Whether the partitions of an operator were split, and the reason if they were not. */
private[skewext] object ExplainedSkews {

  /**
   * @param adaptive whether the plan has run; None if it is not adaptive.
   * @param loaded whether the session has the adaptive rules.
   */
  def of(
      join: SparkPlan,
      adaptive: Option[Boolean],
      loaded: Boolean,
      conf: SQLConf): Option[ExplainedSkew] =
    ofKeys(join, adaptive, loaded, conf).map { skew =>
      val nulls = if (loaded) ExplainedNullKeys.ofSource(join, adaptive.isDefined, conf) else None
      skew.copy(
        text = (skew.text +: nulls.toSeq).mkString("; "),
        metric = join.metrics.values.map(_.id).reduceOption(_ min _))
    }

  /** The reads of parts of partitions of a join that remains itself when it is split. */
  private def slices(join: BuildProbeJoinExec): Seq[PartialReducerPartitionSpec] =
    join.children.flatMap(SplitReadSpecs.readsOf(_)).collect {
      case part: PartialReducerPartitionSpec => part
    }

  private def ofKeys(
      join: SparkPlan,
      adaptive: Option[Boolean],
      loaded: Boolean,
      conf: SQLConf): Option[ExplainedSkew] = {
    val name = Operators.nameOf(join)
    join match {
      case SplitOperator(splits) =>
        Some(split(name, splits, join.isInstanceOf[SpineJoinExec]))
      case join: BuildProbeJoinExec if join.isSkewJoin && slices(join).nonEmpty =>
        val partitions = slices(join).map(_.reducerIndex).distinct.size
        val pieces = slices(join).size
        val what = if (partitions == 1) "1 partition" else s"$partitions partitions"
        Some(
          ExplainedSkew(name, ExplainedSkew.Split, s"$what in $pieces pieces", partitions, pieces))
      case BuiltinShuffledJoin(join) if join.isSkewJoin =>
        // Such a join has the same tasks as the split join below it.
        val how =
          if (join.exists(SplitOperator.unapply(_).isDefined)) "as the join below is"
          else SkewReason.SplitBySpark.text
        Some(ExplainedSkew(name, ExplainedSkew.Split, how))
      case _: MultiJoinExec | _: SpineJoinExec | BuiltinShuffledJoin(_) =>
        Some(notSplit(name, SkewReason.of(join), adaptive, loaded, conf))
      case _ => None
    }
  }

  private def split(name: String, splits: SkewSplits, isSpine: Boolean): ExplainedSkew = {
    val marked = if (isSpine) "found candidates" else "marked keys"
    val advice = splits.limit.map(_.reason).filter(_ != SkewReason.LittleGain).map(_.advice)
    val after = splits.markingTasks match {
      case 0 => ""
      case 1 => s", after 1 task that $marked"
      case n => s", after $n tasks that $marked"
    }
    ExplainedSkew(
      name,
      ExplainedSkew.Split,
      splits.describe + after,
      splits.partitions.size,
      splits.pieces,
      splits.residuals,
      advice,
      splits.limit.map(_.text))
  }

  private def notSplit(
      name: String,
      reason: Option[SkewReason.Detailed],
      adaptive: Option[Boolean],
      loaded: Boolean,
      conf: SQLConf): ExplainedSkew = {
    def ignored(why: String) = ExplainedSkew(name, ExplainedSkew.Ignored, why)
    val off = SkewConf.splitSwitches.find(!conf.getConf(_))
    reason match {
      case Some(given) =>
        val advice = Some(given.reason.advice).filter(_ => given.reason.ofSkewedJoin)
        ExplainedSkew(name, ExplainedSkew.Whole, given.text, advice = advice)
      case None if !loaded => ignored(LoadedExtension.Missing)
      case None if adaptive.isEmpty => ignored("the plan is not adaptive")
      case None if off.isDefined => ignored(s"${off.get.key} is false")
      case None if adaptive.contains(true) => ignored("no rule has looked at it")
      case None => ExplainedSkew(name, ExplainedSkew.NotRun, ExplainedSkew.NotRunItself)
    }
  }
}
