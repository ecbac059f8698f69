package io.github.skewext

import java.util.{Collections, WeakHashMap}

import io.github.skewext.asof.{AsOfStrategy, BoundAsOfTimes, MergeAsOfJoins, PruneAsOfInputs, PushAsOfPredicates, RewriteSparkAsOfJoins}
import io.github.skewext.bucket.{BucketedScanRules, MergeSortedFiles, PruneBuckets, PruneBucketsByKeys}
import io.github.skewext.function.{FindingStrategy, KeepCommonTables, TableFunctions}
import io.github.skewext.join.optimizer.{BroadcastHintedInputs, DropInputSorts, DropUnusedInputs, FilterNullKeys, FoldPresentColumns, InferKeyPredicates, LimitRequiredInput, LowerMultiFullJoin, NarrowRoles, PropagateEmptyInputs, PruneNestedColumns, PushKeyPredicates, PushSemiJoins}
import io.github.skewext.join.{MultiFullJoinStrategy, PhysicalJoinRules, SpreadNullKeys}
import io.github.skewext.merge.{MergeQuery, SpreadSourceNullKeys, UndoReplicatingSplits}
import io.github.skewext.rewrite.RewriteJoinChains
import io.github.skewext.rules.Guard.{linked, linkedStrategy}
import io.github.skewext.rules.{ExtensionPoints, Guard, GuardedRule, GuardedStrategy, LoadedExtension, LogicalJoinRules, NonAdaptiveRules, SparkLine}
import io.github.skewext.shuffle.BulkExchanges
import io.github.skewext.skew.{ForceSkewedJoins, MarkWrittenJoins, RequiredLayout, SketchJoinKeys, SkewReason, SplitSkewedJoins}
import io.github.skewext.technique.{CheckBroadcasts, MarkedBroadcastJoinStrategy, PlanSkewJoins, PushThroughSaltKeys, ResolveSkewJoinHints, SaltedJoinStrategy}

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy}
import org.apache.spark.sql.skewext.ui.SkewextTab
import org.apache.spark.sql.{SparkSession, SparkSessionExtensions}

