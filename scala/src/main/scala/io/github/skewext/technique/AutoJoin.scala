package io.github.skewext.technique

import io.github.skewext.technique.TechniqueReason.Given

import org.apache.spark.sql.catalyst.optimizer.{BuildLeft, BuildRight, BuildSide}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.plans.{LeftAnti, LeftSemi}
import org.apache.spark.sql.execution.{ExternalRDD, LogicalRDD}

/**
 * Chooses a technique by what is known when the query is planned: the sizes of the sides, the type of
 * the join, keys that are said to be hot, and whether partitions can be split at run time. It looks at
 * no data. Says what it has chosen, by which figures, and what it would have chosen next.
 */
object AutoJoin extends SkewTechnique {

  override val name: String = "auto"

  override def optionNames: Seq[String] = Seq(TechniqueOptions.HotKeys)

  /** A side that is so much smaller is broadcast even if Spark by itself would not. */
  private val MuchSmaller = 10

  /** But not if it is so many times as large as what Spark would broadcast. */
  private val AboveSparksLimit = 8

  override def plan(request: TechniqueRequest): Either[Given, TechniquePlan] = {
    val tried = candidates(request).toStream.map { c =>
      (c, c.technique.plan(request.copy(technique = c.technique.name, options = c.options)))
    }
    val done = tried.filter(_._2.isRight)
    done.headOption match {
      case Some((chosen, Right(made))) =>
        val next = done.tail.headOption.fold("")(n => s"; next would be ${n._1.technique.name}")
        val how = s"${made.how}; chosen as ${chosen.why}, with ${figures(request)}$next"
        Right(made.copy(how = how))
      case _ => tried.head._2
    }
  }

  private case class Candidate(technique: SkewTechnique, options: TechniqueOptions, why: String)

  private def candidates(request: TechniqueRequest): Seq[Candidate] = {
    val bySize = Seq(BuildRight, BuildLeft).sortBy(request.sizeOf)
    def broadcast(technique: SkewTechnique, sides: Seq[BuildSide]): Seq[Candidate] =
      sides.flatMap { side =>
        val options = TechniqueOptions(Map(BroadcastSide.OptionName -> BroadcastSide.nameOf(side)))
        broadcastable(request, side).map(Candidate(technique, options, _))
      }
    val bySpark = bySize.filter(BroadcastJoin.possible(request.joinType).contains)
    val map = bySize.take(1).filter(side => !bySpark.contains(side) && isCheap(request, side))
    val broadcasts = broadcast(BroadcastJoin, bySpark) ++ broadcast(BroadcastMapJoin, map)
    val adaptive =
      Candidate(AdaptiveJoin, TechniqueOptions(), "partitions are split when their sizes are known")
    val hot = TechniqueOptions(hotKeys = request.options.hotKeys)
    val salted = SkewTechniques
      .named("salted")
      .filter(_ => hot.hotKeys.exists(_.nonEmpty))
      .map(Candidate(_, hot, "hot keys are given"))
      .toSeq
    broadcasts ++ (if (AdaptiveJoin.isOn(request.session)) adaptive +: salted
                   else salted :+ adaptive)
  }

  /**
   * Whether the other side may be read as often as `broadcast_map` does. A query below it would run
   * twice, which may take longer than a shuffle.
   */
  private def isCheap(request: TechniqueRequest, small: BuildSide): Boolean =
    request.joinType match {
      case LeftSemi | LeftAnti => true
      case _ =>
        !request.plan(BroadcastSide.other(small)).exists {
          case _: LogicalRDD | _: ExternalRDD[_] => true
          case _: LeafNode | _: Project | _: Filter | _: SubqueryAlias => false
          case _ => true
        }
    }

  /** Why the small side should be broadcast, if it should. */
  private def broadcastable(request: TechniqueRequest, small: BuildSide): Option[String] = {
    val limit = request.session.sessionState.conf.autoBroadcastJoinThreshold
    val (of, ofOther) = (request.sizeOf(small), request.sizeOf(BroadcastSide.other(small)))
    val which = s"the ${BroadcastSide.nameOf(small)} side"
    if (limit < 0) None
    else if (of <= limit) Some(s"$which is smaller than spark.sql.autoBroadcastJoinThreshold")
    else if (of <= BigInt(limit) * AboveSparksLimit && of * MuchSmaller <= ofOther) {
      Some(s"$which is so much smaller than the other")
    } else {
      None
    }
  }

  private def figures(request: TechniqueRequest): String = {
    val sides = Seq(BuildLeft, BuildRight).map(BroadcastSide.described(request, _))
    val hot = request.options.hotKeys.map(keys => s"${keys.size} hot keys")
    (sides ++ hot).mkString(", ")
  }
}
