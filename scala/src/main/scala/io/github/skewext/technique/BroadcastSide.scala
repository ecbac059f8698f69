package io.github.skewext.technique

import io.github.skewext.join.JoinTypeName

import org.apache.spark.sql.catalyst.optimizer.{BuildLeft, BuildRight, BuildSide}
import org.apache.spark.sql.catalyst.plans.logical.statsEstimation.EstimationUtils
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.internal.SQLConf.ADAPTIVE_EXECUTION_ENABLED

/** The choice of the broadcast side, and its size. */
private[skewext] object BroadcastSide {

  /** The option `side=left` of techniques that broadcast one side. */
  val OptionName = "side"

  /**
   * The requested side, or else the smaller one of the possible sides. A side whose estimated size
   * exceeds the limit is refused, because the driver and every executor hold it in memory. If the
   * size is unknown, [[CheckBroadcasts]] checks it at run time, which requires adaptive execution.
   */
  def choose(
      request: TechniqueRequest,
      sides: Seq[BuildSide]): Either[TechniqueReason.Detailed, BuildSide] = {
    val side = wanted(request, sides)
    val limit = BroadcastLimit.maxBytes(request.session)
    if (!sides.contains(side)) {
      Left(
        TechniqueReason.JoinType(
          s"the ${nameOf(side)} side of a ${JoinTypeName.lower(request.joinType)} join cannot be " +
            "broadcast"))
    } else if (BroadcastLimit.isKnown(request.sizeOf(side)) && request.sizeOf(side) > limit) {
      Left(
        TechniqueReason.TooLarge(
          s"${described(request, side)} is larger than ${BroadcastLimit.size(limit)}; " +
            BroadcastLimit.cure(request.session, request.sizeOf(side))))
    } else {
      checkable(request, side).map(_ => side)
    }
  }

  /** Refuses a side whose size is unknown, and stays so in this session. */
  def checkable(
      request: TechniqueRequest,
      side: BuildSide): Either[TechniqueReason.Detailed, Unit] =
    Either.cond(
      BroadcastLimit.isKnown(request.sizeOf(side)) ||
        request.session.sessionState.conf.adaptiveExecutionEnabled,
      (),
      TechniqueReason.TooLarge(
        s"${described(request, side)}; set ${ADAPTIVE_EXECUTION_ENABLED.key} to true"))

  /** The requested side, or else the smaller one of the possible sides. */
  def wanted(request: TechniqueRequest, sides: Seq[BuildSide]): BuildSide =
    request.options.oneOf(OptionName, Seq("left", "right")) match {
      case Some("left") => BuildLeft
      case Some(_) => BuildRight
      case None => sides.minBy(request.sizeOf)
    }

  /**
   * The approximate size of a side in memory: computed from its number of rows if statistics
   * contain it, or else from its size. For columnar files, that is the compressed size.
   */
  def bytesInMemory(request: TechniqueRequest, side: BuildSide): BigInt = {
    val plan = request.plan(side)
    def isCompressed = plan.collectLeaves().exists {
      case scan: LogicalRelation => scan.relation.isInstanceOf[HadoopFsRelation]
      case _ => false
    }
    plan.stats.rowCount match {
      case Some(rows) => rows * (EstimationUtils.getSizePerRow(plan.output) + BytesBesides)
      case None => request.sizeOf(side) * (if (isCompressed) Compression else 1)
    }
  }

  /**
   * The overhead of a row in a hash table: lengths, a pointer, and up to four words of a sparse
   * array.
   */
  private val BytesBesides = 64

  /**
   * The assumed ratio of the size in memory to the size of a compressed file, if the number of rows
   * is unknown.
   */
  private val Compression = 10

  def nameOf(side: BuildSide): String = if (side == BuildLeft) "left" else "right"

  def other(side: BuildSide): BuildSide = if (side == BuildLeft) BuildRight else BuildLeft

  /** For example, `the right side (1.2 MiB)`. */
  def described(request: TechniqueRequest, side: BuildSide): String =
    s"the ${nameOf(side)} side (${BroadcastLimit.size(request.sizeOf(side))})"
}
