package io.github.skewext.technique

import java.util.Locale

import io.github.skewext.SkewConf

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeReference, Expression}
import org.apache.spark.sql.catalyst.optimizer.{BuildLeft, BuildRight, BuildSide}
import org.apache.spark.sql.catalyst.plans.logical.statsEstimation.EstimationUtils

/** Which side is broadcast, and how large it may be. */
private[technique] object BroadcastSide {

  /** `side=left`, for techniques that broadcast one. */
  val OptionName = "side"

  /**
   * The smaller one of the sides that will do, or the one that is asked for. It is refused where it
   * is known to be larger than what fits in memory: the driver, and every executor, will hold it. If
   * nothing is known of it, [[CheckBroadcasts]] will see, for which execution has to be adaptive.
   */
  def choose(
      request: TechniqueRequest,
      sides: Seq[BuildSide]): Either[TechniqueReason.Given, BuildSide] = {
    val side = wanted(request, sides)
    val limit = maxBytes(request.session)
    if (!sides.contains(side)) {
      Left(TechniqueReason.JoinType(s"the ${nameOf(side)} side of a ${request.joinType.sql
          .toLowerCase(Locale.ROOT)} join cannot be broadcast by it"))
    } else if (!isKnown(request.sizeOf(side))) {
      if (request.session.sessionState.conf.adaptiveExecutionEnabled) Right(side)
      else Left(TechniqueReason.TooLarge(described(request, side)))
    } else if (request.sizeOf(side) > limit) {
      Left(
        TechniqueReason.TooLarge(s"${described(request, side)} is larger than ${size(limit)}; " +
          s"${SkewConf.SKEW_JOIN_MAX_BROADCAST.key} allows more"))
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

  /** What is set, but no more than the driver would take of a job's result. */
  def maxBytes(session: SparkSession): Long = {
    val set = session.sessionState.conf.getConf(SkewConf.SKEW_JOIN_MAX_BROADCAST)
    val ofResult = session.sparkContext.getConf.getSizeAsBytes("spark.driver.maxResultSize", "1g")
    if (ofResult > 0) math.min(set, ofResult) else set
  }

  /** What the hash table of a broadcast takes: rows, their keys, and what leads to them. */
  def bytesInMemory(rows: Double, columns: Seq[Attribute], keys: Seq[Expression]): Long = {
    val keyColumns = keys.map(key => AttributeReference("key", key.dataType)())
    val ofRow = EstimationUtils.getSizePerRow(columns) + EstimationUtils.getSizePerRow(keyColumns)
    (rows * (ofRow.toLong + BytesBesides)).toLong
  }

  /** Of a row in the table: lengths and a pointer, and up to four words of a sparse array. */
  private val BytesBesides = 64

  def nameOf(side: BuildSide): String = if (side == BuildLeft) "left" else "right"

  def other(side: BuildSide): BuildSide = if (side == BuildLeft) BuildRight else BuildLeft

  /** `the right side (1.2 MiB)` */
  def described(request: TechniqueRequest, side: BuildSide): String =
    s"the ${nameOf(side)} side (${size(request.sizeOf(side))})"

  /** What Spark knows nothing of is larger than anything. */
  def isKnown(bytes: BigInt): Boolean = bytes < Long.MaxValue / 2

  def size(bytes: BigInt): String = {
    val units = Seq("B", "KiB", "MiB", "GiB")
    val unit = units.indices.reverse.find(u => bytes >= (BigInt(1) << (10 * u))).getOrElse(0)
    if (!isKnown(bytes)) "of unknown size"
    else if (unit == 0) s"$bytes B"
    else f"${bytes.toDouble / (1L << (10 * unit))}%.1f ${units(unit)}"
  }
}
