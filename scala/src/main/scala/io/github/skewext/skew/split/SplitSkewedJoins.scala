package io.github.skewext.skew.split

import io.github.skewext.facts.{BuiltinShuffledJoin, JoinHints}
import io.github.skewext.join.WholeReason
import io.github.skewext.join.exec.{MultiFullJoinExec, SpineJoinExec}
import io.github.skewext.platform.SkewConf
import io.github.skewext.skew.plan.{PartitionOutput, SkewPlanner, SkewReason, SkewSettings}
import io.github.skewext.skew.run.{SplitJoinExec, SplitOperator}
import io.github.skewext.technique.hint.{AdaptiveOptions, TechniqueHint}

import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.adaptive.SkewJoinChildWrapper
import org.apache.spark.sql.execution.exchange.{Exchange, ValidateRequirements}
import org.apache.spark.sql.execution.{CollectLimitExec, ProjectExec, SortExec, SparkPlan}
import org.apache.spark.sql.internal.SQLConf

/**
 * Splits skewed partitions of joins in the plan of one stage. It runs when all shuffles that the
 * stage reads are materialized and Spark has coalesced partitions. It handles new and reused
 * shuffles, and the buckets of tables. [[SkewPlanner]] decides which partitions to split, and how.
 *
 * A join remains whole if the result of an operator above depends on its partitions. Other joins of
 * the stage can still be split.
 */
object SplitSkewedJoins extends SplitSkewedJoins

