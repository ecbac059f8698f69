package io.github.skewext

import java.util.{Collections, WeakHashMap}

import io.github.skewext.bucket.{MergeSortedFiles, PruneBuckets, PruneBucketsByKeys}
import io.github.skewext.function.{FindingStrategy, KeepCommonTables, TableFunctions}
import io.github.skewext.internal.{Guard, GuardedRule, GuardedStrategy, LoadedExtension, SparkLine}
import io.github.skewext.optimizer.{DropInputSorts, DropUnusedInputs, FilterNullKeys, FoldPresentColumns, InferKeyPredicates, LimitRequiredInput, LowerMultiFullJoin, NarrowRoles, PropagateEmptyInputs, PruneNestedColumns, PushKeyPredicates, PushSemiJoins}
import io.github.skewext.planner.{BulkExchanges, MultiFullJoinStrategy, SpreadNullKeys}
import io.github.skewext.rewrite.RewriteJoinChains
import io.github.skewext.skew.{ForceSkewedJoins, MarkWrittenJoins, RequiredLayout, SketchJoinKeys, SplitSkewedJoins, UndoReplicatingSplits}
import io.github.skewext.technique.{CheckBroadcasts, MarkedBroadcastJoinStrategy, PlanSkewJoins, PushThroughSaltKeys, ResolveSkewJoinHints, SaltedJoinStrategy}

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy}
import org.apache.spark.sql.skewext.ui.SkewextTab
import org.apache.spark.sql.{SparkSession, SparkSessionExtensions}

/**
 * The entry point: `spark.sql.extensions=io.github.skewext.SkewExtensions`.
 *
 * What is registered, and when Spark runs it:
 *
 *  1. [[technique.ResolveSkewJoinHints]] (analyzer): the hint for a join by a technique.
 *  1. [[function.TableFunctions]] (analyzer): joins and reports for plain SQL, and
 *     [[function.KeepCommonTables]], by which these may be of common table expressions.
 *  1. [[technique.PlanSkewJoins]] (optimizer, operator optimization batch): does joins by the
 *     techniques that are wanted for them.
 *  1. [[optimizer.LowerMultiFullJoin]] (optimizer, operator optimization batch): plans a multi-way
 *     join as Spark's own joins when skewext is switched off.
 *  1. [[rewrite.RewriteJoinChains]] (optimizer, the same batch): makes one multi-way join of chains of
 *     Spark's joins.
 *  1. [[optimizer.PropagateEmptyInputs]] (optimizer, the same batch; and adaptive execution, when a
 *     part of the query is done): joins of which an input has no rows.
 *  1. [[optimizer.NarrowRoles]] (optimizer, the same batch): what is asked of an input's columns says
 *     whether it must have the key.
 *  1. [[optimizer.FoldPresentColumns]] (the same): constant columns of required inputs.
 *  1. [[optimizer.PushKeyPredicates]] (the same): moves predicates into the inputs, those on keys into
 *     every one.
 *  1. [[optimizer.PushSemiJoins]] (the same): moves semi and anti joins into a required input.
 *  1. [[optimizer.FilterNullKeys]] (the same): drops rows that cannot come out.
 *  1. [[optimizer.InferKeyPredicates]] (the same): asks of every input what is known of the keys of
 *     one that is required.
 *  1. [[optimizer.DropInputSorts]] (the same): leaves out the ORDER BY of inputs.
 *  1. [[optimizer.LimitRequiredInput]] (the same): moves a LIMIT into an input, where it may.
 *  1. [[optimizer.DropUnusedInputs]] (the same): leaves out inputs that make no difference.
 *  1. [[optimizer.PruneNestedColumns]] (the same): takes fields out of structs below the join.
 *  1. [[technique.PushThroughSaltKeys]] (optimizer, the same batch): moves predicates below the salts
 *     of a salted join.
 *  1. [[skew.MarkWrittenJoins]] (optimizer, the same batch): tells joins whose tasks write files.
 *  1. [[planner.MultiFullJoinStrategy]] (planner, before Spark's own strategies): plans a
 *     multi-way join as one operator, and what its inputs are asked while the query runs
 *     ([[planner.RuntimeFilters]]).
 *  1. [[technique.SaltedJoinStrategy]] (the same): plans salts, and the join on them.
 *  1. [[technique.MarkedBroadcastJoinStrategy]] (the same): plans a join whose broadcast side is preserved.
 *  1. [[function.FindingStrategy]] (the same): plans the reports of table functions.
 *  1. [[planner.SpreadNullKeys]] (adaptive execution, before exchanges are planned): keeps rows
 *     with a null key from all going to one task.
 *  1. [[skew.RequiredLayout]] (the same): remembers which joins' partitions the query asks for.
 *  1. [[bucket.PruneBuckets]] (when exchanges are planned): leaves out buckets by what is asked of
 *     bucket columns.
 *  1. [[bucket.MergeSortedFiles]] (when exchanges are planned, and Spark has seen which scans need
 *     their buckets): merges sorted files where Spark would sort their rows.
 *  1. [[skew.RequiredLayout.AfterExchanges]] (adaptive execution, when exchanges are planned): forgets those
 *     that are shuffled once more.
 *  1. [[technique.CheckBroadcasts]] (the same): stops a query that has built a broadcast that is too
 *     large.
 *  1. [[skew.UndoReplicatingSplits]] (adaptive execution, when exchanges are planned, after Spark's
 *     own rule for skewed joins): takes back its splits of a MERGE's source.
 *  1. [[skew.ForceSkewedJoins]] (adaptive execution, when exchanges are planned, after Spark's own
 *     rule for skewed joins): splits skewed joins at the price of a shuffle, if asked to.
 *  1. [[skew.SketchJoinKeys]] (adaptive execution, when exchanges are planned): counts keys below
 *     the exchanges of joins.
 *  1. [[planner.BulkExchanges]] (when exchanges are planned): exchanges that do less for each row.
 *  1. [[bucket.PruneBucketsByKeys]] (adaptive execution, on a stage whose inputs are there, after
 *     Spark has coalesced partitions): leaves out buckets by the keys of a join's other side.
 *  1. [[skew.SplitSkewedJoins]] (the same): splits skewed partitions of joins.
 *
 * Rules that follow each other at one extension point are one rule to Spark ([[RuleGroup]]), which looks
 * once whether the plan has a join, or reads a bucketed table, at all.
 *
 * An application whose UI or event log is on gets a tab ([[org.apache.spark.sql.skewext.ui.SkewextTab]]).
 *
 * Applying it twice to the same session does nothing the second time. It never throws: an exception
 * here would keep the session, and on some platforms the cluster, from starting.
 */
