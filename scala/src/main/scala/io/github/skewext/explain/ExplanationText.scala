package io.github.skewext.explain

/**
 * Outlines of joins as text, for Spark's own EXPLAIN. The lines are those that Python prints for an
 * explanation.
 */
private[skewext] object ExplanationText {

  /** Entries for the joins that skewext changed, or left alone for a reason. */
  def of(joins: Seq[ExplainedJoin]): String = joins.filter(concerns).map(entry).mkString("\n")

  private def concerns(join: ExplainedJoin): Boolean =
    join.origin.status != Origin.LeftAlone || join.origin.text != Origins.NoChain ||
      lines(join).nonEmpty

  private def entry(join: ExplainedJoin): String = {
    val place = join.place match {
      case Place.Query => ""
      case Place.Cached => " (in a cached table)"
      case other => s" (in a $other)"
    }
    val origin = join.origin
    val detail = origin.detail.fold("")(text => s" ($text)")
    val why = s"${origin.status}: ${origin.text}$detail" +: advice(origin.advice)
    (s"Join ${join.number}$place: ${join.title}" +: (why ++ lines(join))).mkString("\n  ")
  }

  /** The splits, and the reasons against splits. A plan that has not run has neither. */
  private def lines(join: ExplainedJoin): Seq[String] = join.skew.distinct.flatMap { skew =>
    val of = if (join.operators.distinct.size > 1) s" of ${skew.operator}" else ""
    skew.status match {
      case ExplainedSkew.Split => Seq(s"skew$of: split, ${skew.text}")
      case ExplainedSkew.Whole => s"skew$of: not split: ${skew.text}" +: advice(skew.advice)
      case _ => Nil
    }
  }

  private def advice(text: Option[String]): Seq[String] = text.map("  " + _).toSeq
}