/**
 * The entry point: `spark.sql.extensions=io.github.skewext.SkewExtensions`.
 *
 * It registers these rules. The parentheses show when Spark runs them:
 *
 *  1. [[technique.ResolveSkewJoinHints]] (analyzer): resolves the hint for a join by a technique.
 *  1. [[function.TableFunctions]] (analyzer): joins and reports for plain SQL, and
 *     [[function.KeepCommonTables]], which lets these read common table expressions.
 *  1. [[asof.RewriteSparkAsOfJoins]] (analyzer, when the plan is resolved): rewrites Spark's own as-of
 *     joins.
 *  1. [[technique.PlanSkewJoins]] (optimizer, operator optimization batch): plans joins by the
 *     techniques that are requested for them.
 *  1. [[join.optimizer.LowerMultiFullJoin]] (optimizer, operator optimization batch): plans a multi-way
 *     join as Spark's own joins if skewext is disabled.
 *  1. [[rewrite.RewriteJoinChains]] (optimizer, the same batch): rewrites chains of Spark's joins
 *     into one multi-way join.
 *  1. [[join.optimizer.PropagateEmptyInputs]] (optimizer, the same batch; and adaptive execution, when a
 *     part of the query is done): simplifies joins with an empty input.
 *  1. [[join.optimizer.NarrowRoles]] (optimizer, the same batch): makes inputs required or excluded, as
 *     predicates on their columns allow.
 *  1. [[join.optimizer.FoldPresentColumns]] (the same): replaces constant columns of required inputs.
 *  1. [[join.optimizer.PushKeyPredicates]] (the same): pushes predicates into the inputs, and those on
 *     keys into every input.
 *  1. [[join.optimizer.PushSemiJoins]] (the same): pushes semi and anti joins into a required input.
 *  1. [[join.optimizer.FilterNullKeys]] (the same): drops rows with a null key that the join does not
 *     return.
 *  1. [[join.optimizer.InferKeyPredicates]] (the same): adds predicates on the keys of a required input
 *     to all inputs.
 *  1. [[join.optimizer.DropInputSorts]] (the same): removes the ORDER BY of inputs.
 *  1. [[join.optimizer.LimitRequiredInput]] (the same): pushes a LIMIT into an input.
 *  1. [[join.optimizer.DropUnusedInputs]] (the same): removes inputs that do not affect the result.
 *  1. [[join.optimizer.PruneNestedColumns]] (the same): extracts fields of structs below the join.
 *  1. [[join.optimizer.BroadcastHintedInputs]] (the same): broadcasts inputs with a broadcast hint, by
 *     Spark's own joins.
 *  1. [[technique.PushThroughSaltKeys]] (optimizer, the same batch): pushes predicates below the
 *     salts of a salted join.
 *  1. [[asof.MergeAsOfJoins]] (the same): merges as-of joins of one spine by one key and time.
 *  1. [[asof.PushAsOfPredicates]] (optimizer, the same batch): pushes predicates below an as-of
 *     join and latest rows.
 *  1. [[asof.BoundAsOfTimes]] (the same): filters versions by the times of the spine.
 *  1. [[asof.PruneAsOfInputs]] (the same): removes tables and columns that the query does not read.
 *  1. [[skew.MarkWrittenJoins]] (optimizer, the same batch): marks joins whose tasks write files.
 *  1. [[join.MultiFullJoinStrategy]] (planner, before Spark's own strategies): plans a multi-way
 *     join as one operator, with runtime filters on its inputs ([[join.RuntimeFilters]]).
 *  1. [[technique.SaltedJoinStrategy]] (the same): plans salts, and the join on them.
 *  1. [[technique.MarkedBroadcastJoinStrategy]] (the same): plans a join whose broadcast side is
 *     preserved.
 *  1. [[asof.AsOfStrategy]] (the same): plans as-of joins, and the latest rows of keys.
 *  1. [[function.FindingStrategy]] (the same): plans the reports of table functions.
 *  1. [[join.SpreadNullKeys]] (adaptive execution, before exchanges are planned): spreads rows
 *     with a null key over all tasks.
 *  1. [[merge.SpreadSourceNullKeys]] (the same): does so for the source of a MERGE.
 *  1. [[skew.RequiredLayout]] (the same): records which partitions and orders of joins the query
 *     requires.
 *  1. [[bucket.PruneBuckets]] (when exchanges are planned): prunes buckets with predicates on
 *     bucket columns.
 *  1. [[bucket.MergeSortedFiles]] (when exchanges are planned, after Spark's decision which scans
 *     need their buckets): merges sorted files where Spark would sort their rows.
 *  1. [[skew.RequiredLayout.AfterExchanges]] (adaptive execution, when exchanges are planned):
 *     drops requirements on joins whose rows are shuffled again.
 *  1. [[technique.CheckBroadcasts]] (the same): stops a query whose broadcast is too large.
 *  1. [[merge.UndoReplicatingSplits]] (adaptive execution, when exchanges are planned, after Spark's
 *     own rule for skewed joins): reverts its splits of a MERGE's source.
 *  1. [[skew.ForceSkewedJoins]] (adaptive execution, when exchanges are planned, after Spark's own
 *     rule for skewed joins): splits skewed joins at the cost of a shuffle, if a setting requires
 *     it.
 *  1. [[skew.SketchJoinKeys]] (adaptive execution, when exchanges are planned): samples keys below
 *     the exchanges of joins.
 *  1. [[shuffle.BulkExchanges]] (when exchanges are planned): replaces exchanges with bulk rows or
 *     a columnar shuffle.
 *  1. [[bucket.PruneBucketsByKeys]] (adaptive execution, on a stage whose inputs are complete,
 *     after Spark has coalesced partitions): prunes buckets with the keys of a join's other side.
 *  1. [[skew.SplitSkewedJoins]] (the same): splits skewed partitions of joins.
 *
 * Consecutive rules at one extension point are one Spark rule ([[RuleGroup]]). It checks once
 * whether the plan has a join, or reads a bucketed table.
 *
 * An application whose UI or event log is enabled gets a tab
 * ([[org.apache.spark.sql.skewext.ui.SkewextTab]]).
 *
 * A second application to the same session has no effect. It never throws: an exception here would
 * keep the session, and on some platforms the cluster, from starting.
 */
class SkewExtensions extends (SparkSessionExtensions => Unit) {
  override def apply(extensions: SparkSessionExtensions): Unit =
    // The guard itself may fail to load with another version of Scala.
    if (SparkLine.isOurs) Guard.protect("loading the extension", ())(load(extensions))
    else SparkLine.warnOnce()

