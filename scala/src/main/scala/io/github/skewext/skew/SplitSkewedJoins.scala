package io.github.skewext.skew

import io.github.skewext.execution.split.{JoinedInputs, SkewSplits, SplitJoinExec}
import io.github.skewext.execution.{MultiFullJoinExec, SparksShuffledJoin}
import io.github.skewext.internal.SkewConf
import io.github.skewext.plan.{SkewReason, SkewSettings}

import org.apache.spark.internal.Logging
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.adaptive.SkewJoinChildWrapper
import org.apache.spark.sql.execution.exchange.{EnsureRequirements, ValidateRequirements}
import org.apache.spark.sql.execution.{ProjectExec, SortExec, SparkPlan}
import org.apache.spark.sql.internal.SQLConf

/**
 * Splits skewed partitions of joins in the plan of one stage, when all that the stage reads is there
 * and Spark has coalesced partitions. It sees whatever shuffles the stage reads, new ones or such
 * that are used again, and the buckets of tables. What to split and how is decided by [[SkewPlanner]].
 *
 * A join is left whole if an operator above could tell the difference. That concerns this join only.
 */
object SplitSkewedJoins extends Rule[SparkPlan] with JoinSplitting {

  override protected def splitFirst: Boolean = true

  override def apply(plan: SparkPlan): SparkPlan = if (isEnabled) {
    splitJoins(plan) { (whole, join, splits) =>
      val replaced = splits.map(replace(whole, join, _))
      replaced
        .find(isValid)
        .orElse(replaced.flatMap(JoinsAbove.divided(_, join, splits.head)).find(isValid))
        .toRight(SkewReason.KeysTogether)
    }
  } else {
    plan
  }
}

/**
 * Splits joins although an operator above then needs one more shuffle, if that is asked for as it is
 * for Spark's joins, by `spark.sql.adaptive.forceOptimizeSkewedJoin`. Runs on
 * the whole plan, as long as there can be new shuffles; what needs no force is left to
 * [[SplitSkewedJoins]].
 */
object ForceSkewedJoins extends Rule[SparkPlan] with JoinSplitting {

  override protected def splitFirst: Boolean = false

  override def apply(plan: SparkPlan): SparkPlan = if (isEnabled && isForced) {
    splitJoins(plan) { (whole, join, splits) =>
      if (splits.map(replace(whole, join, _)).exists(isValid)) Left(SkewReason.NotSkewed)
      else Right(shuffled(replace(whole, join, splits.head)))
    }
  } else {
    plan
  }

  /** To another cost evaluator the plan is dearer; it would reject what else is new in it, too. */
  private def isForced: Boolean = conf.getConf(SQLConf.ADAPTIVE_FORCE_OPTIMIZE_SKEWED_JOIN) &&
    conf
      .getConf(SQLConf.ADAPTIVE_CUSTOM_COST_EVALUATOR_CLASS)
      .contains(classOf[SkewJoinCostEvaluator].getName)

  private def shuffled(plan: SparkPlan): SparkPlan = {
    // Spark has decided before which of the user's repartitions there is no need of.
    EnsureRequirements(optimizeOutRepartition = false).apply(withoutInputs(plan)).transform {
      case SkewJoinChildWrapper(child) => child
    }
  }
}

