package io.github.skewext

import io.github.skewext.bucket.{BucketReason, FileOrderReason}
import io.github.skewext.disjunction.OrJoinReason
import io.github.skewext.join.probe.ProbeReason
import io.github.skewext.join.range.RangeReason
import io.github.skewext.platform.{Reason, Reasons}
import io.github.skewext.rewrite.RewriteReason
import io.github.skewext.shuffle.RowShuffleReason
import io.github.skewext.skew.plan.SkewReason
import io.github.skewext.technique.TechniqueReason
import org.scalatest.funsuite.AnyFunSuite

/** Every reason is in the documentation, once, with what to do about it. */
class ReasonsDocSuite extends AnyFunSuite {

  private def declaredIn(reasons: Reasons[_ <: Reason]): Set[AnyRef] =
    reasons.getClass.getMethods
      .filter(m => m.getParameterCount == 0 && classOf[Reason].isAssignableFrom(m.getReturnType))
      .map(_.invoke(reasons))
      .toSet

  test("the lists of reasons are complete") {
    Seq(
      ProbeReason,
      OrJoinReason,
      RangeReason,
      SkewReason,
      RewriteReason,
      FileOrderReason,
      TechniqueReason,
      BucketReason,
      RowShuffleReason).foreach { reasons =>
      assert(reasons.all.nonEmpty && reasons.all.toSet[AnyRef] === declaredIn(reasons))
    }
  }

  test("every reason has a row of its own") {
    val tables = ReasonsDoc.tables
    val texts = Map(
      "join" -> ProbeReason.all.map(_.text),
      "or join" -> OrJoinReason.all.map(_.text),
      "range" -> RangeReason.all.map(_.text),
      "rewrite" -> RewriteReason.all.map(_.text),
      "skew" -> SkewReason.all.map(_.text),
      "file-order" -> FileOrderReason.all.map(_.text),
      "technique" -> TechniqueReason.all.map(_.text),
      "buckets" -> BucketReason.all.map(_.text),
      "row shuffle" -> RowShuffleReason.all.map(_.text))
    for ((name, reasons) <- texts; reason <- reasons) {
      val rows = tables(name).split("\n").filter(_.startsWith(s"| $reason | "))
      assert(rows.length === 1, reason)
      assert(rows.head.split(" \\| ")(1).length > 10, reason)
    }
  }

  test("tables are put between their marks, and nothing else changes") {
    val page = Seq(
      "a",
      "<!-- reasons: join -->",
      "<!-- end of reasons -->",
      "<!-- reasons: or join -->",
      "<!-- end of reasons -->",
      "<!-- reasons: range -->",
      "<!-- end of reasons -->",
      "<!-- reasons: rewrite -->",
      "as it was",
      "<!-- end of reasons -->",
      "b",
      "<!-- reasons: skew -->",
      "<!-- end of reasons -->",
      "<!-- reasons: technique -->",
      "<!-- end of reasons -->",
      "<!-- reasons: file-order -->",
      "<!-- end of reasons -->",
      "<!-- reasons: buckets -->",
      "<!-- end of reasons -->",
      "<!-- reasons: row shuffle -->",
      "<!-- end of reasons -->",
      "c").mkString("\n")
    val written = ReasonsDoc.withTables(page)
    assert(ReasonsDoc.withTables(written) === written)
    assert(!written.contains("as it was"))
    assert(written.startsWith("a\n") && written.endsWith("-->\nc"))
    intercept[IllegalArgumentException](ReasonsDoc.withTables("no marks"))
  }
}
