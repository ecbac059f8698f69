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

/**
 * Writes the tables of reasons into the documentation, or checks that they are up to date.
 * {{{
 * ReasonsDoc docs/explain.md
 * ReasonsDoc --check docs/explain.md
 * }}}
 * A table stands between `<!-- reasons: rewrite -->` and `<!-- end of reasons -->`.
 */
object ReasonsDoc extends GeneratedPage("the reasons in the code") {

  override protected def page(current: Option[String]): String = withTables(current.getOrElse(""))

  /** The page with the tables as they should be. */
  def withTables(page: String): String = tables.foldLeft(page) { case (text, (name, table)) =>
    val begin = s"<!-- reasons: $name -->\n"
    val start = text.indexOf(begin)
    val end = text.indexOf(End, start)
    if (start < 0 || end < 0) {
      throw new IllegalArgumentException(s"The page has no place for the reasons of '$name'.")
    }
    text.take(start + begin.length) + table + text.drop(end)
  }

  private val End = "<!-- end of reasons -->"

  def tables: Map[String, String] = Map(
    "join" -> table(ProbeReason),
    "or join" -> table(OrJoinReason),
    "range" -> table(RangeReason),
    "rewrite" -> table(RewriteReason),
    "skew" -> table(SkewReason),
    "technique" -> table(TechniqueReason),
    "file-order" -> table(FileOrderReason),
    "buckets" -> table(BucketReason),
    "row shuffle" -> table(RowShuffleReason))

  private def table(reasons: Reasons[_ <: Reason]): String =
    (Seq("| Reason | What it means, what to do |", "|---|---|") ++ reasons.all.map { reason =>
      s"| ${cell(reason.text)} | ${cell(reason.advice)} |"
    }).mkString("", "\n", "\n")

  private def cell(text: String): String = text.replace("|", "\\|")
}
