package io.github.skewext.explain

/**
 * Explanations as text: of joins for Spark's own EXPLAIN, and of queries for Scala and Java. The
 * lines are those that Python prints.
 */
private[skewext] object ExplanationText {

  /** The notes, and an entry for each join and each scan. */
  def of(explanation: Explanation): String = {
    val nothing =
      if (explanation.notes.isEmpty && explanation.joins.isEmpty) Seq("No joins.") else Nil
    val entries =
      explanation.joins.map(entry(_, showsAll = true)) ++ explanation.scans.map(entry(_))
    (explanation.notes ++ nothing ++ entries).mkString("\n")
  }

  /** Entries for the joins that skewext changed, or left alone for a reason. */
  def of(joins: Seq[ExplainedJoin]): String =
    joins.filter(concerns).map(entry(_, showsAll = false)).mkString("\n")

  private def concerns(join: ExplainedJoin): Boolean =
    join.origin.status != Origin.LeftAlone || join.origin.text != Origins.NoChain ||
      lines(join, showsAll = false).nonEmpty

  private def entry(join: ExplainedJoin, showsAll: Boolean): String = {
    val origin = join.origin
    val detail = origin.detail.fold("")(text => s" ($text)")
    val why = s"${origin.status}: ${origin.text}$detail" +: advice(origin.advice)
    val title = s"Join ${join.number}${shown(join.place)}: ${join.title}"
    (title +: (why ++ lines(join, showsAll))).mkString("\n  ")
  }

  private def entry(scan: ExplainedScan): String = {
    val title =
      s"Scan ${scan.number}${shown(scan.place)}: ${scan.source}, ${scan.buckets} buckets " +
        s"by [${scan.by.mkString(", ")}]"
    val partitions = scan.partitions.fold("")(n => s", in $n partitions")
    val read = s"reads ${scan.read} of ${scan.buckets} buckets$partitions: ${scan.why}"
    (Seq(title, read) ++ advice(scan.advice)).mkString("\n  ")
  }

  private def shown(place: String): String = place match {
    case Place.Query => ""
    case Place.Cached => " (in a cached table)"
    case other => s" (in a $other)"
  }

  /** The splits, and the reasons against splits. A plan that has not run has neither. */
  private def lines(join: ExplainedJoin, showsAll: Boolean): Seq[String] =
    join.skew.distinct.flatMap { skew =>
      val of = if (join.operators.distinct.size > 1) s" of ${skew.operator}" else ""
      skew.status match {
        case ExplainedSkew.Split => Seq(s"skew$of: split, ${skew.text}")
        case ExplainedSkew.Whole => s"skew$of: not split: ${skew.text}" +: advice(skew.advice)
        case other => if (showsAll) Seq(s"skew$of: $other: ${skew.text}") else Nil
      }
    }

  private def advice(text: Option[String]): Seq[String] = text.map("  " + _).toSeq
}
