package io.github.skewext.explain

/**
 * Explanations as text: of joins for Spark's own EXPLAIN, and of queries for Scala, Java, Python. An
 * entry is a title and its lines. An indented line belongs to the line above.
 */
private[skewext] object ExplanationText {

  /** The notes, and an entry for each join, with its inputs and its operator, and each scan. */
  def entries(explanation: Explanation): Seq[Seq[String]] = {
    // A note may say that the query was not looked at.
    val nothing =
      if (explanation.notes.isEmpty && explanation.joins.isEmpty) Seq("No joins.") else Nil
    (explanation.notes ++ nothing).map(Seq(_)) ++
      explanation.joins.map { join =>
        val details = inputs(join.inputs) ++ join.execution.toSeq.flatMap(work)
        entry(join, details ++ skews(join, showsAll = true))
      } ++
      explanation.scans.map(entry(_))
  }

  def of(explanation: Explanation): String = entries(explanation).map(text).mkString("\n")

  /** Entries for the joins that skewext changed, or left alone for a reason. */
  def of(joins: Seq[ExplainedJoin]): String =
    joins
      .filter(concerns)
      .map(join => text(entry(join, skews(join, showsAll = false))))
      .mkString("\n")

  /** A line for each of these joins. */
  def summary(joins: Seq[ExplainedJoin]): Seq[String] =
    joins.filter(concerns).map { join =>
      val splits = join.skews.collect {
        case skew if skew.status == ExplainedSkew.Split => s"; ${skew.text}"
      }
      s"${join.title}: ${why(join.origin)}${splits.mkString}"
    }

  private def text(entry: Seq[String]): String = entry.mkString("\n  ")

  private def concerns(join: ExplainedJoin): Boolean =
    join.origin.concerns || skews(join, showsAll = false).nonEmpty

  private def entry(join: ExplainedJoin, more: Seq[String]): Seq[String] = {
    val origin = join.origin
    val reason = why(origin) +: advice(origin.advice)
    s"Join ${join.number}${shown(join.place)}: ${join.title}" +: (reason ++ more)
  }

  private def why(origin: Origin): String =
    s"${origin.status}: ${origin.text}${origin.detail.fold("")(text => s" ($text)")}"

  private def entry(scan: ExplainedScan): Seq[String] = {
    val title =
      s"Scan ${scan.number}${shown(scan.place)}: ${scan.source}, ${scan.buckets} buckets " +
        s"by [${scan.by.mkString(", ")}]"
    val partitions = scan.partitions.fold("")(n => s", in $n partitions")
    val read = s"reads ${scan.read} of ${scan.buckets} buckets$partitions: ${scan.why}"
    Seq(title, read) ++ advice(scan.advice)
  }

  private def shown(place: String): String = place match {
    case Place.Query => ""
    case Place.Cached => " (in a cached table)"
    case other => s" (in a $other)"
  }

  /** A line for each input, with its first three columns aligned. */
  private def inputs(all: Seq[ExplainedInput]): Seq[String] = {
    val cells = all.map { input =>
      Seq(s"input ${input.position}", input.role.getOrElse(""), input.source + key(input))
    }
    def width(cell: String) = cell.codePointCount(0, cell.length)
    val widths = cells.transpose.map(_.map(width).max)
    all.zip(cells).map { case (input, row) =>
      val columns = row.zip(widths).collect {
        case (cell, most) if most > 0 => cell + " " * (most - width(cell))
      }
      val notes = input.narrowedFrom.map(from => s"was $from") ++ conditions(input) ++
        input.hint.map(hint => s"hint: $hint")
      (columns :+ notes.mkString("; ")).mkString("  ").replaceAll("\\s+$", "")
    }
  }

  private def key(input: ExplainedInput): String =
    if (input.key.isEmpty) "" else input.key.mkString(" [", ", ", "]")

  private def conditions(input: ExplainedInput): Seq[String] =
    Seq("filter" -> input.filters, "read by" -> input.read).collect {
      case (name, items) if items.nonEmpty => s"$name: ${items.mkString(", ")}"
    }

  private def work(work: Execution): Seq[String] = {
    val exchanges = if (work.exchanges == 0) {
      "exchanges: none"
    } else {
      val byRow = if (work.byRow.isEmpty) "" else work.byRow.mkString("; by row: ", ", ", "")
      s"exchanges: ${work.exchanges} (columnar ${work.columns}$byRow); " +
        s"key sampling: ${work.counted}"
    }
    Seq(s"grouping: ${work.rows}; $exchanges", s"null keys: ${work.nullKeys}")
  }

  /** The splits, and the reasons against splits. A plan that has not run has neither. */
  private def skews(join: ExplainedJoin, showsAll: Boolean): Seq[String] =
    join.skews.flatMap { skew =>
      val of = if (join.operators.distinct.size > 1) s" of ${skew.operator}" else ""
      skew.status match {
        case ExplainedSkew.Split => s"skew$of: split, ${skew.description}" +: advice(skew.advice)
        case ExplainedSkew.Whole => s"skew$of: not split: ${skew.text}" +: advice(skew.advice)
        case other => if (showsAll) Seq(s"skew$of: $other: ${skew.text}") else Nil
      }
    }

  private def advice(text: Option[String]): Seq[String] = text.map("  " + _).toSeq
}