/** What the rules that split joins have in common. */
private[skewext] trait JoinSplitting extends Logging { self: Rule[SparkPlan] =>

  /** See [[SkewSplits.reads]]. */
  protected def splitFirst: Boolean

  /** Not if nobody has looked what the query asks of partitions. */
  protected def isEnabled: Boolean = SkewConf.enabled(conf) &&
    conf.getConf(SkewConf.SKEW_ENABLED) && conf.getConf(SQLConf.SKEW_JOIN_ENABLED) &&
    !SkewConf.excludes(conf, RequiredLayout.ruleName)

  /**
   * Splits one join after the other, each if it can be, those above first: a chain of Spark's joins
   * on one key is split as a whole.
   *
   * @param put makes a new plan of the whole one, the join in it and what may replace the join
   */
  protected def splitJoins(plan: SparkPlan)(
      put: (SparkPlan, SparkPlan, Seq[SparkPlan]) => Either[SkewReason, SparkPlan]): SparkPlan = {
    var whole = plan
    def visit(node: SparkPlan): Unit = node match {
      case join @ (_: MultiFullJoinExec | SparksShuffledJoin(_)) if !isSplitBySpark(join) =>
        split(join).flatMap(put(whole, join, _)) match {
          case Right(newPlan) =>
            logDebug(s"Splits skewed partitions of ${join.simpleStringWithNodeId()}")
            whole = newPlan
          case Left(reason) =>
            SkewReason.set(join, reason)
            logDebug(s"Leaves ${join.simpleStringWithNodeId()} whole: ${reason.text}")
            join.children.foreach(visit)
        }
      // Joins that its inputs are made of read what it wants them to.
      case _: SplitJoinExec =>
      case _ => node.children.foreach(visit)
    }
    visit(plan)
    whole
  }

  private def isSplitBySpark(join: SparkPlan): Boolean = join match {
    case SparksShuffledJoin(j) => j.isSkewJoin
    case _ => false
  }

  /** What may replace the join, the best first. */
  private def split(join: SparkPlan): Either[SkewReason, Seq[SparkPlan]] = for {
    joined <- JoinedInputs.of(join)
    inputs <- partitionedInputs(joined)
    splits <- SkewPlanner
      .plan(
        joined.inputs.zip(inputs).map { case (i, input) =>
          input.toSkewInput(i.role, i.keys).copy(replicable = i.replicable)
        },
        SkewSettings.of(conf, join),
        output(joined, inputs))
      .left
      .map {
        case SkewReason.NotSkewed if inputs.exists(_.keysNotCounted) => SkewReason.KeysNotCounted
        case reason => reason
      }
    _ <- RequiredLayout.reasonToLeaveWhole(join).toLeft(())
  } yield {
    val reads = SkewSplits(splits).reads(inputs.head.ranges, inputs.map(_.bytes), splitFirst)
    val children = inputs.zip(reads).map { case (input, specs) => input.reading(specs) }
    val unordered = joined.splitPlan(children, SkewSplits(splits))
    if (join.outputOrdering.isEmpty) {
      Seq(unordered)
    } else {
      val ordered = SortExec(join.outputOrdering, global = false, unordered)
      if (RequiredLayout.isOrderWanted(join)) Seq(ordered) else Seq(unordered, ordered)
    }
  }

  /** What is known of what the join's partitions give. */
  private def output(
      joined: JoinedInputs,
      inputs: Seq[PartitionedInput]): IndexedSeq[PartitionOutput] =
    if (conf.getConf(SkewConf.SKEW_OUTPUT_ENABLED)) {
      val shown = joined.inputs.map(_.role.isShown)
      PartitionOutput.of(
        inputs.zip(shown).map { case (input, isShown) => if (isShown) input.sketch else None },
        inputs.zip(shown).collect { case (input, true) => input.rowBytes }.sum)
    } else {
      IndexedSeq.empty
    }

  private def partitionedInputs(joined: JoinedInputs): Either[SkewReason, Seq[PartitionedInput]] = {
    val buckets = conf.getConf(SkewConf.BUCKET_SKEW)
    val found = joined.inputs.map(i => PartitionedInput.of(i.plan, buckets))
    found.collectFirst { case Left(reason) => reason } match {
      case Some(reason) => Left(reason)
      case None =>
        val inputs = found.flatMap(_.toOption)
        if (inputs.map(i => PartitionedInput.readAs(i.sources.head)).distinct.size == 1)
          Right(inputs)
        else Left(SkewReason.InputsDiffer)
    }
  }

  protected def isValid(plan: SparkPlan): Boolean =
    ValidateRequirements.validate(withoutInputs(plan))

  /**
   * The plan with nothing below its split joins. There the reads give every operator the partitions
   * that it had before, though some of them several times, which is what Spark cannot know.
   */
  protected def withoutInputs(plan: SparkPlan): SparkPlan = plan.transformUp {
    case join: SplitJoinExec =>
      join.withNewChildren(join.children.map(SkewJoinChildWrapper))
  }

  /** A projection above that only chooses columns is left to the join. */
  protected def replace(plan: SparkPlan, join: SparkPlan, by: SparkPlan): SparkPlan =
    plan.transformUp {
      case node if node eq join => by
      case project @ ProjectExec(list, split: SplitJoinExec) =>
        split.showing(list).getOrElse(project)
    }
}
