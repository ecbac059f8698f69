package io.github.skewext.technique

import io.github.skewext.skew.SkewSettings
import io.github.skewext.{JoinHints, LoadedExtension, SkewConf}

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.internal.SQLConf

/**
 * A shuffle, of which skewed partitions are split when their sizes are known: what the extension does
 * for every join, with settings for this one.
 */
object AdaptiveJoin extends SkewTechnique {

  override val name: String = "adaptive"

  override def optionNames: Seq[String] =
    Seq(Factor, Threshold, SliceBytes, MaxSlices, MaxReread, MinGain)

  private val Factor = "factor"
  private val Threshold = "threshold"
  private val SliceBytes = "slice_bytes"
  private val MaxSlices = "max_slices"
  private val MaxReread = "max_reread_factor"
  private val MinGain = "min_gain"

  override def plan(request: TechniqueRequest): Either[TechniqueReason.Given, TechniquePlan] = {
    // Wrong options are to be found before the query runs.
    changed(SkewSettings(1, 0, 0, 2, 1, 1, marking = false), request.options)
    val own = request.options.values.toSeq.sorted.map { case (k, v) => s"$k=$v" }
    val settings = if (own.isEmpty) "" else own.mkString(" by ", ", ", "")
    Right(
      TechniquePlan(
        request.sameJoin(),
        s"both sides are shuffled, and skewed partitions split$settings"))
  }

  /** Whether the session splits skewed partitions at all. */
  def isOn(session: SparkSession): Boolean = {
    val conf = session.sessionState.conf
    conf.adaptiveExecutionEnabled && LoadedExtension.isIn(session) &&
    Seq(SkewConf.ENABLED, SkewConf.SKEW_ENABLED, SQLConf.SKEW_JOIN_ENABLED).forall(conf.getConf(_))
  }

  /** The settings for one join of a plan: those of the session, unless it was asked for with others. */
  def settingsOf(join: SparkPlan, session: SkewSettings): SkewSettings =
    JoinHints
      .logicalJoin(join)
      .flatMap(TechniqueHint.of)
      .collect { case TechniqueHint.Made(`name`, options, _) => options }
      .fold(session)(changed(session, _))

  private def changed(settings: SkewSettings, options: TechniqueOptions): SkewSettings =
    settings.copy(
      factor = options.double(Factor, least = 1).getOrElse(settings.factor),
      thresholdBytes = options.bytes(Threshold).getOrElse(settings.thresholdBytes),
      advisoryBytes = options.bytes(SliceBytes).getOrElse(settings.advisoryBytes),
      maxSlices = options.int(MaxSlices, 2, Int.MaxValue).getOrElse(settings.maxSlices),
      maxRereadFactor = options.double(MaxReread, least = 1).getOrElse(settings.maxRereadFactor),
      minGain = options.double(MinGain, least = 1).getOrElse(settings.minGain))
}
