package io.github.skewext.technique

import java.util.HashMap

import org.apache.spark.sql.catalyst.expressions.{UnsafeRow, XXH64}

/**
 * Chooses the cells of the rows of a side.
 *
 * A hash of the content of a row and of the task's number selects the part of a hot key to which the
 * row belongs. Rows that consist only of their key would all be in one part. They are
 * indistinguishable, so they go to the parts in turn. If a retried task may have other rows, all its
 * rows go to one part, which the task's number selects. Otherwise a reducer that has read the first
 * attempt could get a row twice or lose one.
 *
 * @param nullCells the number of cells for rows with a null key, which match nothing.
 * @param stable whether a retried task has the same rows.
 * @param alike whether rows with equal keys are identical.
 */
private[skewext] case class SaltedCells(
    salted: SaltedSide,
    nullCells: Int,
    stable: Boolean,
    alike: Boolean) {

  /** A function from a row's key and the row to its cells, each with a kind of [[SaltKeys]]. */
  def ofTask(task: Int): (UnsafeRow, UnsafeRow) => Seq[(Int, Int)] = {
    val hot = new HashMap[UnsafeRow, SaltedKey]
    salted.hot.foreach(each => hot.put(each.key, each))
    val rowsBefore = new HashMap[SaltedKey, Long]
    (key, row) =>
      if (key.anyNull()) Seq((-1 - part(task, row, nullCells), SaltKeys.First))
      else {
        Option(hot.get(key)).fold(Seq((0, SaltKeys.First))) { hotKey =>
          val before = rowsBefore.getOrDefault(hotKey, 0L)
          rowsBefore.put(hotKey, before + 1)
          ofHot(hotKey, task, row, before)
        }
      }
  }

  /** @param before the number of the key's rows that the task has read before. */
  private def ofHot(key: SaltedKey, task: Int, row: UnsafeRow, before: Long): Seq[(Int, Int)] = {
    val parts = key.salts(salted.side)
    val mine =
      if (stable && alike) Math.floorMod(task + before, parts.toLong).toInt
      else part(task, row, parts)
    val first +: further = key.cells(salted.side, mine)
    val copies = (first, SaltKeys.First) +: further.map(_ -> SaltKeys.Further)
    if (before > 0) if (salted.oneRow) Nil else copies
    // If all rows are in one part, every cell with a row of the other side has them.
    else if (!salted.marks || parts == 1) copies
    else copies ++ key.cells(salted.side, 0).map(_ -> SaltKeys.Marker)
  }

  private def part(task: Int, row: UnsafeRow, parts: Int): Int = {
    def hash = XXH64.hashUnsafeBytes(row.getBaseObject, row.getBaseOffset, row.getSizeInBytes, 0L)
    val h = XXH64.hashLong(if (stable) hash else 0L, task.toLong)
    Math.floorMod((h ^ (h >>> 32)).toInt, parts)
  }
}
