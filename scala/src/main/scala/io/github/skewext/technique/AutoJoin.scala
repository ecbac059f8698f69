package io.github.skewext.technique

import io.github.skewext.technique.TechniqueReason.Given

import org.apache.spark.sql.catalyst.optimizer.{BuildLeft, BuildRight, BuildSide}

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
    val small = Seq(BuildRight, BuildLeft).minBy(request.sizeOf)
    val tried = candidates(request, small).toStream.map { case (technique, why) =>
      (technique, why, technique.plan(of(request, technique, small)))
    }
    val done = tried.filter(_._3.isRight)
    done.headOption match {
      case Some((_, why, Right(made))) =>
        val next = done.tail.headOption.fold("")(n => s"; next would be ${n._1.name}")
        val how = s"${made.how}; chosen as $why, with ${figures(request)}$next"
        Right(made.copy(how = how))
      case _ => tried.head._3
    }
  }

  private def candidates(
      request: TechniqueRequest,
      small: BuildSide): Seq[(SkewTechnique, String)] = {
    val broadcasts =
      broadcastable(request, small).toSeq.flatMap { why =>
        val technique =
          if (BroadcastJoin.possible(request.joinType).contains(small)) BroadcastJoin
          else BroadcastMapJoin
        Seq(technique -> why)
      }
    val salts =
      if (request.options.hotKeys.exists(_.nonEmpty)) SkewTechniques.named("salted").toSeq else Nil
    val adaptive = AdaptiveJoin -> "partitions are split when their sizes are known"
    val salted = salts.map(_ -> "hot keys are given")
    broadcasts ++ (if (AdaptiveJoin.isOn(request.session)) adaptive +: salted
                   else salted :+ adaptive)
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

  private def of(
      request: TechniqueRequest,
      technique: SkewTechnique,
      small: BuildSide): TechniqueRequest = {
    val side = Map(BroadcastSide.OptionName -> BroadcastSide.nameOf(small)).filter { _ =>
      Seq(BroadcastJoin, BroadcastMapJoin).contains(technique)
    }
    val hot =
      if (technique.optionNames.contains(TechniqueOptions.HotKeys)) request.options.hotKeys
      else None
    request.copy(technique = technique.name, options = TechniqueOptions(side, hot))
  }

  private def figures(request: TechniqueRequest): String = {
    val sides = Seq(BuildLeft, BuildRight).map(BroadcastSide.described(request, _))
    val hot = request.options.hotKeys.map(keys => s"${keys.size} hot keys")
    (sides ++ hot).mkString(", ")
  }
}