  private def load(extensions: SparkSessionExtensions): Unit =
    if (SkewExtensions.applied.add(extensions)) {
      extensions.injectResolutionRule(_ => GuardedRule(linked(ResolveSkewJoinHints)))
      extensions.injectResolutionRule(_ => GuardedRule(linked(KeepCommonTables)))
      extensions.injectPostHocResolutionRule(_ => GuardedRule(linked(RewriteSparkAsOfJoins)))
      Guard.protect("loading the table functions", ()) {
        TableFunctions.all.foreach(extensions.injectTableFunction)
      }
      extensions.injectOptimizerRule(SkewExtensions.loadedOptimizerRules)
      extensions.injectRuntimeOptimizerRule(_ =>
        GuardedRule(linked(PropagateEmptyInputs.AtRuntime)))
      SkewExtensions.strategies.foreach(strategy => extensions.injectPlannerStrategy(_ => strategy))
      extensions.injectQueryStagePrepRule(_ => linked(CheckBroadcasts))
      // Runs first, because the remaining sorts show the order that the query requires of a join.
      extensions.injectQueryStagePrepRule(_ => SkewExtensions.rulesOfScans)
      extensions.injectColumnar(_ => NonAdaptiveRules(SkewExtensions.rulesOfScans))
      extensions.injectColumnar(_ => NonAdaptiveRules(SkewExtensions.rulesOfBulkExchanges))
      extensions.injectQueryStageOptimizerRule(_ => GuardedRule(linked(PruneBucketsByKeys)))
      if (ExtensionPoints.hasRulesBeforeExchanges) {
        extensions.injectQueryPostPlannerStrategyRule(_ => SkewExtensions.rulesBeforeExchanges)
        extensions.injectQueryStagePrepRule(_ => SkewExtensions.rulesOfExchanges)
        extensions.injectQueryStageOptimizerRule(_ => GuardedRule(linked(SplitSkewedJoins)))
      } else {
        // Without RequiredLayout it is unknown what relies on the partitions of a join.
        ExtensionPoints.warnOnce()
        extensions.injectQueryStagePrepRule(_ => SkewExtensions.rulesOfBulkExchanges)
      }
      SkewextTab.attachToActive()
    }
}

object SkewExtensions {

  private val applied =
    Collections.newSetFromMap(
      Collections.synchronizedMap(new WeakHashMap[SparkSessionExtensions, java.lang.Boolean]()))

  /**
   * In this order: if skewext is disabled, the first rule leaves no multi-way join for the others.
   */
  private val optimizerRules: Seq[Rule[LogicalPlan]] =
    Seq(
      linked(LowerMultiFullJoin),
      linked(PropagateEmptyInputs),
      linked(NarrowRoles),
      linked(FoldPresentColumns),
      linked(PushKeyPredicates),
      linked(PushSemiJoins),
      linked(FilterNullKeys),
      linked(InferKeyPredicates),
      linked(DropInputSorts),
      linked(LimitRequiredInput),
      linked(DropUnusedInputs),
      linked(PruneNestedColumns),
      linked(BroadcastHintedInputs),
      linked(PushThroughSaltKeys),
      linked(MergeAsOfJoins),
      linked(PushAsOfPredicates),
      linked(BoundAsOfTimes),
      linked(PruneAsOfInputs),
      linked(MarkWrittenJoins))

  private def loadedOptimizerRules(session: SparkSession): Rule[LogicalPlan] = {
    val rules = optimizerRules.patch(1, Seq(linked(RewriteJoinChains)), 0) :+
      linked(PlanSkewJoins(session))
    new LogicalJoinRules(rules: _*)
  }

  /**
   * For a session that registered late. It calls skewext's joins by name, and Spark's joins stay.
   */
  private val lateOptimizerRules: Rule[LogicalPlan] = new LogicalJoinRules(optimizerRules: _*)

  private val rulesBeforeExchanges: Rule[SparkPlan] =
    new PhysicalJoinRules(
      linked(SpreadNullKeys),
      linked(SpreadSourceNullKeys),
      linked(RequiredLayout))

  private val rulesOfExchanges: Rule[SparkPlan] =
    new PhysicalJoinRules(
      linked(RequiredLayout.AfterExchanges),
      linked(UndoReplicatingSplits(SkewReason.MergeTarget)),
      linked(ForceSkewedJoins),
      linked(SketchJoinKeys(MergeQuery.isPartOfOne)),
      linked(BulkExchanges))

  private val rulesOfBulkExchanges: Rule[SparkPlan] = new PhysicalJoinRules(linked(BulkExchanges))

  /** In this order: the files of pruned buckets need no merge. */
  private val rulesOfScans: Rule[SparkPlan] =
    new BucketedScanRules(linked(PruneBuckets), linked(MergeSortedFiles))

  private val strategies: Seq[SparkStrategy] =
    Seq(
      linkedStrategy(MultiFullJoinStrategy),
      linkedStrategy(MultiFullJoinStrategy.AsSparksJoins),
      linkedStrategy(SaltedJoinStrategy),
      linkedStrategy(MarkedBroadcastJoinStrategy),
      linkedStrategy(AsOfStrategy),
      linkedStrategy(FindingStrategy)).map(GuardedStrategy(_))

  /**
   * Registers with a running session those parts that Spark accepts so late: the strategies and the
   * rules of the optimizer. A second registration has no effect.
   */
  def register(session: SparkSession): Unit = if (!LoadedExtension.canPlanIn(session)) {
    val experimental = session.experimental
    experimental.extraStrategies = experimental.extraStrategies ++ strategies
    experimental.extraOptimizations = experimental.extraOptimizations :+ lateOptimizerRules
    SkewextTab.attach(session.sparkContext)
  }
}
