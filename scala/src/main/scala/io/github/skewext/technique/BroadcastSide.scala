package io.github.skewext.technique

import java.util.Locale

import io.github.skewext.execution.BroadcastLimit
import io.github.skewext.internal.SkewConf
import io.github.skewext.plan.TechniqueReason

import org.apache.spark.sql.catalyst.optimizer.{BuildLeft, BuildRight, BuildSide}
import org.apache.spark.sql.catalyst.plans.logical.statsEstimation.EstimationUtils
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}

/** Which side is broadcast, and how large it may be. */
private[skewext] object BroadcastSide {

  /** `side=left`, for techniques that broadcast one. */
  val OptionName = "side"

  /**
   * The smaller one of the sides that will do, or the one that is asked for. It is refused where it
   * is known to be larger than what fits in memory: the driver, and every executor, will hold it. If
   * nothing is known of it, [[CheckBroadcasts]] will see, for which execution has to be adaptive.
   */
  def choose(
      request: TechniqueRequest,
      sides: Seq[BuildSide]): Either[TechniqueReason.Detailed, BuildSide] = {
    val side = wanted(request, sides)
    val limit = BroadcastLimit.maxBytes(request.session)
    if (!sides.contains(side)) {
      Left(TechniqueReason.JoinType(s"the ${nameOf(side)} side of a ${request.joinType.sql
          .toLowerCase(Locale.ROOT)} join cannot be broadcast"))
    } else if (!BroadcastLimit.isKnown(request.sizeOf(side))) {
      if (request.session.sessionState.conf.adaptiveExecutionEnabled) Right(side)
      else Left(TechniqueReason.TooLarge(described(request, side)))
    } else if (request.sizeOf(side) > limit) {
      Left(
        TechniqueReason.TooLarge(
          s"${described(request, side)} is larger than ${BroadcastLimit.size(limit)}; raise " +
            SkewConf.SKEW_JOIN_MAX_BROADCAST.key))
    } else {
      Right(side)
    }
  }

  /** The side that is asked for, else the smallest of those that will do. */
  def wanted(request: TechniqueRequest, sides: Seq[BuildSide]): BuildSide =
    request.options.oneOf(OptionName, Seq("left", "right")) match {
      case Some("left") => BuildLeft
      case Some(_) => BuildRight
      case None => sides.minBy(request.sizeOf)
    }

  /**
   * About what a side takes in memory: by the number of its rows, if statistics tell it, else by its
   * size, which of columnar files is that of the compressed file.
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

  /** Of a row in a hash table: lengths and a pointer, and up to four words of a sparse array. */
  private val BytesBesides = 64

  /** How many times as large as its file a table may be in memory, if nothing is known of its rows. */
  private val Compression = 10

  def nameOf(side: BuildSide): String = if (side == BuildLeft) "left" else "right"

  def other(side: BuildSide): BuildSide = if (side == BuildLeft) BuildRight else BuildLeft

  /** `the right side (1.2 MiB)` */
  def described(request: TechniqueRequest, side: BuildSide): String =
    s"the ${nameOf(side)} side (${BroadcastLimit.size(request.sizeOf(side))})"
}
