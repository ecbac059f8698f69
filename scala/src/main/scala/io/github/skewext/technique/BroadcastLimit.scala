package io.github.skewext.technique

import io.github.skewext.platform.SkewConf
import io.github.skewext.technique.hint.TechniqueHint

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.BroadcastQueryStageExec
import org.apache.spark.sql.execution.exchange.{BroadcastExchangeLike, ReusedExchangeExec}
import org.apache.spark.sql.skewext.SqlInternals

/** Limits the size of a technique's broadcast, before and after it is built. */
object BroadcastLimit {

  private val MaxResultSize = "spark.driver.maxResultSize"

  /** The limits with the changes that raise them: our setting, and that of a job's result. */
  private def limits(session: SparkSession): Seq[(Long, String)] = {
    val set = session.sessionState.conf.getConf(SkewConf.SKEW_JOIN_MAX_BROADCAST)
    val ofResult = session.sparkContext.getConf.getSizeAsBytes(MaxResultSize, "1g")
    Seq(set -> s"raise ${SkewConf.SKEW_JOIN_MAX_BROADCAST.key}") ++
      (if (ofResult > 0) Seq(ofResult -> s"start the application with a larger $MaxResultSize")
       else Nil)
  }

  /** The limit in the settings, but at most the size of a job's result that the driver accepts. */
  def maxBytes(session: SparkSession): Long = limits(session).map(_._1).min

  /** The changes with which a broadcast of this size is allowed, for example `raise a, and start ...`. */
  def cure(session: SparkSession, bytes: BigInt): String =
    limits(session).collect { case (limit, change) if bytes > limit => change }.mkString(", and ")

  /** Whether a size is known. Spark's default for an unknown size is the largest Long. */
  def isKnown(bytes: BigInt): Boolean = bytes < Long.MaxValue / 2

  def size(bytes: BigInt): String = {
    val units = Seq("B", "KiB", "MiB", "GiB")
    val unit = units.indices.reverse.find(u => bytes >= (BigInt(1) << (10 * u))).getOrElse(0)
    if (!isKnown(bytes)) "of unknown size"
    else if (unit == 0) s"$bytes B"
    else f"${bytes.toDouble / (1L << (10 * unit))}%.1f ${units(unit)}"
  }

  /**
   * Fails if a technique's broadcast has been built and is too large for the executors. The
   * broadcasts that Spark chooses, or that a hint of Spark's requests, are as large as Spark allows.
   */
  def check(join: SparkPlan, broadcast: SparkPlan): Unit = for {
    technique <- join.logicalLink.flatMap(TechniqueHint.of(_)).collect {
      case TechniqueHint.Made(technique, options, _, true) if !options.ofAuto => technique
    }
    bytes <- sizeOf(broadcast)
    limit = maxBytes(join.session) if bytes > limit
  } throw SqlInternals.analysisError(
    s"skew_join by $technique has built a broadcast of ${size(bytes)}, which is larger " +
      s"than ${size(limit)}: take a technique that broadcasts less, or " +
      s"${cure(join.session, bytes)}.")

  /** The size of the broadcast in memory, if it has been built. */
  private def sizeOf(broadcast: SparkPlan): Option[BigInt] = broadcast match {
    case stage: BroadcastQueryStageExec if stage.isMaterialized =>
      Some(stage.getRuntimeStatistics.sizeInBytes)
    // 0 if it has not been built.
    case exchange: BroadcastExchangeLike => Some(exchange.runtimeStatistics.sizeInBytes)
    case reused: ReusedExchangeExec => sizeOf(reused.child)
    case _ => None
  }
}
