package io.github.skewext.bucket

/**
 * Checks that no row of an append was lost: its tasks count the rows that they write, and the table's
 * new files must have as many. Another append may add files at the same time, or remove ours. A file's
 * name has the number of its task, its bucket, and an id of the write that Spark does not tell us. So
 * the files are grouped by that id, and ours is the group with our tasks' counts. Two appends with
 * equal counts may take each other's group: the sums are right all the same.
 */
private[bucket] object WriteCheck {

  /**
   * Rows that the table lacks.
   *
   * @param byBucket by the number of the bucket
   * @param found rows of the write that the table has
   * @param isLeast whether there may be more, as the files may also be those of another write
   */
  case class Missing(byBucket: Map[Int, Long], found: Long, isLeast: Boolean) {
    def rows: Long = byBucket.values.sum

    def message(table: String): String = {
      val each = byBucket.toSeq.sorted.map { case (bucket, n) => f"$bucket ($n%,d)" }
      val more = if (each.size > Shown) s" and ${each.size - Shown} more" else ""
      val least = if (isLeast) "at least " else ""
      val rest =
        if (found > 0) " The other rows are in the table: remove them before you write again."
        else ""
      f"The write to $table lost rows: its tasks wrote ${rows + found}%,d rows, and $least$rows%,d of " +
        s"them are not in the table's files, of the buckets ${each.take(Shown).mkString(", ")}$more. " +
        s"Another write to the table may have removed them.$rest"
    }
  }

  private val Shown = 20

  /** Spark names files part-<task>-<id of the write>_<bucket>; other committers may do otherwise. */
  private val FileName =
    "part-(\\d+)-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})_(\\d+)(?:\\..*)?".r

  /**
   * @param counted rows by task and bucket
   * @param files rows of all new files of a name
   * @param claim takes a write by its id, unless another call has done so
   * @return the names of the write's files
   */
  def ownFiles(
      counted: Map[(Int, Int), Long],
      files: Map[String, Long],
      claim: String => Boolean): Either[Missing, Set[String]] = {
    val named = files.toSeq.collect { case (name @ FileName(task, write, bucket), rows) =>
      (write, name, (task.toInt, bucket.toInt), rows)
    }
    val ofTasks = byTask(counted)
    val (whole, others) = named
      .groupBy(_._1)
      .toSeq
      .map { case (write, of) =>
        (write, of.map(_._2).toSet, sums(of.map { case (_, _, place, rows) => place -> rows }))
      }
      .partition { case (_, _, rows) => byTask(rows) == ofTasks }
    whole.find { case (write, _, _) => claim(write) } match {
      case Some((_, names, _)) => Right(names)
      case None if counted.isEmpty => Right(Set.empty)
      case None if named.isEmpty && files.nonEmpty =>
        throw new IllegalStateException("New files have names that tell neither task nor write.")
      case None =>
        val parts = others.map(_._3).filter { rows =>
          rows.nonEmpty && byTask(rows).forall { case (task, n) =>
            n <= ofTasks.getOrElse(task, 0L)
          }
        }
        val found = if (parts.isEmpty) Map.empty[(Int, Int), Long] else parts.maxBy(_.values.sum)
        val foundByBucket = byBucket(found)
        val lacking = byBucket(counted).map { case (bucket, n) =>
          bucket -> (n - foundByBucket.getOrElse(bucket, 0L))
        }
        Left(Missing(lacking.filter(_._2 > 0), found.values.sum, isLeast = parts.size > 1))
    }
  }

  /** How many rows each bucket has got. */
  def byBucket(rows: Map[(Int, Int), Long]): Map[Int, Long] =
    sums(rows.toSeq.map { case ((_, bucket), n) => bucket -> n })

  private def byTask(rows: Map[(Int, Int), Long]): Map[Int, Long] =
    sums(rows.toSeq.map { case ((task, _), n) => task -> n })

  private def sums[K](rows: Seq[(K, Long)]): Map[K, Long] =
    rows.groupBy(_._1).map { case (key, of) => key -> of.map(_._2).sum }.filter(_._2 > 0)
}
