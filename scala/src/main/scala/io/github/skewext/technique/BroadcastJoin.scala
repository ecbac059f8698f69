package io.github.skewext.technique

import org.apache.spark.sql.catalyst.optimizer.{BuildLeft, BuildRight, BuildSide}
import org.apache.spark.sql.catalyst.plans._

/**
 * Spark's hash join with a broadcast side. Spark cannot broadcast a side whose unmatched rows the
 * join returns. If that excludes both sides, [[BroadcastMapJoin]] plans the join, and chooses from
 * both sides also where a predicate above has changed the type of the join.
 */
object BroadcastJoin extends SkewTechnique {

  override val name: String = "broadcast"

  override def optionNames: Seq[String] = Seq(BroadcastSide.OptionName)

  override def plan(request: TechniqueRequest): Either[TechniqueReason.Detailed, TechniquePlan] = {
    val sides = possible(request.joinType)
    def ofSpark = BroadcastSide.choose(request, sides).map(sparks(request, _))
    if (possible(request.wanted.called.fold(request.joinType)(_.joinType)).isEmpty) {
      BroadcastMapJoin.plan(request) match {
        // It refuses more joins than Spark.
        case Left(why) if sides.nonEmpty => ofSpark.left.map(_ => why)
        case other => other
      }
    } else {
      ofSpark
    }
  }

  /** The sides that Spark can broadcast for a join. */
  def possible(joinType: JoinType): Seq[BuildSide] = joinType match {
    case _: InnerLike => Seq(BuildLeft, BuildRight)
    case LeftOuter | LeftSemi | LeftAnti => Seq(BuildRight)
    case RightOuter => Seq(BuildLeft)
    case _ => Nil
  }

  /** Spark's own join with a broadcast side. */
  private[skewext] def sparks(request: TechniqueRequest, side: BuildSide): TechniquePlan =
    TechniquePlan(
      request.sameJoin(broadcast = Some(side)),
      s"${BroadcastSide.described(request, side)} is broadcast")
}
