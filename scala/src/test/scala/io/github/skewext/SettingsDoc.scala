package io.github.skewext

import io.github.skewext.rules.SkewConf

/**
 * Writes the table of settings that the documentation shows, or checks that it is up to date.
 * {{{
 * SettingsDoc docs/settings.md
 * SettingsDoc --check docs/settings.md
 * }}}
 */
object SettingsDoc extends GeneratedPage("the settings in SkewConf") {

  override protected def page(current: Option[String]): String = text

  def text: String = {
    val header = Seq(
      "# Settings",
      "",
      "Generated from `SkewConf.scala` by `make docs`; do not edit.",
      "",
      "Settings are read per query: `SET spark.skewext.…=…` or `spark.conf.set(…)` at any time.",
      "[Names of earlier versions](versions.md#old-names-of-settings) still work.",
      "",
      "| Setting | Default | Meaning | Since |",
      "|---|---|---|---|")
    val rows = SkewConf.entries.filter(_.isPublic).map { e =>
      s"| `${e.key}` | ${shown(e.defaultValueString)} | ${e.doc} | ${e.version} |"
    }
    (header ++ rows).mkString("", "\n", "\n")
  }

  /** Nothing between backquotes would be read as two backquotes. */
  private def shown(default: String): String = if (default.isEmpty) "empty" else s"`$default`"
}
