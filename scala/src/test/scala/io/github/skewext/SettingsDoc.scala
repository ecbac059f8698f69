package io.github.skewext

import io.github.skewext.platform.SkewConf._

import org.apache.spark.sql.skewext.SettingEntries

/**
 * Writes the page of settings, or checks that it is up to date.
 * {{{
 * SettingsDoc docs/settings.md
 * SettingsDoc --check docs/settings.md
 * }}}
 */
object SettingsDoc extends GeneratedPage("the settings in SkewConf") {

  /** The public settings by heading, each with the reason to change it. */
  private val groups: Seq[(String, Seq[(String, String)])] = Seq(
    "Disable skewext, or a part of it" -> Seq(
      ENABLED.key -> "Set it to false to compare with stock Spark, or if you suspect skewext.",
      EXCLUDED_RULES.key -> "Exclude a rule that fails in your session, and keep all others.",
      UI_ENABLED.key -> "Set it to false if the event log must stay as small as Spark's."),
    "Joins of two sides" -> Seq(
      JOIN_ENABLED.key -> "Set it to false to keep Spark's joins, or to compare with them.",
      RANGE_JOIN_ENABLED.key -> "Set it to false to keep Spark's nested loops, or to compare with them."),
    "Multi-way joins" -> Seq(
      MULTI_JOIN_SPREAD_NULL_KEYS.key -> "Set it to false only to compare plans."),
    "Joins and windows that are rewritten" -> Seq(
      MULTI_JOIN_REWRITE.key -> "Set it to false to keep Spark's joins, and to call `multi_join` by name.",
      LATEST_REWRITE.key -> "Set it to false to compare with Spark's windows.",
      OR_JOIN_ENABLED.key -> "Set it to false to compare with Spark's nested loops."),
    "Shuffle" -> Seq(
      SHUFFLE_ENABLED.key -> "Set it to false if you suspect the exchanges of skewext, or to compare with Spark's."),
    "Skewed partitions" -> Seq(
      SKEW_ENABLED.key -> "Set it to false to leave splits to Spark alone.",
      SKEW_MAX_REREAD_FACTOR.key ->
        "Raise it if `explain` says that a split would read more than it allows.",
      SKEW_OUTPUT_MODE.key ->
        "Set `all` if tasks of Spark's own joins read as much as others and still take much longer."),
    "Techniques of skew_join" -> Seq(SKEW_JOIN_MAX_BROADCAST.key ->
      "Raise it if `explain` says that a side is too large, and driver and executors have the memory."),
    "Bucketed tables" -> Seq(
      BUCKET_ORDER.key -> "Set it to false to read a table whose files are not sorted as it declares."))

  override protected def page(current: Option[String]): String = text

  def text: String = {
    val header = Seq(
      "# Settings",
      "",
      "Generated from `SkewConf.scala` by `make docs`; do not edit.",
      "",
      "Settings are read per query: `SET spark.skewext.…=…` or `spark.conf.set(…)` at any time.")
    val sections = groups.flatMap { case (heading, settings) =>
      Seq("", s"## $heading") ++ settings.flatMap { case (key, when) =>
        val e = SettingEntries.all.find(_.key == key).get
        Seq(
          "",
          s"### `$key`",
          "",
          s"Default: ${shown(e.defaultValueString)}. Since ${e.version}.",
          "",
          e.doc,
          "",
          s"**When to change it:** $when")
      }
    }
    (header ++ sections).mkString("", "\n", "\n")
  }

  /** Nothing between backquotes would be read as two backquotes. */
  private def shown(default: String): String = if (default.isEmpty) "empty" else s"`$default`"
}
