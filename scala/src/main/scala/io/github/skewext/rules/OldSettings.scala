package io.github.skewext.rules

import java.util.concurrent.ConcurrentHashMap

import org.apache.spark.internal.Logging
import org.apache.spark.sql.internal.SQLConf

/**
 * The names of public settings of earlier versions. Each still has its effect. This is the only
 * list of these names; `docs/versions.md` shows it.
 */
object OldSettings extends Logging {

  /**
   * A setting with an old name.
   *
   * @param key the old name.
   * @param instead what to use in its place, for users.
   * @param replacement the new setting. If both are set, the new one wins.
   */
  case class Old(key: String, instead: String, replacement: Option[String] = None) {

    /** The warning for a session that sets this name. */
    def warning(conf: SQLConf): String = {
      val both = replacement.filter(conf.contains(_)).fold("")(by => s" $by is set, too, and wins.")
      s"The setting $key is deprecated. Instead: $instead.$both"
    }
  }

  private def mode(key: String, value: Boolean, mode: String): Old = {
    val replacement = SkewConf.SKEW_OUTPUT_MODE.key
    Old(key, s"$replacement=$mode for $value", Some(replacement))
  }

  private def shuffle(key: String): Old =
    Old(key, SkewConf.SHUFFLE_ENABLED.key, Some(SkewConf.SHUFFLE_ENABLED.key))

  private def option(key: String, name: String): Old =
    Old(key, s"for one join, the option $name of the technique adaptive of skew_join")

  private def internal(key: String): Old =
    Old(key, "internal, no replacement: tell us your case in an issue")

  /** In the order of the settings. */
  val all: Seq[Old] = Seq(
    internal(SkewConf.MULTI_JOIN_BROADCAST.key),
    internal(SkewConf.MULTI_JOIN_RUNTIME_FILTER.key),
    internal(SkewConf.MULTI_JOIN_GROUPING.key),
    internal(SkewConf.MULTI_JOIN_MAX_ROWS_IN_MEMORY.key),
    internal(SkewConf.MULTI_JOIN_GROUP_ROWS_IN_MEMORY.key),
    shuffle(SkewConf.SHUFFLE_BULK_ROWS.key),
    shuffle(SkewConf.SHUFFLE_COLUMNS.key),
    option(SkewConf.SKEW_MAX_SLICES.key, "max_slices"),
    option(SkewConf.SKEW_MIN_GAIN.key, "min_gain"),
    internal(SkewConf.SKEW_MARKING.key),
    mode(SkewConf.SKEW_OUTPUT_ENABLED.key, value = false, SkewConf.OutputSkew.Off),
    mode(SkewConf.SKEW_OUTPUT_SPARK_JOINS.key, value = true, SkewConf.OutputSkew.All),
    internal(SkewConf.BUCKET_MERGE_MAX_FILES.key),
    internal(SkewConf.BUCKET_MERGE_MULTI_JOIN_MAX_FILES.key),
    Old(
      SkewConf.BUCKET_PRUNING_JOIN_KEYS.key,
      s"${SkewConf.EXCLUDED_RULES.key}=io.github.skewext.bucket.PruneBucketsByKeys for false"),
    internal(SkewConf.BUCKET_PRUNING_MAX_VALUES.key),
    internal(SkewConf.BUCKET_SKEW.key))

  /** Warns of each name once. */
  class Warnings(log: String => Unit) {
    private val warned = ConcurrentHashMap.newKeySet[String]()

    def apply(conf: SQLConf): Unit =
      all.foreach { old =>
        if (conf.contains(old.key) && warned.add(old.key)) log(old.warning(conf))
      }
  }

  /** Warns of each name once in this JVM. */
  val warnOnce = new Warnings(message => logWarning(message))
}
