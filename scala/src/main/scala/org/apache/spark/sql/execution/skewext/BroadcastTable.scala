package org.apache.spark.sql.execution.skewext

import scala.collection.mutable
import scala.util.hashing.MurmurHash3

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.execution.joins.{HashedRelation, HashedRelationWithAllNullKeys}

/**
 * The hash table of a broadcast. Lives here because Spark's hash tables are visible only in
 * `org.apache.spark.sql.execution`.
 */
final class BroadcastTable private (table: HashedRelation) {
  import BroadcastTable._

  def keyIsUnique: Boolean = table.keyIsUnique

  /**
   * The keys in the form of the table, in which integral keys may be packed into a long. A key may
   * occur more than once. All returned rows are one object.
   */
  def keys: Iterator[InternalRow] = table.keys()

  /**
   * The number of rows that have the key of a row, on average over all rows. So many rows of one key
   * count, even if most keys have one.
   *
   * This is an estimate: each row adds 1 or -1 to one of many cells, as the hash of its key decides.
   * The squares of the cells add up to about the squares of the numbers of rows of all keys.
   */
  def meanRowsOfKey: Double = {
    val cells = new Array[Long](Cells)
    var numRows = 0L
    keys.foreach { key =>
      // A table of longs returns each key once, other tables once for each row.
      val count = if (key.isInstanceOf[UnsafeRow]) 1 else rows(key).size
      val hash = MurmurHash3.finalizeHash(key.hashCode, 0)
      cells(hash & (Cells - 1)) += (if (hash < 0) -count else count)
      numRows += count
    }
    cells.iterator.map(cell => cell.toDouble * cell).sum / math.max(1L, numRows)
  }

  /** All rows. All returned rows are one object. */
  def allRows: Iterator[InternalRow] = {
    val found = mutable.LinkedHashSet.empty[InternalRow]
    keys.foreach(key => if (!found.contains(key)) found += key.copy())
    found.iterator.flatMap(rows)
  }

  /** The rows of a key; null if there are none. */
  def rows(key: InternalRow): Iterator[InternalRow] = table.get(key)

  /** The first row of a key; null if there is none. */
  def firstRow(key: InternalRow): InternalRow = if (keyIsUnique) {
    table.getValue(key)
  } else {
    val all = table.get(key)
    if (all == null) null else all.next()
  }
}

object BroadcastTable {

  private final val Cells = 1 << 14

  /** The table of a broadcast value, if that is a table of keys, for the use of one thread. */
  def of(broadcast: Any): Option[BroadcastTable] = broadcast match {
    case HashedRelationWithAllNullKeys => None
    case table: HashedRelation => Some(new BroadcastTable(table.asReadOnlyCopy()))
    case _ => None
  }

  /** The table of a broadcast value, for the use of one task. */
  def forTask(broadcast: Any): BroadcastTable = {
    val copy = broadcast.asInstanceOf[HashedRelation].asReadOnlyCopy()
    TaskContext.get().taskMetrics().incPeakExecutionMemory(copy.estimatedSize)
    new BroadcastTable(copy)
  }
}