private[skewext] class SplitSkewedJoins extends Rule[SparkPlan] {

  override def apply(plan: SparkPlan): SparkPlan = if (isEnabled) splitJoins(plan) else plan

  /** With a limit above, Spark runs the first task alone, then some others, and so on. */
  private def splitsLast(plan: SparkPlan): Boolean = plan.exists(_.isInstanceOf[CollectLimitExec])

  /**
   * Returns the plan with the first replacement of the join that gives operators above the rows that
   * they require.
   */
  protected def replaced(
      whole: SparkPlan,
      join: SparkPlan,
      splits: Seq[SparkPlan]): Either[SkewReason, SparkPlan] = {
    val plans = splits.map(replace(whole, join, _))
    plans
      .find(isValid)
      .orElse(plans.flatMap(JoinsAbove.divided(_, join, splits.head)).find(isValid))
      .toRight(SkewReason.KeysTogether)
  }

  /**
   * False if [[RequiredLayout]] is excluded, because then the requirements on partitions are
   * unknown.
   */
  private def isEnabled: Boolean =
    SkewConf.splitSwitches.forall(conf.getConf(_)) &&
      !SkewConf.excludes(conf, RequiredLayout.ruleName)

  /**
   * Splits the joins one by one, from the top down. A chain of Spark's joins on one key is split as
   * a whole.
   */
  private def splitJoins(plan: SparkPlan): SparkPlan = {
    var whole = plan
    def visit(node: SparkPlan): Unit = node match {
      // The inputs of a split join may contain joins, whose reads the split has already set.
      case SplitOperator(_) =>
      case join @ (_: MultiFullJoinExec | _: SpineJoinExec | BuiltinShuffledJoin(_))
          if !isSplitBySpark(join) =>
        val described = for {
          joined <- describe(join)
          inputs <- partitionedInputs(joined)
        } yield (joined, inputs)
        val splits: Either[SkewReason.Detailed, Seq[SparkPlan]] = described match {
          case Right((joined, inputs)) => split(join, joined, inputs, splitsLast(plan))
          case Left(reason) => Left(reason.given)
        }
        splits.flatMap(replaced(whole, join, _).left.map(_.given)) match {
          case Right(newPlan) =>
            logDebug(s"Splits skewed partitions of ${join.simpleStringWithNodeId()}")
            whole = newPlan
          case Left(reason) =>
            leaveWhole(join, reason)
            described match {
              case Right((_, inputs)) if isNoneSkewed(splits, inputs) =>
                join.children.foreach(visitBelow(join, inputs.map(_.plan), _))
              case _ => join.children.foreach(visit)
            }
        }
      case _ => node.children.foreach(visit)
    }
    // The joins of a chain without skew have some of its inputs, so they are not described again: a
    // chain of N joins would be described N times.
    def visitBelow(chain: SparkPlan, inputs: Seq[SparkPlan], node: SparkPlan): Unit = node match {
      case input if inputs.exists(_ eq input) => visit(input)
      case join @ BuiltinShuffledJoin(_) if thresholds(join) != thresholds(chain) => visit(join)
      case join @ BuiltinShuffledJoin(_) =>
        leaveWhole(join, SkewReason.NotSkewed.given)
        join.children.foreach(visitBelow(chain, inputs, _))
      case other => other.children.foreach(visitBelow(chain, inputs, _))
    }
    visit(plan)
    whole
  }

  protected def describe(join: SparkPlan): Either[SkewReason, JoinedInputs] = JoinedInputs.of(join)

  private def leaveWhole(join: SparkPlan, reason: SkewReason.Detailed): Unit = {
    // Without its shuffles, nothing is known of the join yet.
    if (!join.exists(_.isInstanceOf[Exchange])) WholeReason.set(join, reason)
    logDebug(s"Leaves ${join.simpleStringWithNodeId()} whole: ${reason.text}")
  }

  /**
   * Whether no join of some of these inputs is skewed, either. The size of an input is compared
   * with a threshold of that input alone. An estimated output is not: that of fewer inputs may be
   * skewed though that of all is not.
   */
  private def isNoneSkewed(
      splits: Either[SkewReason.Detailed, Seq[SparkPlan]],
      inputs: Seq[PartitionedInput]): Boolean =
    splits == Left(SkewReason.NotSkewed.given) && inputs.forall(_.sketch.isEmpty)

  /** The settings that decide whether an input is skewed. A hint may change them for one join. */
  private def thresholds(join: SparkPlan): (Double, Long) = {
    val own = JoinSettings.of(conf, join)
    (own.factor, own.thresholdBytes)
  }

  private def isSplitBySpark(join: SparkPlan): Boolean = join match {
    case BuiltinShuffledJoin(j) => j.isSkewJoin
    case _ => false
  }

  /** The possible replacements of the join, the best first. */
  private def split(
      join: SparkPlan,
      joined: JoinedInputs,
      inputs: Seq[PartitionedInput],
      splitLast: Boolean): Either[SkewReason.Detailed, Seq[SparkPlan]] = for {
    splits <- SkewPlanner
      .plan(
        joined.inputs.zip(inputs).map { case (i, input) => i.toSkewInput(input, inputs.head) },
        // Tasks that mark keys would run before the first task of a query with a limit.
        if (splitLast) JoinSettings.of(conf, join).copy(marking = false)
        else JoinSettings.of(conf, join),
        output(joined, inputs))
      .left
      .map {
        case given if given.reason == SkewReason.NotSkewed =>
          if (inputs.exists(_.keysNotCounted)) SkewReason.KeysNotCounted.given else given
        // No change of a limit helps as long as the join must stay whole.
        case given => mustStayWhole(join, inputs).getOrElse(given)
      }
    _ <- mustStayWhole(join, inputs).toLeft(())
  } yield {
    val reads = splits.reads(inputs.head.ranges, inputs.map(_.bytes), splitLast)
    val children = inputs.zip(reads).map { case (input, specs) => input.reading(specs) }
    val unordered = joined.splitPlan(children, splits)
    if (join.outputOrdering.isEmpty) {
      Seq(unordered)
    } else {
      val ordered = SortExec(join.outputOrdering, global = false, unordered)
      if (RequiredLayout.isOrderWanted(join)) Seq(ordered) else Seq(unordered, ordered)
    }
  }

  private def mustStayWhole(
      join: SparkPlan,
      inputs: Seq[PartitionedInput]): Option[SkewReason.Detailed] = {
    // Partitions of the result are seen by its reader: an RDD, the files of a write.
    def keepsNumber = inputs.exists(_.hasNumberOfUser) && !WrittenJoin.isShuffled(join) &&
      !JoinSettings.isAdaptive(join)
    RequiredLayout
      .reasonToLeaveWhole(join)
      .orElse(if (keepsNumber) Some(SkewReason.UserPartitions) else None)
      .map(_.given)
  }

  /** The estimated output of the partitions, if estimates are enabled. */
  private def output(
      joined: JoinedInputs,
      inputs: Seq[PartitionedInput]): IndexedSeq[PartitionOutput] =
    if (conf.getConf(SkewConf.SKEW_OUTPUT_MODE) != SkewConf.OutputSkew.Off) {
      val shown = joined.inputs.map(_.role.isShown)
      PartitionOutput.of(
        inputs.zip(shown).map { case (input, isShown) => if (isShown) input.sketch else None },
        inputs.zip(shown).collect { case (input, true) => input.rowBytes }.sum)
    } else {
      IndexedSeq.empty
    }

  private def partitionedInputs(joined: JoinedInputs): Either[SkewReason, Seq[PartitionedInput]] = {
    val found = joined.inputs.map(i => PartitionedInput.of(i.plan))
    found.collectFirst { case Left(reason) => reason } match {
      case Some(reason) => Left(reason)
      case None =>
        val inputs = found.flatMap(_.toOption)
        if (inputs.map(i => PartitionedInput.readAs(i.sources.head)).distinct.size == 1)
          Right(inputs)
        else Left(SkewReason.InputsDiffer)
    }
  }

  private def isValid(plan: SparkPlan): Boolean =
    ValidateRequirements.validate(withoutInputs(plan))

  /**
   * The plan without the inputs of its split joins. The reads there give every operator the same
   * partitions as before, some of them several times, which Spark's validation does not support.
   */
  private def withoutInputs(plan: SparkPlan): SparkPlan = plan.transformUp {
    case join @ SplitOperator(_) =>
      join.withNewChildren(join.children.map(SkewJoinChildWrapper))
  }

  /**
   * Replaces the join. A projection above it that only selects columns becomes a part of the split
   * join.
   */
  private def replace(plan: SparkPlan, join: SparkPlan, by: SparkPlan): SparkPlan =
    plan.transformUp {
      case node if node eq join => by
      case project @ ProjectExec(list, split: SplitJoinExec) =>
        split.showing(list).getOrElse(project)
    }
}

/** The settings for splits of one join: those of the session, overridden by a hint for `adaptive`. */
object JoinSettings {

  def of(conf: SQLConf, join: SparkPlan): SkewSettings =
    adaptive(join)
      .fold(SkewSettings.of(conf))(options =>
        SkewSettings.of(conf).changedBy(AdaptiveOptions.of(options)))
      .copy(files = WrittenJoin.filesOf(join))

  /** Whether the query asks for splits of this join. */
  def isAdaptive(join: SparkPlan): Boolean = adaptive(join).isDefined

  private def adaptive(join: SparkPlan) =
    JoinHints
      .logicalJoin(join)
      .flatMap(TechniqueHint.of)
      .collect { case TechniqueHint.Made(TechniqueHint.Adaptive, options, _, _) => options }
}
