package io.github.skewext.skew.split

import io.github.skewext.facts.JoinHints
import io.github.skewext.skew.plan.SkewSettings
import io.github.skewext.technique.hint.{AdaptiveOptions, TechniqueHint}

import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.internal.SQLConf

/** The settings for splits of one join: those of the session, overridden by a hint for `adaptive`. */
object JoinSettings {

  def of(conf: SQLConf, join: SparkPlan): SkewSettings =
    JoinHints
      .logicalJoin(join)
      .flatMap(TechniqueHint.of)
      .collect { case TechniqueHint.Made(TechniqueHint.Adaptive, options, _, _) => options }
      .fold(SkewSettings.of(conf))(options =>
        SkewSettings.of(conf).changedBy(AdaptiveOptions.of(options)))
      .copy(files = WrittenJoin.filesOf(join))
}
