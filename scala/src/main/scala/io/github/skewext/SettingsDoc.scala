package io.github.skewext

import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path, Paths}

/**
 * Writes the table of settings that the documentation shows, or checks that it is up to date.
 * {{{
 * SettingsDoc docs/settings.md
 * SettingsDoc --check docs/settings.md
 * }}}
 */
object SettingsDoc {

  def main(args: Array[String]): Unit = args match {
    case Array("--check", file) =>
      if (!isCurrent(Paths.get(file))) {
        System.err.println(s"$file is not what the settings in SkewConf give; run `make docs`.")
        sys.exit(1)
      }
    case Array(file) =>
      Files.write(Paths.get(file), text.getBytes(UTF_8))
    case _ =>
      System.err.println("usage: SettingsDoc [--check] <file>")
      sys.exit(2)
  }

  private def isCurrent(file: Path): Boolean =
    Files.exists(file) && new String(Files.readAllBytes(file), UTF_8) == text

  def text: String = {
    val header = Seq(
      "# Settings",
      "",
      "Generated from `SkewConf.scala` by `make docs`; do not edit.",
      "",
      "Settings are read per query: `SET spark.skewext.…=…` or `spark.conf.set(…)` at any time.",
      "",
      "| Setting | Default | Meaning | Since |",
      "|---|---|---|---|")
    val rows = SkewConf.entries.filter(_.isPublic).map { e =>
      s"| `${e.key}` | `${e.defaultValueString}` | ${e.doc} | ${e.version} |"
    }
    (header ++ rows).mkString("", "\n", "\n")
  }
}
