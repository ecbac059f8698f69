package io.github.skewext.technique

import io.github.skewext.facts.{ComparedByBytes, DropsRecords, JoinHints, StableRows}
import io.github.skewext.join.{InputRole, JoinTypeName, PlanCopies}
import io.github.skewext.platform.LoadedExtension
import io.github.skewext.technique.hint.{TechniqueHint, TechniqueOptions}

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.{Left => _, Right => _, _}
import org.apache.spark.sql.catalyst.optimizer.{BuildLeft, BuildRight, BuildSide}
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.TreePattern.OUTER_REFERENCE
import org.apache.spark.sql.skewext.SqlInternals

/**
 * A join for a technique to plan. Spark has put the projection of the result above the join, also
 * for `USING`, so it does not concern the technique.
 *
 * @param join one of Spark's joins on equal keys; its sides share no attributes.
 * @param leftKeys the expressions that are compared with `rightKeys`, one by one, in one type. A
 *                 NULL in any of them matches no row. Null-safe comparisons become expressions that
 *                 are never null.
 * @param condition the predicate that rows with equal keys must also satisfy to match.
 * @param wanted the technique, whose name the joins of its plan carry, and its options.
 */
case class TechniqueRequest(
    session: SparkSession,
    join: Join,
    leftKeys: Seq[Expression],
    rightKeys: Seq[Expression],
    condition: Option[Expression],
    wanted: TechniqueHint.Wanted) {

  def technique: String = wanted.technique

  def options: TechniqueOptions = wanted.options

  def left: LogicalPlan = join.left

  def right: LogicalPlan = join.right

  def joinType: JoinType = join.joinType

  def plan(side: BuildSide): LogicalPlan = side match {
    case BuildLeft => left
    case BuildRight => right
  }

  def keys(side: BuildSide): Seq[Expression] = side match {
    case BuildLeft => leftKeys
    case BuildRight => rightKeys
  }

  /** The number of columns that the join of the query compares. */
  def numKeyColumns: Int = wanted.called.fold(ComparedColumn.of(this).size)(_.keyColumns)

  /**
   * The same request, with equalities of predicates above as a part of the condition. Spark makes
   * them the first keys of an inner join.
   */
  def onKeysOfCall: TechniqueRequest = {
    val added = leftKeys.size -
      ComparedColumn.of(this).takeRight(numKeyColumns).map(_.numComparisons).sum
    val Seq(left, right) = Seq(leftKeys, rightKeys).map(_.splitAt(added))
    if (added == 0) this
    else {
      val more = TechniqueRequest.equal(left._1, right._1) +: condition.toSeq
      copy(leftKeys = left._2, rightKeys = right._2, condition = Some(more.reduce(And)))
    }
  }

  /** Whether the join returns each row of a side, matched or not. */
  def isPreserved(side: BuildSide): Boolean = (joinType, side) match {
    case (FullOuter, _) | (LeftOuter, BuildLeft) | (RightOuter, BuildRight) => true
    case _ => false
  }

  /** Whether the join only selects rows of the left side. */
  def selectsLeft: Boolean = joinType == LeftSemi || joinType == LeftAnti

  /** The number of partitions of a shuffle. */
  def numPartitions: Int = session.sessionState.conf.numShufflePartitions

  /** The optimizer's estimate of the size of a side, in bytes. */
  def sizeOf(side: BuildSide): BigInt = plan(side).stats.sizeInBytes

  /**
   * The join that a hint of Spark requests, if Spark supports it. Such a hint precedes a technique.
   */
  def asHinted: Option[TechniquePlan] = {
    val sides = Seq[(BuildSide, Option[HintInfo])](
      BuildLeft -> join.hint.leftHint,
      BuildRight -> join.hint.rightHint)
    sides
      .flatMap { case (side, hint) => hint.flatMap(_.strategy).map(side -> _) }
      .collectFirst {
        case (side, BROADCAST) if BroadcastJoin.possible(joinType).contains(side) => BROADCAST
        case (_, strategy) if strategy != BROADCAST => strategy
      }
      .map(strategy => TechniquePlan(sameJoin(), s"as the hint ${strategy.displayName} requests"))
  }

  /** Refuses sides that are read twice but may return other rows the second time. */
  def checkStable(sides: Seq[BuildSide]): Either[TechniqueReason.Detailed, Unit] =
    sides
      .find { side =>
        DropsRecords(plan(side)) || PlanCopies.isCounted(plan(side)) ||
        !StableRows.areInCopies(session, plan(side))
      }
      .map { side =>
        TechniqueReason.NotStable(
          s"the ${BroadcastSide.nameOf(side)} side; write it to a table first")
      }
      .toLeft(())

  /**
   * Refuses a subquery that refers to columns of the sides by their ids, for a plan with copies of
   * the sides. In a session with the extension, the optimizer has moved such references out of the
   * subquery before it plans the technique.
   */
  def checkSubqueries: Either[TechniqueReason.Detailed, Unit] = {
    val refers = join.condition.exists(_.exists {
      case subquery: SubqueryExpression => subquery.plan.containsPattern(OUTER_REFERENCE)
      case _ => false
    })
    Either.cond(
      !refers || LoadedExtension.isIn(session),
      (),
      TechniqueReason.CorrelatedSubquery.given)
  }

  /** The same join, with a broadcast side if one is given. */
  def sameJoin(broadcast: Option[BuildSide] = None): Join =
    if (broadcast.isDefined) joined(left, right, joinType, join.condition, broadcast)
    else TechniqueHint.on(join, TechniqueHint.Made(technique, options))

  /**
   * One of Spark's joins, as a part of the technique's plan.
   *
   * @param broadcast the side to broadcast.
   */
  def joined(
      left: LogicalPlan,
      right: LogicalPlan,
      joinType: JoinType,
      condition: Option[Expression],
      broadcast: Option[BuildSide] = None): Join = {
    def hint(side: BuildSide) = Some(
      TechniqueHint(
        TechniqueHint.Made(technique, options, broadcasts = broadcast.isDefined),
        if (broadcast.contains(side)) Some(BROADCAST) else None))
    Join(left, right, joinType, condition, JoinHint(hint(BuildLeft), hint(BuildRight)))
  }
}

