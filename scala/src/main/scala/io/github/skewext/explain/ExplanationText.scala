package io.github.skewext.explain

/** An explanation for people to read. */
private[explain] object ExplanationText {

  def of(explanation: Explanation): String = {
    val joins =
      if (explanation.joins.isEmpty) Seq("No joins.") else explanation.joins.map(of(_))
    (explanation.notes ++ joins ++ explanation.scans.map(of(_))).mkString("\n\n")
  }

  private def of(join: ExplainedJoin): String = {
    val lines = Seq(s"Join ${join.number}${inPlace(join.place)}: ${join.title}") ++
      of(join.origin) ++
      inputs(join) ++
      join.execution.toSeq.flatMap(of(_)) ++
      join.skew.distinct.flatMap(of(_, named = join.operators.distinct.size > 1))
    lines.head +: lines.tail.map("  " + _)
  }.mkString("\n")

  private def inPlace(place: String): String = place match {
    case Place.Query => ""
    case Place.Cached => " (in a cached table)"
    case other => s" (in a $other)"
  }

  private def of(origin: Origin): Seq[String] = {
    val detail = origin.detail.fold("")(d => s" ($d)")
    s"${origin.status}: ${origin.text}$detail" +: origin.advice.map("  " + _).toSeq
  }

  private def inputs(join: ExplainedJoin): Seq[String] = {
    val columns = join.inputs.map { input =>
      Seq(
        s"input ${input.position}",
        input.role.getOrElse(""),
        input.source + (if (input.key.isEmpty) "" else input.key.mkString(" [", ", ", "]")))
    }
    val widths = columns.transpose.map(_.map(_.length).max)
    columns.zip(join.inputs).map { case (cells, input) =>
      val line = cells
        .zip(widths)
        .collect { case (cell, width) if width > 0 => cell.padTo(width, ' ') }
        .mkString("  ")
      (line +: notesOn(input)).mkString("  ").trim
    }
  }

  private def notesOn(input: ExplainedInput): Seq[String] = {
    val own = input.filters.filterNot(input.pushed.contains)
    def listed(what: String, items: Seq[String]) =
      if (items.isEmpty) None else Some(s"$what: ${items.mkString(", ")}")
    Seq(
      input.narrowedFrom.map(role => s"was $role"),
      listed("pushed", input.pushed),
      listed("filter", own),
      listed("read by", input.read)).flatten.mkString("; ") match {
      case "" => Nil
      case notes => Seq(notes)
    }
  }

  private def of(execution: Execution): Seq[String] = {
    val shuffles = execution.exchanges match {
      case 0 => "nothing is shuffled for it"
      case n =>
        s"$n ${if (n == 1) "exchange" else "exchanges"}, ${execution.bulk} with bulk rows, keys " +
          s"counted below ${execution.counted}"
    }
    Seq(s"rows: ${execution.rows}; $shuffles", s"null keys: ${execution.nullKeys}")
  }

  private def of(scan: ExplainedScan): String = {
    val how = scan.partitions.fold("")(n => s", in $n partitions")
    val lines = Seq(
      s"Scan ${scan.number}${inPlace(scan.place)}: ${scan.source}, ${scan.buckets} buckets by " +
        scan.by.mkString("[", ", ", "]"),
      s"reads ${scan.read} of ${scan.buckets} buckets$how: ${scan.why}") ++
      scan.advice.map("  " + _)
    lines.head +: lines.tail.map("  " + _)
  }.mkString("\n")

  private def of(skew: ExplainedSkew, named: Boolean): Seq[String] = {
    val operator = if (named) s" of ${skew.operator}" else ""
    val status = skew.status match {
      case ExplainedSkew.Split => s"split, ${skew.text}"
      case ExplainedSkew.Whole => s"not split: ${skew.text}"
      case other => s"$other: ${skew.text}"
    }
    s"skew$operator: $status" +: skew.advice.map("  " + _).toSeq
  }
}
