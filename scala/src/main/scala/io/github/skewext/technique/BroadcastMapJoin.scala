package io.github.skewext.technique

import io.github.skewext.facts.KeptInPlace
import io.github.skewext.inputs.NewIds
import io.github.skewext.join.PlanCopies
import io.github.skewext.technique.hint.TechniqueHint

import org.apache.spark.sql.catalyst.expressions.{Left => _, Right => _, _}
import org.apache.spark.sql.catalyst.optimizer.{BuildLeft, BuildRight, BuildSide}
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.skewext.SqlInternals

/**
 * A join of any type with a broadcast side: also a full outer join, and a join that returns
 * unmatched rows of the broadcast side. The other side, the large one, is not shuffled.
 *
 * The unmatched rows of the small side are known only after all of the large side is read. No
 * single task has this information, and updates from running tasks are unreliable, because tasks
 * may fail and run again. So the keys of the large side are read first, and mark the rows that they
 * match.
 * {{{
 * MarkedBroadcastJoin                    rows of large with matches, unmarked rows of small
 *   large
 *   Project [small, id]                  broadcast once
 *     small
 *   Project [k]                          reads only the keys of large
 *     large
 * }}}
 * The large side is read twice, the second time only its keys. Semi and anti joins that return rows
 * of the small side join them with the distinct keys of the large side that occur in the small one:
 * {{{
 * Join small LEFT SEMI (or ANTI) met     broadcasts met
 *   Aggregate [k]                        shuffles at most the keys of small per task
 *     Join large LEFT SEMI small         reads only the keys of large, and broadcasts small
 * }}}
 * Both sides must be stable: they must return the same rows each time.
 */
object BroadcastMapJoin extends SkewTechnique {

  override val name: String = "broadcast_map"

  override def optionNames: Seq[String] = Seq(BroadcastSide.OptionName)

  override def plan(request: TechniqueRequest): Either[TechniqueReason.Detailed, TechniquePlan] =
    BroadcastSide.choose(request, Seq(BuildRight, BuildLeft)).flatMap { small =>
      if (BroadcastJoin.possible(request.joinType).contains(small)) {
        Right(BroadcastJoin.sparks(request, small))
      } else {
        for {
          _ <- TechniqueReason.Condition.refusesIf(request.condition.isDefined)
          _ <- TechniqueReason.BarrierStage.refusesIf(
            request.wanted.inBarrierStage && !request.selectsLeft)
          _ <- request.checkSubqueries
          _ <- request.checkStable(Seq(BuildLeft, BuildRight))
        } yield withUnmatched(request, small)
      }
    }

  private def withUnmatched(request: TechniqueRequest, small: BuildSide): TechniquePlan = {
    val large = BroadcastSide.other(small)
    val said = s"${BroadcastSide.described(request, small)} is broadcast, " +
      s"${BroadcastSide.described(request, large)} is not shuffled, and read"
    if (request.selectsLeft) TechniquePlan(selected(request, small), s"$said once, its keys only")
    else TechniquePlan(marked(request, small), s"$said twice, the second time its keys only")
  }

  private def marked(request: TechniqueRequest, small: BuildSide): LogicalPlan = {
    val large = BroadcastSide.other(small)
    // Spark keeps the columns of its own joins' sides apart, but not those of other nodes' children.
    val Seq((largeRows, ofLarge), (smallRows, ofSmall)) =
      NewIds.separated(Seq(request.plan(large), request.plan(small)))
    def keysIn(side: BuildSide, columnOf: Attribute => Attribute) =
      request.keys(side).map(_.transform { case a: Attribute => columnOf(a) })
    val smallKeys = keysIn(small, ofSmall)
    // Rows with a null in the key match no row, and are not in the broadcast relation.
    val nullable = smallKeys.filter(_.nullable)
    val (smallWithKeys, keptKeys) = KeptInPlace.keys(smallRows, nullable)
    val withKeys = keptKeys
      .map(IsNotNull(_): Expression)
      .reduceOption(And)
      .fold(smallWithKeys)(Filter(_, smallWithKeys))
    val id = Alias(MonotonicallyIncreasingID(), "id")()
    val ofSeen = SideCopy.of(request, large)
    val seen = ofSeen.keysOf(ofSeen.plan)
    val join = MarkedBroadcastJoin(
      Seq(largeRows, Project(smallRows.output :+ id, withKeys), seen),
      Seq(keysIn(large, ofLarge), smallKeys, seen.output).map(_.map(SqlInternals.normalizeFloats)),
      id.toAttribute,
      request.joinType,
      small,
      TechniqueHint.Made(request.technique, request.options, broadcasts = true))
    val nullKeys = if (nullable.isEmpty) None else Some(withNullKeys(request, small))
    PlanCopies.union(join +: nullKeys.toSeq, request.join.output)
  }

  /** The rows of the small side with a null in the key, as rows of the join. */
  private def withNullKeys(request: TechniqueRequest, small: BuildSide): LogicalPlan = {
    val rows = SideCopy.of(request, small)
    val isNull = rows.keys.filter(_.nullable).map(IsNull(_): Expression).reduce(Or)
    rows.unmatched(Filter(isNull, rows.plan))
  }

  /** The rows of the small side with a match, or those without one, for a semi or anti join. */
  private def selected(request: TechniqueRequest, small: BuildSide): LogicalPlan = {
    def joined(left: LogicalPlan, right: LogicalPlan, joinType: JoinType, equal: Expression) =
      request.joined(left, right, joinType, Some(equal), broadcast = Some(BuildRight))
    val large = SideCopy.of(request, BroadcastSide.other(small))
    val wanted = SideCopy.of(request, small)
    val keys = large.keysOf(large.plan)
    val equal = TechniqueRequest.equal(keys.output, wanted.keys)
    // The distinct keys of the large side that occur in the small side.
    val met = SideCopy.distinct(joined(keys, wanted.plan, LeftSemi, equal))
    joined(
      request.plan(small),
      met,
      request.joinType,
      TechniqueRequest.equal(request.keys(small), met.output))
  }
}
