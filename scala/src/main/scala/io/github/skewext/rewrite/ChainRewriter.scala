package io.github.skewext.rewrite

import io.github.skewext.join.InputRole.Optional
import io.github.skewext.join.{InputRole, JoinOrigin, JoinTypeName, MultiFullJoin}
import io.github.skewext.platform.SkewConf
import io.github.skewext.rewrite.RewriteReason.Detailed
import io.github.skewext.technique.hint.TechniqueHint

import org.apache.spark.sql.catalyst.expressions.{Left => _, Right => _, _}
import org.apache.spark.sql.catalyst.optimizer.NormalizeNaNAndZero
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical.{CTERelationDef, Filter, Join, LogicalPlan, Project}
import org.apache.spark.sql.catalyst.trees.TreePattern.{JOIN, OUTER_REFERENCE, PLAN_EXPRESSION}
import org.apache.spark.sql.internal.SQLConf

/**
 * One run of [[RewriteJoinChains]] over a plan.
 *
 * @param hasMultiJoins whether the plan already contains multi-way joins.
 * @param scans the scans that Spark will prune at run time with keys from joins of the plan.
 * @param keepsIds whether columns must keep their ids after Spark has removed redundant aliases.
 */
private[skewext] class ChainRewriter(
    conf: SQLConf,
    hasMultiJoins: Boolean,
    scans: => Seq[LogicalPlan],
    keepsIds: Boolean = false)
    extends PredicateHelper {

  private lazy val prunedScans = scans

  private val isEnabled = conf.getConf(SkewConf.MULTI_JOIN_REWRITE)

  private var numInputs = 0

  def rewrite(plan: LogicalPlan): LogicalPlan = planOf(groupOf(plan))

  private def single(plan: LogicalPlan, obstacles: List[Detailed] = Nil): JoinTree = {
    numInputs += 1
    JoinTree(plan, Seq(JoinTreeInput(numInputs, plan, Optional, Nil)), obstacles = obstacles)
  }

  /** The tree as one input, whose keys are unknown. */
  private def nest(group: JoinTree, why: Detailed): JoinTree =
    single(planOf(group), why :: group.obstacles)

  private def groupOf(plan: LogicalPlan): JoinTree = plan match {
    case plan if !hasMultiJoins && !plan.containsPattern(JOIN) => single(plan)
    case project: Project =>
      val group = groupOf(project.child)
      obstacle(group, project.projectList) match {
        case Some(why) if !group.isSingle =>
          single(project.withNewChildren(Seq(planOf(group))), why :: group.obstacles)
        case None if !group.isSingle => through(project, group)
        case _ => single(project.withNewChildren(Seq(group.original)), group.obstacles)
      }
    case filter: Filter =>
      val group = groupOf(filter.child)
      if (group.isSingle || obstacle(group, Seq(filter.condition)).isDefined) {
        single(filter.withNewChildren(Seq(planOf(group))), group.obstacles)
      } else {
        group.copy(
          original = filter.withNewChildren(Seq(group.original)),
          conditions = group.conditions :+ group.translate(filter.condition))
      }
    case join: Join => groupOf(join)
    case join: MultiFullJoin => groupOf(join)
    // The plan of a CTE that several references read, and that is computed once. Spark refers to
    // its columns by the ids from the time when it first pushed something into it. With other ids
    // it would confuse columns.
    case definition: CTERelationDef =>
      val within = new ChainRewriter(conf, hasMultiJoins, prunedScans, keepsIds = true)
      single(definition.mapChildren(within.rewrite))
    case other => single(other.mapChildren(rewrite))
  }

  /** The reason why the expressions cannot be computed above the multi-way join of the tree. */
  private def obstacle(group: JoinTree, expressions: Seq[Expression]): Option[Detailed] =
    if (group.isSingle) None
    else {
      expressions
        .collectFirst {
          case e if !e.deterministic => RewriteReason.NonDeterministic(e.sql)
          case e if e.containsPattern(PLAN_EXPRESSION) => RewriteReason.Subquery.given
        }
        .orElse(repeated(group, expressions))
    }

  /**
   * Refuses to repeat a large expression that is computed once, because plans would grow like 2^N.
   */
  private def repeated(group: JoinTree, expressions: Seq[Expression]): Option[Detailed] =
    expressions
      .flatMap(_.collect {
        case a: Attribute if group.columns.definitions.contains(a.exprId) => a
      })
      .groupBy(_.exprId)
      .collectFirst {
        case (id, several) if several.size > 1 && isLarge(group.columns.definitions(id)) =>
          RewriteReason.RepeatedExpression(several.head.sql)
      }

  private def isLarge(e: Expression): Boolean = e.collect { case node => node }.size > 8

  private def through(project: Project, group: JoinTree): JoinTree = {
    val defined = project.projectList.collect { case alias: Alias =>
      alias.exprId -> group.translate(alias.child)
    }
    val computed = defined.collect {
      case (id, e) if !e.isInstanceOf[Attribute] && !e.isInstanceOf[ChainKey] => id
    }
    val stillComputed = project.projectList.collect {
      case a: Attribute if group.columns.computed.contains(a.exprId) => a.exprId
    }
    group.copy(
      original = project.withNewChildren(Seq(group.original)),
      columns = group.columns.defining(defined).copy(computed = (computed ++ stillComputed).toSet))
  }

  private def groupOf(join: Join): JoinTree = {
    val before = RewriteReason.of(join).filter(_.reason != RewriteReason.TwoInputs)
    RewriteReason.clear(join)
    JoinTreePlanner.remember(join)
    val left = groupOf(join.left)
    val right = groupOf(join.right)
    val joined = for {
      roles <- rolesOf(join)
      _ <- unhinted(join)
      keys <- equalKeys(join)
      _ <- mayFold(join, left, right)
      sides = Seq(
        JoinSide(left, roles._1, keys.map(_._1)),
        JoinSide(right, roles._2, keys.map(_._2)))
      found <- JoinTreeMerger.of(sides, nest)
      _ <- folds(join, left, right, found)
    } yield {
      val original = join.withNewChildren(found.originals)
      RewriteReason.clear(original)
      found.group(original, Seq(describe(join.joinType)))
    }
    joined match {
      case Right(group) => group
      case Left(found) =>
        val original = join.withNewChildren(Seq(planOf(left), planOf(right)))
        // Since an earlier run, Spark may have put filters of null keys between the joins.
        val why = if (BroughtByFilters(found.reason)) before.getOrElse(found) else found
        RewriteReason.set(original, why)
        single(original, List(why))
    }
  }

  private def rolesOf(join: Join): Either[Detailed, (InputRole, InputRole)] =
    InputRole
      .ofSides(join.joinType)
      .filter(_ => join.joinType != Cross && join.joinType != LeftSemi)
      .toRight(RewriteReason.JoinType(JoinTypeName.of(join.joinType)))

  private def unhinted(join: Join): Either[Detailed, Unit] =
    TechniqueHint.asked(join).map(RewriteReason.Hint(_)).toLeft(())

  /** The compared expressions, over the left and over the right side. */
  private def equalKeys(join: Join): Either[Detailed, Seq[(Expression, Expression)]] = {
    def isOver(e: Expression, side: LogicalPlan): Boolean =
      e.references.nonEmpty && e.references.subsetOf(side.outputSet)
    val keys = join.condition.toSeq.flatMap(splitConjunctivePredicates).map {
      case e if !e.deterministic => Left(RewriteReason.NonDeterministic(e.sql))
      case e if e.containsPattern(PLAN_EXPRESSION) => Left(RewriteReason.Subquery.given)
      case EqualTo(l, r) if isOver(l, join.left) && isOver(r, join.right) =>
        Right(asWritten(l) -> asWritten(r))
      case EqualTo(l, r) if isOver(r, join.left) && isOver(l, join.right) =>
        Right(asWritten(r) -> asWritten(l))
      case e: EqualNullSafe => Left(RewriteReason.NullSafeEquality(e.sql))
      case e => Left(RewriteReason.ResidualCondition(e.sql))
    }
    if (keys.isEmpty) {
      Left(RewriteReason.NoCondition.given)
    } else {
      keys.collectFirst { case Left(why) => why }.toLeft(keys.collect { case Right(key) => key })
    }
  }

  /**
   * Removes the normalization that Spark 4.2 adds early to a floating-point key. The operator
   * normalizes keys itself.
   */
  private def asWritten(key: Expression): Expression = key match {
    case KnownFloatingPointNormalized(NormalizeNaNAndZero(child)) => child
    case other => other
  }

  /** Rejects most joins of most queries before they cause more work. */
  private def mayFold(join: Join, left: JoinTree, right: JoinTree): Either[Detailed, Unit] =
    if (join.joinType == FullOuter || !left.isSingle || !right.isSingle) Right(())
    else Left(RewriteReason.NoShuffleSaved(describe(join.joinType)))

  /** Whether a join that is not full outer becomes part of the chain. */
  private def folds(
      join: Join,
      left: JoinTree,
      right: JoinTree,
      found: JoinTreeMerger): Either[Detailed, Unit] =
    if (join.joinType == FullOuter) {
      Right(())
    } else if (Seq(left, right).exists(isPruned)) {
      Left(RewriteReason.PartitionPruning(describe(join.joinType)))
    } else if (!found.isPaying) {
      // A side could have kept its inputs separate but for this.
      val nested = Seq(left, right).zip(found.groups).collectFirst {
        case (side, group) if !side.isSingle && group.isSingle => group.obstacles.head
      }
      Left(nested.getOrElse(RewriteReason.NoShuffleSaved(describe(join.joinType))))
    } else {
      Right(())
    }

  /**
   * Whether Spark prunes the scan of a single input. Scans of a tree with several inputs have
   * already been checked, or are below full outer joins, which read all rows.
   */
  private def isPruned(side: JoinTree): Boolean =
    side.isSingle && prunedScans.exists(scan => side.original.exists(_ eq scan))

  /**
   * A multi-way join is a chain, too, whether the query calls it by name or an earlier rewrite made
   * it.
   */
  private def groupOf(join: MultiFullJoin): JoinTree = {
    JoinTreePlanner.remember(join)
    val children = join.children.map(groupOf)
    val keys = join.keys
    // A hint says what is to be done with its input of this join, and not of a larger one.
    val isPlain = join.indicator.isEmpty && join.hints.isEmpty && keys == join.keyColumns &&
      keys.forall(_.map(_.dataType) == join.keyOutput.map(_.dataType))
    val found = if (isPlain) {
      val sides = children.indices.map(i => JoinSide(children(i), join.roles(i), keys(i)))
      // It returns each of its keys, also of rows where keys in one column of the tree differ.
      JoinTreeMerger.of(sides, nest).toOption.filter(_.hasOwnKeys)
    } else {
      None
    }
    found
      .map { found =>
        val group = found.group(join.withNewChildren(found.originals), Seq(NamedJoin))
        group.copy(columns = group.columns.defining(join.keyOutput.zip(found.columnOf).map {
          case (a, column) => a.exprId -> ChainKey(column, found.inputsOfKey(column), a.dataType)
        }))
      }
      .getOrElse(single(join.withNewChildren(children.map(planOf))))
  }

  private def describe(joinType: JoinType): String = s"${JoinTypeName.lower(joinType)} join"

  private val NamedJoin = "multi-way join"

  private val BroughtByFilters: Set[RewriteReason] =
    Set(RewriteReason.NoShuffleSaved, RewriteReason.FilterBetween)

  /** The plan of a tree that gets no more inputs. */
  private def planOf(group: JoinTree): LogicalPlan =
    if (group.isSingle || group.joins == Seq(NamedJoin)) {
      group.original
    } else {
      val why = if (group.original.isStreaming) {
        Some(RewriteReason.Streaming.given)
      } else if (group.original.containsPattern(OUTER_REFERENCE)) {
        Some(RewriteReason.OuterReference.given)
      } else if (sharesColumnsWithSubquery(group.original)) {
        Some(RewriteReason.SharedSubquery.given)
      } else if (group.inputs.size == 2) {
        Some(group.obstacles.headOption.getOrElse(RewriteReason.TwoInputs.given))
      } else if (!isEnabled) {
        Some(RewriteReason.SwitchedOff.given)
      } else {
        None
      }
      why match {
        case Some(given) =>
          group.top.foreach(RewriteReason.set(_, given))
          group.original
        case None =>
          val (plan, join) = new JoinTreePlanner(group, keepsIds).plan()
          JoinOrigin.set(join, JoinOrigin.Rewritten(madeOf(group.joins)))
          plan
      }
    }

  /**
   * Whether a correlated subquery has the same columns as the plan around it. An alias keeps them
   * apart. Spark removes this alias as redundant if none of its own joins is above, and then fails.
   */
  private def sharesColumnsWithSubquery(plan: LogicalPlan): Boolean = {
    def columns(plan: LogicalPlan) =
      AttributeSet.fromAttributeSets(plan.collect { case node => node.outputSet })
    plan.containsPattern(PLAN_EXPRESSION) && plan.exists { node =>
      lazy val own = AttributeSet.fromAttributeSets(node.children.map(columns))
      node.expressions.exists(_.exists {
        case subquery: SubqueryExpression if subquery.references.nonEmpty =>
          columns(subquery.plan).exists(own.contains)
        case _ => false
      })
    }
  }

  /** For example, `2 full outer joins and 1 left outer join`. */
  private def madeOf(joins: Seq[String]): String =
    joins.distinct
      .map { kind =>
        val n = joins.count(_ == kind)
        s"$n $kind${if (n == 1) "" else "s"}"
      }
      .mkString(" and ")
}