object TechniqueRequest {

  /** The join of an analyzed query, if it compares columns. */
  def called(join: Join): Option[TechniqueHint.Call] = join match {
    case ExtractEquiJoinKeys(joinType, leftKeys, rightKeys, _, _, _, _, _) =>
      // Spark's optimizer removes repeated comparisons.
      val comparisons = ExpressionSet(leftKeys.zip(rightKeys).map { case (l, r) => EqualTo(l, r) })
      val (left, right) = comparisons.toSeq.collect { case EqualTo(l, r) => (l, r) }.unzip
      Some(TechniqueHint.Call(joinType, ComparedColumn.of(left, right).size))
    case _ => None
  }

  /** Returns the request for a join, or the reason why no technique supports the join. */
  def of(
      session: SparkSession,
      join: Join,
      wanted: TechniqueHint.Wanted): Either[TechniqueReason.Detailed, TechniqueRequest] =
    join match {
      case _ if JoinHints.forbidsReplication(join) => Left(TechniqueReason.MergeTarget.given)
      case _ if SqlInternals.readsWrittenTable(join) => Left(TechniqueReason.WrittenTable.given)
      case _ if join.left.isStreaming || join.right.isStreaming =>
        Left(TechniqueReason.Streaming.given)
      case _ if InputRole.ofSides(join.joinType).isEmpty =>
        Left(TechniqueReason.JoinType(JoinTypeName.lower(join.joinType)))
      case ExtractEquiJoinKeys(_, leftKeys, rightKeys, condition, _, _, _, _) =>
        val collated = leftKeys.map(_.dataType).find(ComparedByBytes.mayDiffer)
        collated
          .map(keyType => TechniqueReason.KeyType(keyType.sql))
          .toLeft(TechniqueRequest(session, join, leftKeys, rightKeys, condition, wanted))
      case _ => Left(TechniqueReason.NoEqualKeys.given)
    }

  /** `a = x AND b = y` */
  def equal(left: Seq[Expression], right: Seq[Expression]): Expression =
    left.zip(right).map { case (l, r) => EqualTo(l, r): Expression }.reduce(And)
}
