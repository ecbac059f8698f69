package io.github.skewext

import java.util.concurrent.atomic.AtomicBoolean
import java.util.{Collections, WeakHashMap}

import io.github.skewext.asof.{BoundAsOfTimes, PruneAsOfInputs, PushAsOfPredicates, RewriteSparkAsOfJoins, SelectAsOfColumns}
import io.github.skewext.bucket.{BucketedScanRules, PruneBuckets, ShuffleWrongBuckets, UseSortedFiles}
import io.github.skewext.disjunction.RewriteOrJoins
import io.github.skewext.explain.Doctor
import io.github.skewext.facts.BuiltinShuffledJoin
import io.github.skewext.function.{KeepCommonTables, TableFunctions}
import io.github.skewext.join.MultiFullJoinStrategy
import io.github.skewext.join.optimizer.{DropInputSorts, DropUnusedInputs, FilterNullKeys, InferKeyPredicates, LimitRequiredInput, LowerMultiFullJoin, NarrowRoles, PropagateEmptyInputs, PruneNestedColumns, PushKeyPredicates, PushSemiJoins}
import io.github.skewext.join.probe.{PlanShuffledJoins, SeparateInputs}
import io.github.skewext.join.range.{CutRangeJoins, DropRangeHints, PlanRangeJoins}
import io.github.skewext.latest.{DropGroupLimits, RewriteRowNumbers}
import io.github.skewext.merge.{MergeQuery, SpreadSourceNullKeys, UndoReplicatingSplits}
import io.github.skewext.nullkeys.SpreadNullKeys
import io.github.skewext.platform.Guard.{linked, linkedStrategy}
import io.github.skewext.platform.{ExtensionPoints, Guard, GuardedRule, GuardedStrategy, LoadedExtension, LogicalJoinRules, NonAdaptiveRules, OwnOperators, RestoreBegunBroadcasts, RuleGroup, SparkLine}
import io.github.skewext.rewrite.RewriteJoinChains
import io.github.skewext.shuffle.{PlanColumnExchanges, ReadsColumns}
import io.github.skewext.skew.plan.SkewReason
import io.github.skewext.skew.split.{MarkWrittenJoins, RequiredLayout, SketchJoinKeys, SplitSkewedJoins}
import io.github.skewext.technique.{CheckBroadcasts, ListFilesOnce, PlanSkewJoins, PushThroughSaltKeys, ResolveSkewJoinHints}
import org.slf4j.LoggerFactory

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern.{EXISTS_SUBQUERY, LIST_SUBQUERY}
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy}
import org.apache.spark.sql.skewext.SparkShims
import org.apache.spark.sql.skewext.ui.SkewextTab
import org.apache.spark.sql.{SparkSession, SparkSessionExtensions}

/**
 * The entry point: `spark.sql.extensions=io.github.skewext.SkewExtensions`.
 *
 * `docs/rules.md` lists the rules that it registers, and where Spark runs them.
 *
 * Consecutive rules at one extension point are one Spark rule ([[RuleGroup]]). It checks once
 * whether the plan has a join, or reads a bucketed table.
 *
 * An application whose UI or event log is enabled gets a tab
 * ([[org.apache.spark.sql.skewext.ui.SkewextTab]]).
 *
 * The log has one line at level INFO, before the first query: the parts that are active, and why
 * others are off.
 *
 * A second application to the same session has no effect. It never throws: an exception here would
 * keep the session, and on some platforms the cluster, from starting.
 */
class SkewExtensions extends (SparkSessionExtensions => Unit) {
  override def apply(extensions: SparkSessionExtensions): Unit =
    // The guard itself may fail to load with another version of Scala.
    if (SparkLine.isOurs) {
      Guard.protect("loading the extension", ())(load(extensions))
      // A builder that creates the session of a second application has the extension already.
      Guard.protect("loading the tab", ())(SkewextTab.attachToActive())
    } else SparkLine.warnOnce()

