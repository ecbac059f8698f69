package io.github.skewext

import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Paths}

import io.github.skewext.platform.SkewConf
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.skewext.SettingEntries

/** The public settings. */
class SettingsSuite extends AnyFunSuite {

  private def confOf(settings: (String, String)*): SQLConf = {
    val conf = new SQLConf
    settings.foreach { case (key, value) => conf.setConfString(key, value) }
    conf
  }

  private val publicKeys = SettingEntries.all.filter(_.isPublic).map(_.key)

  test("a wrong value fails when it is set") {
    def failure(key: String, value: String): String =
      intercept[IllegalArgumentException](confOf(s"spark.skewext.$key" -> value)).getMessage
    val modes = failure("skew.outputSkew.mode", "multijoins")
    assert(Seq("off", "multiJoin", "all", "multijoins").forall(modes.contains), modes)
    assert(failure("shuffle.enabled", "no idea").contains("boolean"))
    // Spark's own settings ignore the case of such words, too.
    assert(
      confOf("spark.skewext.skew.outputSkew.mode" -> "ALL")
        .getConf(SkewConf.SKEW_OUTPUT_MODE) === "all")
  }

  test("there are at most 20 public settings") {
    assert(publicKeys.size <= 20)
  }

  test("the documentation has all public settings") {
    def page(name: String): String =
      new String(Files.readAllBytes(Paths.get(sys.props("skewext.root"), "docs", name)), UTF_8)
    val headings = page("settings.md").split("\n").filter(_.startsWith("### `spark."))
    assert(headings.map(_.split('`')(1)).sorted.toSeq === publicKeys.sorted)
  }

  test("reasons and advice name public settings only") {
    val named = "spark\\.skewext\\.[\\w.]*\\w".r
    val found = ReasonsDoc.tables.values.flatMap(named.findAllIn(_)).toSet
    assert(found.nonEmpty)
    assert(found.filterNot(publicKeys.contains).isEmpty)
  }
}
