package io.github.skewext

import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Paths}

import scala.collection.mutable

import io.github.skewext.bucket.PruneBucketsByKeys
import io.github.skewext.rules.{OldSettings, SkewConf}
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.skewext.SettingEntries

/** The public settings, and the names that earlier versions had. */
class SettingsSuite extends AnyFunSuite {

  private def confOf(settings: (String, String)*): SQLConf = {
    val conf = new SQLConf
    settings.foreach { case (key, value) => conf.setConfString(key, value) }
    conf
  }

  private val publicKeys = SettingEntries.all.filter(_.isPublic).map(_.key)

  private type Read = SQLConf => Any

  private def effect(name: String, value: String)(read: Read): (String, (String, Read)) =
    s"spark.skewext.$name" -> (value -> read)

  /** For each old name: a value, and what reads it. */
  private val effects: Map[String, (String, Read)] = Map(
    effect("multiJoin.broadcast.enabled", "false")(_.getConf(SkewConf.MULTI_JOIN_BROADCAST)),
    effect("multiJoin.runtimeFilter.enabled", "false")(
      _.getConf(SkewConf.MULTI_JOIN_RUNTIME_FILTER)),
    effect("multiJoin.grouping", "sort")(_.getConf(SkewConf.MULTI_JOIN_GROUPING)),
    effect("multiJoin.maxRowsInMemory", "7")(_.getConf(SkewConf.MULTI_JOIN_MAX_ROWS_IN_MEMORY)),
    effect("multiJoin.groupRowsInMemory", "7")(_.getConf(SkewConf.MULTI_JOIN_GROUP_ROWS_IN_MEMORY)),
    effect("shuffle.bulkRows.enabled", "false")(_.getConf(SkewConf.SHUFFLE_ENABLED)),
    effect("shuffle.columns.enabled", "false")(_.getConf(SkewConf.SHUFFLE_ENABLED)),
    effect("skew.maxSlices", "7")(_.getConf(SkewConf.SKEW_MAX_SLICES)),
    effect("skew.minGain", "7.0")(_.getConf(SkewConf.SKEW_MIN_GAIN)),
    effect("skew.marking.enabled", "false")(_.getConf(SkewConf.SKEW_MARKING)),
    effect("skew.output.enabled", "false")(SkewConf.outputSkew(_) != SkewConf.OutputSkew.Off),
    effect("skew.output.sparkJoins.enabled", "true")(
      SkewConf.outputSkew(_) == SkewConf.OutputSkew.All),
    effect("bucket.merge.maxFiles", "7")(_.getConf(SkewConf.BUCKET_MERGE_MAX_FILES)),
    effect("bucket.merge.multiJoin.maxFiles", "7")(
      _.getConf(SkewConf.BUCKET_MERGE_MULTI_JOIN_MAX_FILES)),
    effect("bucket.pruning.joinKeys.enabled", "false")(
      _.getConf(SkewConf.BUCKET_PRUNING_JOIN_KEYS)),
    effect("bucket.pruning.maxValues", "7")(_.getConf(SkewConf.BUCKET_PRUNING_MAX_VALUES)),
    effect("bucket.skew.enabled", "false")(_.getConf(SkewConf.BUCKET_SKEW)))

  test("every old name has its effect") {
    assert(effects.keySet === OldSettings.all.map(_.key).toSet)
    for ((key, (value, read)) <- effects) {
      assert(read(confOf(key -> value)).toString === value, key)
      assert(read(confOf()).toString !== value, key)
    }
  }

  test("a new name wins over its old one") {
    val conf = confOf(
      "spark.skewext.shuffle.bulkRows.enabled" -> "false",
      "spark.skewext.shuffle.enabled" -> "true")
    assert(conf.getConf(SkewConf.SHUFFLE_ENABLED))
    for (mode <- Seq("off", "multiJoin", "all"); old <- Seq("true", "false")) {
      val both = confOf(
        "spark.skewext.skew.output.enabled" -> old,
        "spark.skewext.skew.output.sparkJoins.enabled" -> old,
        "spark.skewext.skew.outputSkew.mode" -> mode)
      assert(SkewConf.outputSkew(both) === mode)
    }
  }