  private def load(extensions: SparkSessionExtensions): Unit =
    if (SkewExtensions.applied.add(extensions)) {
      Guard.protect("loading the hints", ()) {
        SparkShims.injectHintRule(
          extensions,
          _ => GuardedRule(linked(ResolveSkewJoinHints.KeepNames)))
      }
      val isLogged = new AtomicBoolean
      // Spark makes this rule for the session's first query. Earlier there are no settings of it.
      extensions.injectResolutionRule { session =>
        if (isLogged.compareAndSet(false, true)) SkewExtensions.logParts(session)
        GuardedRule(linked(ResolveSkewJoinHints))
      }
      extensions.injectResolutionRule(_ => GuardedRule(linked(DropRangeHints)))
      extensions.injectResolutionRule(_ => GuardedRule(linked(KeepCommonTables)))
      extensions.injectPostHocResolutionRule(_ => GuardedRule(linked(RewriteSparkAsOfJoins)))
      Guard.protect("loading the table functions", ()) {
        TableFunctions.all.foreach(extensions.injectTableFunction)
      }
      extensions.injectOptimizerRule(_ => SkewExtensions.loadedOptimizerRules)
      extensions.injectPreCBORule(_ => SkewExtensions.rulesOfPrunedTables)
      extensions.injectRuntimeOptimizerRule(_ =>
        GuardedRule(linked(PropagateEmptyInputs.AtRuntime)))
      (SkewExtensions.strategies ++ SkewExtensions.strategiesOfSparksNodes).foreach { strategy =>
        extensions.injectPlannerStrategy(_ => strategy)
      }
      extensions.injectQueryStagePrepRule(_ => linked(RestoreBegunBroadcasts))
      extensions.injectQueryStagePrepRule(_ => linked(CheckBroadcasts))
      // Runs first, because the remaining sorts show the order that the query requires of a join.
      extensions.injectQueryStagePrepRule(_ => SkewExtensions.rulesOfScans)
      extensions.injectColumnar(_ => NonAdaptiveRules(SkewExtensions.rulesOfScans))
      extensions.injectColumnar(_ => NonAdaptiveRules(SkewExtensions.rulesOfColumnExchanges))
      if (ExtensionPoints.hasRulesBeforeExchanges) {
        extensions.injectQueryPostPlannerStrategyRule(_ => SkewExtensions.rulesBeforeExchanges)
        extensions.injectQueryStagePrepRule(_ => SkewExtensions.rulesOfExchanges)
        extensions.injectQueryStageOptimizerRule(_ => GuardedRule(linked(SplitSkewedJoins)))
        // After it, because it may replace the join.
        extensions.injectQueryStageOptimizerRule(_ => GuardedRule(linked(SelectAsOfColumns)))
        extensions.injectQueryStageOptimizerRule(_ => GuardedRule(linked(SeparateInputs)))
      } else {
        // Without RequiredLayout it is unknown what relies on the partitions of a join.
        ExtensionPoints.warnOnce()
        extensions.injectQueryStagePrepRule(_ => SkewExtensions.rulesOfColumnExchanges)
      }
    }
}

object SkewExtensions {

  private val applied =
    Collections.newSetFromMap(
      Collections.synchronizedMap(new WeakHashMap[SparkSessionExtensions, java.lang.Boolean]()))

  private val rulesOfMultiJoins: Seq[Rule[LogicalPlan]] =
    Seq(
      linked(PropagateEmptyInputs),
      linked(NarrowRoles),
      linked(PushKeyPredicates),
      linked(PushSemiJoins),
      linked(FilterNullKeys),
      linked(InferKeyPredicates),
      linked(DropInputSorts),
      linked(LimitRequiredInput),
      linked(DropUnusedInputs),
      linked(PruneNestedColumns),
      linked(PushThroughSaltKeys),
      linked(PushAsOfPredicates),
      linked(BoundAsOfTimes),
      linked(PruneAsOfInputs))

  /** If skewext is disabled, this rule leaves no multi-way join for the others. */
  private val lowerMultiJoins: Rule[LogicalPlan] = linked(LowerMultiFullJoin)

  private val rulesOfOwnNodes: Seq[Rule[LogicalPlan]] = lowerMultiJoins +: rulesOfMultiJoins

