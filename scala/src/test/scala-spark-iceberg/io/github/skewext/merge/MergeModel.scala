package io.github.skewext.merge

/** A row of the target or of the source. */
case class MergeRow(id: Long, k: Option[Long], a: Int, txt: String)

/** A condition on a row of the target and one of the source, of which one may be missing. */
case class MergeCondition(sql: String, holds: (MergeRow, MergeRow) => Boolean)

/**
 * What a clause does to the first of its kind that its condition holds for.
 *
 * @param result what becomes of the target row, or of the source row that is inserted; nothing if the
 *               row is deleted
 */
case class MergeAction(
    condition: Option[MergeCondition],
    sql: String,
    result: (MergeRow, MergeRow) => Option[MergeRow])

/** What a MERGE means: row by row, from SQL's words, without joins or partitions. */
case class MergeModel(
    on: Seq[MergeCondition],
    matched: Seq[MergeAction],
    notMatched: Seq[MergeAction],
    notMatchedBySource: Seq[MergeAction]) {

  def sql(target: String, source: String): String = {
    def clauses(when: String, actions: Seq[MergeAction]) = actions.map { action =>
      s"WHEN $when${action.condition.fold("")(" AND " + _.sql)} THEN ${action.sql}"
    }
    (s"MERGE INTO $target t USING $source s" +:
      s"ON ${("t.k = s.k" +: on.map(_.sql)).mkString(" AND ")}" +:
      (clauses("MATCHED", matched) ++ clauses("NOT MATCHED", notMatched) ++
        clauses("NOT MATCHED BY SOURCE", notMatchedBySource))).mkString("\n")
  }

  /** The new target; nothing if rows of it match twice and must not. */
  def run(target: Seq[MergeRow], source: Seq[MergeRow]): Option[Seq[MergeRow]] = {
    val byKey = source.filter(_.k.isDefined).groupBy(_.k)
    val pairs = target.map { t =>
      t -> byKey.getOrElse(t.k, Nil).filter(s => on.forall(_.holds(t, s)))
    }
    val isDelete = matched.size == 1 && matched.head.condition.isEmpty &&
      matched.head.sql == MergeModel.Delete
    if (matched.nonEmpty && !isDelete && pairs.exists(_._2.size > 1)) {
      None
    } else {
      val met = pairs.flatMap(_._2).map(_.id).toSet
      val kept = pairs.flatMap {
        case (t, Nil) => first(notMatchedBySource, t, null).fold(Option(t))(_.result(t, null))
        case (t, s +: _) => first(matched, t, s).fold(Option(t))(_.result(t, s))
      }
      val inserted = source.filterNot(s => met(s.id)).flatMap { s =>
        first(notMatched, null, s).flatMap(_.result(null, s))
      }
      Some(kept ++ inserted)
    }
  }

  private def first(actions: Seq[MergeAction], t: MergeRow, s: MergeRow): Option[MergeAction] =
    actions.find(_.condition.forall(_.holds(t, s)))
}

object MergeModel {
  val Delete = "DELETE"
}
