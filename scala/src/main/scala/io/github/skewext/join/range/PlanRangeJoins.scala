package io.github.skewext.join.range

import java.util.Locale

import io.github.skewext.facts.JoinHints
import io.github.skewext.platform.{NamedStrategy, OwnOperators, Reason, Reasons, RunsIfDisabled, SkewConf}

import org.apache.spark.sql.catalyst.optimizer.{BuildLeft, BuildRight, BuildSide}
import org.apache.spark.sql.catalyst.plans.logical.{Join, LogicalPlan, UnresolvedHint}
import org.apache.spark.sql.catalyst.plans.physical.BroadcastPartitioning
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.{BroadcastQueryStageExec, LogicalQueryStage, LogicalQueryStageStrategy}
import org.apache.spark.sql.execution.joins.{BroadcastHashJoinExec, BroadcastNestedLoopJoinExec, CartesianProductExec}
import org.apache.spark.sql.execution.skewext.BroadcastTable
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.skewext.SparkShims

/**
 * Plans each join with a range as [[BroadcastRangeJoinExec]] that Spark would plan as a broadcast nested
 * loop join, and as [[RangeProductExec]] if Spark would plan a Cartesian product.
 *
 * It calls Spark's own strategy for joins, and replaces what that returns. So Spark decides which side
 * is broadcast, and the logical plan remains. If the finished broadcast has few rows, the join becomes
 * Spark's nested loop join when adaptive execution plans again.
 *
 * It replaces a broadcast hash join with a range when adaptive execution plans again, because the
 * finished broadcast shows whether keys have many rows.
 */
object PlanRangeJoins extends NamedStrategy {

  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case join: Join if isOn && whyNot(join).isEmpty =>
      begun(join).getOrElse(replaced(join)).toSeq
    case _ => Nil
  }

  /** For fewer rows, or rows of a key, a test of all pairs is faster than a search. */
  private[skewext] final val ManyRows = 32

  /** Of a hash table. The driver makes an index of as many rows. */
  private final val MaxBytes = 256L << 20

  /** The reason why a join stays Spark's if Spark runs it as a nested loop. */
  private[skewext] def whyNot(join: Join): Option[RangeReason] = {
    def ofUser = JoinHints.strategiesOfUser(join).exists(_ != "broadcast")
    def range = join.condition.flatMap(RangeMatch.of(_, join.left, join.right))
    def oneSided = join.condition.exists(RangeMatch.isOneSided(_, join.left, join.right))
    if (!SQLConf.get.getConf(SkewConf.RANGE_JOIN_ENABLED)) Some(RangeReason.SwitchedOff)
    else if (join.condition.isEmpty) Some(RangeReason.NoCondition)
    else if (ofUser) Some(RangeReason.Hint)
    else if (join.isStreaming) Some(RangeReason.Streaming)
    else if (!join.condition.forall(_.deterministic)) Some(RangeReason.NonDeterministic)
    else if (!BroadcastRangeJoinExec.canJoin(join.joinType)) Some(RangeReason.NoRange)
    else if (range.isEmpty) Some(if (oneSided) RangeReason.OneSided else RangeReason.NoRange)
    else None
  }

  private def replaced(join: Join): Option[SparkPlan] = SparkShims
    .joinSelection(join)
    .headOption
    .collect {
      case loop: BroadcastNestedLoopJoinExec =>
        planned(join, loop.left, loop.right, loop.buildSide)
      case product: CartesianProductExec =>
        RangeProductExec(product.left, product.right, join.condition)
    }

  /**
   * The join if a broadcast of it has begun when adaptive execution plans again. Some(None) if another
   * join has begun it.
   */
  private def begun(join: Join): Option[Option[SparkPlan]] = {
    val stages = Seq(join.left, join.right).map {
      case LogicalQueryStage(_, stage: BroadcastQueryStageExec) => Some(stage)
      case _ => None
    }
    val side = stages.indexWhere(_.isDefined)
    if (side < 0) {
      None
    } else {
      val Seq(left, right) = Seq(join.left, join.right).map(OwnOperators.later)
      val made = planned(join, left, right, if (side == 0) BuildLeft else BuildRight)
      val hasOurMode = stages.flatten.head.outputPartitioning match {
        case BroadcastPartitioning(mode) => mode == made.mode
        case _ => false
      }
      val stage = stages.flatten.head
      Some(
        if (!hasOurMode) besideKeys(join, made, stage)
        else if (hasFewRows(stage)) Some(overAllRows(made))
        else Some(made))
    }
  }

  private def hasFewRows(stage: BroadcastQueryStageExec): Boolean =
    stage.isMaterialized && stage.getRuntimeStatistics.rowCount.exists(_ < ManyRows)

  /** Spark's join in place of ours. Spark has generated code for all of it. */
  private def overAllRows(made: BroadcastRangeJoinExec): SparkPlan = {
    import made._
    val Seq(l, r) =
      if (buildSide == BuildLeft) Seq(BroadcastRowsExec(left), right)
      else Seq(left, BroadcastRowsExec(right))
    BroadcastNestedLoopJoinExec(l, r, buildSide, joinType, condition)
  }

  /** The join in place of Spark's broadcast hash join, if keys of its hash table have many rows. */
  private def besideKeys(
      join: Join,
      made: BroadcastRangeJoinExec,
      stage: BroadcastQueryStageExec): Option[SparkPlan] =
    LogicalQueryStageStrategy(join).collectFirst {
      case hash: BroadcastHashJoinExec
          if !hash.isNullAwareAntiJoin && !isPruned(join) && hasManyRows(stage) =>
        made.copy(condition = hash.condition, leftKeys = hash.leftKeys, rightKeys = hash.rightKeys)
    }

  /** The reason why a join stays Spark's if Spark runs it as a broadcast hash join. */
  private[skewext] def whyNotBesideKeys(join: Join): Option[RangeReason] =
    join.condition.flatMap(RangeMatch.of(_, join.left, join.right)).map { _ =>
      whyNot(join).getOrElse(
        if (isPruned(join)) RangeReason.PrunesPartitions else RangeReason.FewRowsOfKeys)
    }

  /** Whether a broadcast may prune partitions, which Spark does with those of its own joins only. */
  private def isPruned(join: Join): Boolean =
    join.containsPattern(TreePattern.DYNAMIC_PRUNING_SUBQUERY)

  /** The driver keeps broadcasts serialized, and has to build the hash table again to read it. */
  private def hasManyRows(stage: BroadcastQueryStageExec): Boolean = stage.isMaterialized && {
    val size = stage.getRuntimeStatistics
    size.rowCount.exists(_ >= ManyRows) && size.sizeInBytes <= MaxBytes &&
    BroadcastTable.of(stage.executeBroadcast[Any]().value).exists { table =>
      !table.keyIsUnique && table.meanRowsOfKey >= ManyRows
    }
  }

  private def planned(join: Join, left: SparkPlan, right: SparkPlan, side: BuildSide) =
    BroadcastRangeJoinExec(left, right, side, join.joinType, join.condition)
}