  /** A value, because Spark asks for its rules each time that it optimizes a plan. */
  private val loadedOptimizerRules: Rule[LogicalPlan] = {
    val rules = Seq(lowerMultiJoins, linked(RewriteJoinChains)) ++ rulesOfMultiJoins ++
      Seq(linked(MarkWrittenJoins), linked(PlanSkewJoins))
    new LogicalJoinRules(rules, rulesOfOwnNodes)
  }

  private val rulesOfPrunedTables: Rule[LogicalPlan] =
    new LogicalJoinRules(
      Seq(
        linked(RewriteOrJoins),
        linked(CutRangeJoins),
        linked(ListFilesOnce),
        linked(ShuffleWrongBuckets)),
      Seq(linked(ShuffleWrongBuckets)),
      alsoFor = Seq(EXISTS_SUBQUERY, LIST_SUBQUERY))

  /**
   * For a session that registered late. It calls skewext's joins by name, and Spark's joins stay.
   * Spark runs these rules after it has pruned tables.
   */
  private val lateOptimizerRules: Rule[LogicalPlan] =
    new LogicalJoinRules(
      rulesOfOwnNodes ++
        Seq(linked(MarkWrittenJoins), linked(ListFilesOnce), linked(ShuffleWrongBuckets)),
      rulesOfOwnNodes)

  private val rulesBeforeExchanges: Rule[SparkPlan] =
    new PhysicalJoinRules(
      linked(SpreadNullKeys),
      linked(SpreadSourceNullKeys),
      linked(RequiredLayout))

  private val rulesOfExchanges: Rule[SparkPlan] =
    new PhysicalJoinRules(
      linked(DropGroupLimits),
      linked(RequiredLayout.AfterExchanges),
      linked(UndoReplicatingSplits(SkewReason.MergeTarget)),
      linked(SketchJoinKeys(MergeQuery.isPartOfOne)),
      linked(PlanColumnExchanges))

  private val rulesOfColumnExchanges: Rule[SparkPlan] =
    new PhysicalJoinRules(
      linked(DropGroupLimits),
      linked(PlanColumnExchanges),
      linked(SeparateInputs))

  /** In this order: only the buckets that are read may have no second file. */
  private val rulesOfScans: Rule[SparkPlan] =
    new BucketedScanRules(linked(PruneBuckets), linked(UseSortedFiles))

  private val strategies: Seq[SparkStrategy] =
    Seq(
      linkedStrategy(MultiFullJoinStrategy),
      linkedStrategy(MultiFullJoinStrategy.AsSparksJoins),
      linkedStrategy(OwnOperators)).map(GuardedStrategy(_))

  private val strategiesOfSparksNodes: Seq[SparkStrategy] =
    Seq(
      linkedStrategy(RewriteRowNumbers),
      linkedStrategy(PlanRangeJoins),
      linkedStrategy(PlanShuffledJoins)).map(GuardedStrategy(_))

  /**
   * Registers with a running session those parts that Spark accepts so late: the strategies and the
   * rules of the optimizer. A second registration has no effect.
   */
  def register(session: SparkSession): Unit = if (!LoadedExtension.canPlanIn(session)) {
    val experimental = session.experimental
    experimental.extraStrategies = experimental.extraStrategies ++ strategies
    experimental.extraOptimizations = experimental.extraOptimizations :+ lateOptimizerRules
    SkewextTab.attach(session.sparkContext)
    logParts(session)
  }

  /** Sessions that are made of this one have the same parts, and are not logged. */
  private def logParts(session: SparkSession): Unit =
    Guard.protect("listing the parts in the log", ()) {
      val log = LoggerFactory.getLogger(classOf[SkewExtensions])
      if (log.isInfoEnabled) log.info(Doctor.summary(session))
    }
}

/** Rules for physical plans with shuffled joins of Spark or skewext. */
private class PhysicalJoinRules(rules: Rule[SparkPlan]*) extends RuleGroup[SparkPlan](rules) {

  override protected def concerns(plan: SparkPlan): Boolean = plan.exists {
    case _: ReadsColumns | BuiltinShuffledJoin(_) => true
    case _ => false
  }
}