class SkewExtensions extends (SparkSessionExtensions => Unit) {
  override def apply(extensions: SparkSessionExtensions): Unit =
    // Outside of the guard, which may not load with another Scala.
    if (SparkLine.isOurs) Guard.protect("loading the extension", ())(load(extensions))
    else SparkLine.warnOnce()

  private def load(extensions: SparkSessionExtensions): Unit =
    if (!Guard.sparkIsSupported) {
      SparkLine.warnOnce()
    } else if (SkewExtensions.applied.add(extensions)) {
      extensions.injectResolutionRule(_ => GuardedRule(ResolveSkewJoinHints))
      extensions.injectResolutionRule(_ => GuardedRule(KeepCommonTables))
      TableFunctions.all.foreach(extensions.injectTableFunction)
      extensions.injectOptimizerRule(SkewExtensions.loadedOptimizerRules)
      extensions.injectRuntimeOptimizerRule(_ => GuardedRule(PropagateEmptyInputs.AtRuntime))
      SkewExtensions.strategies.foreach(strategy => extensions.injectPlannerStrategy(_ => strategy))
      extensions.injectQueryPostPlannerStrategyRule(_ => SkewExtensions.rulesBeforeExchanges)
      extensions.injectQueryStagePrepRule(_ => CheckBroadcasts)
      // First: which sorts are left says what is wanted of a join.
      extensions.injectQueryStagePrepRule(_ => SkewExtensions.rulesOfScans)
      extensions.injectColumnar(_ => InStaticPlans(SkewExtensions.rulesOfScans))
      extensions.injectQueryStagePrepRule(_ => SkewExtensions.rulesOfExchanges)
      extensions.injectColumnar(_ => InStaticPlans(SkewExtensions.rulesOfBulkExchanges))
      extensions.injectQueryStageOptimizerRule(_ => GuardedRule(PruneBucketsByKeys))
      extensions.injectQueryStageOptimizerRule(_ => GuardedRule(SplitSkewedJoins))
      SkewextTab.attachToActive()
    }
}

object SkewExtensions {

  private val applied =
    Collections.newSetFromMap(
      Collections.synchronizedMap(new WeakHashMap[SparkSessionExtensions, java.lang.Boolean]()))

  /** In this order: when skewext is switched off, the first leaves nothing for the others. */
  private val optimizerRules: Seq[Rule[LogicalPlan]] =
    Seq(
      LowerMultiFullJoin,
      PropagateEmptyInputs,
      NarrowRoles,
      FoldPresentColumns,
      PushKeyPredicates,
      PushSemiJoins,
      FilterNullKeys,
      InferKeyPredicates,
      DropInputSorts,
      LimitRequiredInput,
      DropUnusedInputs,
      PruneNestedColumns,
      PushThroughSaltKeys,
      MarkWrittenJoins)

  private def loadedOptimizerRules(session: SparkSession): Rule[LogicalPlan] = {
    val rules = optimizerRules.patch(1, Seq(RewriteJoinChains), 0) :+ PlanSkewJoins(session)
    new LogicalJoinRules(rules: _*)
  }

  /** A session that registered late has chosen our joins by name; its own stay as they are. */
  private val lateOptimizerRules: Rule[LogicalPlan] = new LogicalJoinRules(optimizerRules: _*)

  private val rulesBeforeExchanges: Rule[SparkPlan] =
    new PhysicalJoinRules(SpreadNullKeys, RequiredLayout)

  private val rulesOfExchanges: Rule[SparkPlan] =
    new PhysicalJoinRules(
      RequiredLayout.AfterExchanges,
      UndoReplicatingSplits,
      ForceSkewedJoins,
      SketchJoinKeys,
      BulkExchanges)

  private val rulesOfBulkExchanges: Rule[SparkPlan] = new PhysicalJoinRules(BulkExchanges)

  /** In this order: files of buckets that are not read need not be merged. */
  private val rulesOfScans: Rule[SparkPlan] =
    new BucketedScanRules(PruneBuckets, MergeSortedFiles)

  private val strategies: Seq[SparkStrategy] =
    Seq(
      MultiFullJoinStrategy,
      MultiFullJoinStrategy.AsSparksJoins,
      SaltedJoinStrategy,
      MarkedBroadcastJoinStrategy,
      FindingStrategy).map(GuardedStrategy(_))

  /**
   * Registers with a session that runs already what can be registered so late: the strategy and the
   * rules of the optimizer. Registering again does nothing.
   */
  def register(session: SparkSession): Unit = if (!LoadedExtension.canPlanIn(session)) {
    val experimental = session.experimental
    experimental.extraStrategies = experimental.extraStrategies ++ strategies
    experimental.extraOptimizations = experimental.extraOptimizations :+ lateOptimizerRules
    SkewextTab.attach(session.sparkContext)
  }
}
