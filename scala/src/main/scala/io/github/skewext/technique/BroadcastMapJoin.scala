package io.github.skewext.technique

import org.apache.spark.sql.catalyst.expressions.{Left => _, Right => _, _}
import org.apache.spark.sql.catalyst.optimizer.{BuildLeft, BuildRight, BuildSide}
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical._

/**
 * A join with a side that is broadcast, whatever the type of the join: full outer, and the side of
 * which unmatched rows come out as well. The other side, the large one, is not shuffled.
 *
 * Which rows of the small side are unmatched is known only when all of the large one has been read.
 * No task can tell, and what tasks tell the driver as they go is not to be trusted when they fail and
 * run again. So it is a query of its own: the keys of the large side that are in the small one, each
 * once, and the small side's rows without them.
 * {{{
 * Union
 *   Join large LEFT OUTER small            large is read whole, small is broadcast
 *   Project [nulls, small]
 *     Join small LEFT ANTI met             met is broadcast
 *       Aggregate [k]                      a shuffle of no more keys than small has, times the tasks
 *         Join large LEFT SEMI small       of large nothing but its keys is read; small is broadcast
 * }}}
 * The large side is read twice, the second time its keys only; for semi and anti joins that show rows
 * of the small side, once. Both sides have to give the same rows each time.
 */
object BroadcastMapJoin extends SkewTechnique {

  override val name: String = "broadcast_map"

  override def optionNames: Seq[String] = Seq(BroadcastSide.OptionName)

  override def plan(request: TechniqueRequest): Either[TechniqueReason.Given, TechniquePlan] =
    BroadcastSide.choose(request, Seq(BuildRight, BuildLeft)).flatMap { small =>
      if (BroadcastJoin.possible(request.joinType).contains(small)) {
        Right(BroadcastJoin.sparks(request, small))
      } else if (request.condition.isDefined) {
        Left(TechniqueReason.Condition.given)
      } else {
        StablePlans
          .check(request, Seq(BuildLeft, BuildRight))
          .map(_ => withUnmatched(request, small))
      }
    }

  private def withUnmatched(request: TechniqueRequest, small: BuildSide): TechniquePlan = {
    val large = BroadcastSide.other(small)
    def said(reads: String) =
      s"${BroadcastSide.described(request, small)} is broadcast, the ${BroadcastSide.nameOf(large)} " +
        s"side (${BroadcastSide.size(request.sizeOf(large))}) is not shuffled, and read $reads"
    request.joinType match {
      case joinType @ (LeftSemi | LeftAnti) =>
        val (met, metKeys) = keysMet(request, small)
        val found = request.joined(
          request.plan(small),
          met,
          joinType,
          Some(TechniqueRequest.equal(request.keys(small), metKeys)),
          broadcast = Some(BuildRight))
        TechniquePlan(found, said("once, its keys only"))
      case joinType =>
        val matched = withLarge(request, small, joinType)
        val union = Union(Seq(matched, unmatched(request, small)))
        TechniquePlan(union, said("twice, the second time its keys only"))
    }
  }

  /** The rows of the large side that come out, with those of the small one that they match. */
  private def withLarge(
      request: TechniqueRequest,
      small: BuildSide,
      joinType: JoinType): LogicalPlan = {
    val ofLarge = (joinType, small) match {
      case (FullOuter, BuildRight) => LeftOuter
      case (FullOuter, BuildLeft) => RightOuter
      case _ => Inner
    }
    val join = request.join
    request.joined(join.left, join.right, ofLarge, join.condition, broadcast = Some(small))
  }

  /** The rows of the small side that match nothing, as rows of the join. */
  private def unmatched(request: TechniqueRequest, small: BuildSide): LogicalPlan = {
    val (rows, overRows) = request.copyOf(small)
    val (met, metKeys) = keysMet(request, small)
    val left = request.joined(
      rows,
      met,
      LeftAnti,
      Some(TechniqueRequest.equal(request.keys(small).map(overRows), metKeys)),
      broadcast = Some(BuildRight))
    val ofSmall = request.plan(small).outputSet
    val columns = request.join.output.map { a =>
      val value = if (ofSmall.contains(a)) overRows(a) else Literal.create(null, a.dataType)
      Alias(value, a.name)()
    }
    Project(columns, left)
  }

  /** The keys of the large side that the small one has, each once. */
  private def keysMet(
      request: TechniqueRequest,
      small: BuildSide): (LogicalPlan, Seq[Expression]) = {
    val (large, overLarge) = request.copyOf(BroadcastSide.other(small))
    val (wanted, overWanted) = request.copyOf(small)
    val keys = request.keys(BroadcastSide.other(small)).map(overLarge).zipWithIndex.map {
      case (key, i) => Alias(key, s"key$i")()
    }
    val columns = keys.map(_.toAttribute)
    val met = request.joined(
      Project(keys, large),
      wanted,
      LeftSemi,
      Some(TechniqueRequest.equal(columns, request.keys(small).map(overWanted))),
      broadcast = Some(BuildRight))
    (Aggregate(columns, columns, met), columns)
  }
}