  test("the two old settings of splits by output give the modes") {
    def mode(enabled: Boolean, sparkJoins: Boolean): String = SkewConf.outputSkew(
      confOf(
        "spark.skewext.skew.output.enabled" -> enabled.toString,
        "spark.skewext.skew.output.sparkJoins.enabled" -> sparkJoins.toString))
    assert(mode(enabled = true, sparkJoins = true) === "all")
    assert(mode(enabled = true, sparkJoins = false) === "multiJoin")
    assert(mode(enabled = false, sparkJoins = true) === "off")
    assert(mode(enabled = false, sparkJoins = false) === "off")
    assert(SkewConf.outputSkew(confOf()) === "multiJoin")
  }

  test("an old name warns once, and names the setting to use") {
    val lines = mutable.Buffer.empty[String]
    val warnings = new OldSettings.Warnings(lines += _)
    warnings(confOf("spark.skewext.skew.enabled" -> "true"))
    assert(lines.isEmpty)
    for ((key, (value, _)) <- effects) {
      lines.clear()
      warnings(confOf(key -> value))
      warnings(confOf(key -> value))
      assert(lines.size === 1)
      assert(lines.head.startsWith(s"The setting $key is deprecated. Instead: "))
      assert(!lines.head.contains("wins"))
    }
    val use = OldSettings.all.map(old => old.key.stripPrefix("spark.skewext.") -> old.instead).toMap
    assert(use("shuffle.bulkRows.enabled") === "spark.skewext.shuffle.enabled")
    assert(use("skew.output.enabled") === "spark.skewext.skew.outputSkew.mode=off for false")
    assert(
      use("bucket.pruning.joinKeys.enabled") ===
        s"spark.skewext.excludedRules=${PruneBucketsByKeys.ruleName} for false")
    val named = "spark\\.skewext\\.[\\w.]*\\w".r
    assert(OldSettings.all.flatMap(old => named.findAllIn(old.instead)).forall(publicKeys.contains))
  }

  test("the warning of an old name says that the new one wins") {
    val lines = mutable.Buffer.empty[String]
    val warnings = new OldSettings.Warnings(lines += _)
    warnings(
      confOf(
        "spark.skewext.skew.output.enabled" -> "false",
        "spark.skewext.skew.outputSkew.mode" -> "all"))
    assert(lines.size === 1)
    assert(lines.head.endsWith("spark.skewext.skew.outputSkew.mode is set, too, and wins."))
  }

  test("a wrong value fails when it is set, also under an old name") {
    def failure(key: String, value: String): String =
      intercept[IllegalArgumentException](confOf(s"spark.skewext.$key" -> value)).getMessage
    val modes = failure("skew.outputSkew.mode", "multijoins")
    assert(Seq("off", "multiJoin", "all", "multijoins").forall(modes.contains), modes)
    assert(failure("multiJoin.order", "sorted").contains("natural"))
    assert(failure("shuffle.bulkRows.enabled", "no idea").contains("boolean"))
    assert(failure("skew.output.enabled", "no idea").contains("boolean"))
    assert(failure("skew.output.sparkJoins.enabled", "no idea").contains("boolean"))
    // Spark's own settings ignore the case of such words, too.
    assert(SkewConf.outputSkew(confOf("spark.skewext.skew.outputSkew.mode" -> "ALL")) === "all")
  }

  test("there are at most 20 public settings, and no other one was public") {
    assert(publicKeys.size <= 20)
    val internal = SettingEntries.all.filterNot(_.isPublic).map(_.key).toSet
    val forTests = Set(
      SkewConf.MULTI_JOIN_HASH_BITS.key,
      SkewConf.SKEW_OUTPUT_SAMPLE_EVERY.key,
      SkewConf.OR_JOIN_MIN_PAIRS.key)
    assert(internal -- forTests === OldSettings.all.map(_.key).toSet)
  }

  test("the documentation has all public settings and all old names") {
    def page(name: String): String =
      new String(Files.readAllBytes(Paths.get(sys.props("skewext.root"), "docs", name)), UTF_8)
    val headings = page("settings.md").split("\n").filter(_.startsWith("### `spark."))
    assert(headings.map(_.split('`')(1)).sorted.toSeq === publicKeys.sorted)
    val table = (Seq("| Old name | Instead |", "|---|---|") ++ OldSettings.all.map { old =>
      s"| `${old.key}` | ${old.instead} |"
    }).mkString("", "\n", "\n\n")
    assert(page("versions.md").contains(table), table)
  }

  test("reasons and advice name public settings only") {
    val named = "spark\\.skewext\\.[\\w.]*\\w".r
    val found = ReasonsDoc.tables.values.flatMap(named.findAllIn(_)).toSet
    assert(found.nonEmpty)
    assert(found.filterNot(publicKeys.contains).isEmpty)
  }
}
