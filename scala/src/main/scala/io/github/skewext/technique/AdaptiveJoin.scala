package io.github.skewext.technique

import io.github.skewext.platform.{LoadedExtension, SkewConf}
import io.github.skewext.technique.hint.{AdaptiveOptions, TechniqueHint, TechniqueOptions}

import org.apache.spark.sql.SparkSession

/**
 * A shuffled join whose skewed partitions are split when their sizes are known. The extension does
 * this for every join; the technique adds settings for one join.
 */
object AdaptiveJoin extends SkewTechnique {

  override val name: String = TechniqueHint.Adaptive

  override def optionNames: Seq[String] = AdaptiveOptions.names

  override def preparedForHint(request: TechniqueRequest): TechniqueOptions = {
    // Find wrong options before the query runs.
    AdaptiveOptions.of(request.options)
    request.options
  }

  override def mayRefuse: Boolean = false

  override def plan(request: TechniqueRequest): Either[TechniqueReason.Detailed, TechniquePlan] = {
    val own = request.options.values.toSeq.sorted.map { case (k, v) => s"$k=$v" }
    val settings = if (own.isEmpty) "" else own.mkString(" by ", ", ", "")
    Right(
      TechniquePlan(
        request.sameJoin(),
        s"both sides are shuffled, and skewed partitions split$settings"))
  }

  /** Whether the session splits skewed partitions at all. */
  def isOn(session: SparkSession): Boolean =
    LoadedExtension.isIn(session) && SkewConf.splits(session.sessionState.conf)
}

/** Spark's own join. */
object PlainJoin extends SkewTechnique {

  override val name: String = "none"

  override def mayRefuse: Boolean = false

  override def plan(request: TechniqueRequest): Either[TechniqueReason.Detailed, TechniquePlan] =
    Right(TechniquePlan(request.sameJoin(), "Spark's own join"))
}