/**
 * Drops hints of Databricks' range join: `RANGE_JOIN(t, 100)`, with the width of its bins. Spark would
 * log a warning that it does not know the hint. Range joins of skewext have no bins.
 */
object DropRangeHints extends Rule[LogicalPlan] with RunsIfDisabled {

  private val Name = "RANGE_JOIN"

  override def apply(plan: LogicalPlan): LogicalPlan =
    plan.resolveOperatorsUpWithPruning(_.containsPattern(TreePattern.UNRESOLVED_HINT)) {
      case hint: UnresolvedHint if isOurs(hint) => hint.child
    }

  /** The hints in a query that is not analyzed. */
  private[skewext] def in(query: LogicalPlan): Seq[String] =
    query.collectWithSubqueries {
      case hint: UnresolvedHint if isOurs(hint) => textOf(hint)
    }.distinct

  private def isOurs(hint: UnresolvedHint): Boolean =
    hint.name.toUpperCase(Locale.ROOT) == Name

  private def textOf(hint: UnresolvedHint): String =
    hint.parameters.mkString(s"$Name(", ", ", ")").replace("'", "")
}

/** Why a join stays Spark's nested loop, Cartesian product, or broadcast hash join with a range. */
final class RangeReason private (text: String, advice: String) extends Reason(text, advice)

object RangeReason extends Reasons[RangeReason] {
  import PlanRangeJoins.ManyRows

  private def reason(text: String, advice: String) = listed(new RangeReason(text, advice))

  val SwitchedOff =
    reason("spark.skewext.rangeJoin.enabled is false", "Set it to true for this query.")

  val Hint = reason(
    "a join hint of the query selects a nested loop or a Cartesian product",
    "Remove the hint if it is no longer needed. A hint BROADCAST does not prevent a range join.")

  val Streaming =
    reason("a side of the join is a stream", "Nothing to do: range joins join only batches.")

  val NonDeterministic =
    reason("the condition of the join is not deterministic", "Compute it in one of the sides.")

  val NoCondition = reason("the join has no condition", "Nothing to do: all pairs match.")

  val NoRange = reason(
    "the condition has no range",
    "A range has two comparisons, one in each direction, of a value of one side with a value of the " +
      "other side, such as a.t >= b.start AND a.t < b.end. Both values have the same type: numbers, " +
      "dates, timestamps, or strings without a collation.")

  val FewRowsOfKeys = reason(
    s"a side is broadcast with equal keys, and is not known to have $ManyRows rows for the key of a row",
    "Adaptive execution knows the rows when the broadcast is complete. If the keys have many rows, set " +
      "spark.sql.adaptive.enabled to true, run the query, and explain it again.")

  val FewRows = reason(
    s"the broadcast side has fewer than $ManyRows rows, so a test of all pairs is fast",
    "Nothing to do.")

  val PrunesPartitions = reason(
    "a side of the hash join may prune partitions of the other side while the query runs",
    "Nothing to do if few partitions are read. Set " +
      "spark.sql.optimizer.dynamicPartitionPruning.enabled to false to compare.")

  val OneSided = reason(
    "the condition compares the sides in one direction only, so most pairs may match",
    "Add the other end of the range, such as AND a.t < b.t + INTERVAL 1 HOUR, if the rows have one.")
}
