package io.github.skewext.technique

import io.github.skewext.technique.TechniqueReason.Detailed
import io.github.skewext.technique.hint.TechniqueOptions

import org.apache.spark.sql.catalyst.optimizer.{BuildLeft, BuildRight, BuildSide}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.execution.{ExternalRDD, LogicalRDD}

/**
 * Chooses a technique by the join type and by the estimated sizes of the sides in memory. A small
 * side is broadcast. Otherwise skewed partitions are split at run time. If the session does not
 * split partitions, given hot keys are salted. The plan describes the choice and the figures behind
 * it.
 */
object AutoJoin extends SkewTechnique {

  override val name: String = "auto"

  override def optionNames: Seq[String] = Seq(TechniqueOptions.HotKeys)

  /**
   * The ratio of the sizes from which the smaller side is broadcast, even if Spark itself would not
   * broadcast it.
   */
  private val MuchSmaller = 10

  /** The limit for such a side, as a multiple of Spark's broadcast threshold. */
  private val AboveSparksLimit = 8

  override def preparedForHint(request: TechniqueRequest): TechniqueOptions =
    SaltedJoin.preparedForHint(request)

  /** False, because the last candidate supports every join. */
  override def mayRefuse: Boolean = false

  override def plan(request: TechniqueRequest): Either[Detailed, TechniquePlan] = {
    def tried(c: Candidate): Either[Detailed, TechniquePlan] = {
      val wanted =
        request.wanted.copy(technique = c.technique.name, options = c.options.copy(ofAuto = true))
      c.technique
        .plan(request.copy(wanted = wanted))
        .map(made => made.copy(how = s"${made.how}; chosen as ${c.why}, with ${figures(request)}"))
    }
    val all = candidates(request)
    val first = tried(all.head)
    if (first.isRight) first
    else all.tail.iterator.map(tried).find(_.isRight).getOrElse(first)
  }

  private case class Candidate(technique: SkewTechnique, options: TechniqueOptions, why: String)

  private def candidates(request: TechniqueRequest): Seq[Candidate] = {
    val hot = request.options.hotKeys.getOrElse(Nil)
    val salted =
      if (hot.isEmpty) Nil
      else Seq(Candidate(SaltedJoin, TechniqueOptions(hotKeys = Some(hot)), "hot keys are given"))
    def other(technique: SkewTechnique, why: String) =
      Candidate(technique, TechniqueOptions(), why)
    val shuffled = if (AdaptiveJoin.isOn(request.session)) {
      Seq(other(AdaptiveJoin, "partitions are split when their sizes are known"))
    } else {
      salted :+ other(PlainJoin, "partitions are not split in this session")
    }
    broadcasts(request) ++ shuffled
  }

  private def broadcasts(request: TechniqueRequest): Seq[Candidate] = {
    val bySize = Seq(BuildRight, BuildLeft).sortBy(request.sizeOf)
    val (bySpark, others) = bySize.partition(BroadcastJoin.possible(request.joinType).contains)
    def candidate(technique: SkewTechnique, side: BuildSide)(why: String) = Candidate(
      technique,
      TechniqueOptions(Map(BroadcastSide.OptionName -> BroadcastSide.nameOf(side))),
      why)
    bySpark.flatMap { side =>
      broadcastable(request, side, asSpark = true).map(candidate(BroadcastJoin, side))
    } ++ others.filter(side => side == bySize.head && isCheap(request, side)).flatMap { side =>
      broadcastable(request, side, asSpark = false).map(candidate(BroadcastMapJoin, side))
    }
  }

  /**
   * Whether `broadcast_map` may read the sides, and the size of the small one is known. A query
   * below the other side would run twice, which may take longer than a shuffle.
   */
  private def isCheap(request: TechniqueRequest, small: BuildSide): Boolean = {
    // A semi or anti join ends at the first match.
    isTable(request.plan(small)) &&
    (request.selectsLeft || isTable(request.plan(BroadcastSide.other(small))))
  }

  /** Whether a side is a table or a file with filters only: cheap to read, and of known size. */
  private def isTable(plan: LogicalPlan): Boolean = !plan.exists {
    case _: LogicalRDD | _: ExternalRDD[_] => true
    case _: LeafNode | _: Project | _: Filter | _: SubqueryAlias => false
    case _ => true
  }

  /**
   * The reason to broadcast the small side, or None if it should not be broadcast.
   *
   * @param asSpark whether Spark would broadcast the side if its size were below the threshold.
   */
  private def broadcastable(
      request: TechniqueRequest,
      small: BuildSide,
      asSpark: Boolean): Option[String] = {
    val limit = request.session.sessionState.conf.autoBroadcastJoinThreshold
    val Seq(bytes, others) =
      Seq(small, BroadcastSide.other(small)).map(BroadcastSide.bytesInMemory(request, _))
    val which = s"the ${BroadcastSide.nameOf(small)} side"
    if (limit < 0) None
    else if (bytes <= limit || (asSpark && request.sizeOf(small) <= limit))
      Some(s"$which is smaller than spark.sql.autoBroadcastJoinThreshold")
    else if (bytes <= BigInt(limit) * AboveSparksLimit && bytes * MuchSmaller <= others)
      Some(s"$which is much smaller than the other side")
    else None
  }

  private def figures(request: TechniqueRequest): String = {
    val sides = Seq(BuildLeft, BuildRight).map(BroadcastSide.described(request, _))
    val hot = request.options.hotKeys.map { keys =>
      s"${keys.size} hot key${if (keys.size == 1) "" else "s"}"
    }
    (sides ++ hot).mkString(", ")
  }
}
