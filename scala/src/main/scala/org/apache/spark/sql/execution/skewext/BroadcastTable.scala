package org.apache.spark.sql.execution.skewext

import scala.collection.mutable

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.joins.{HashedRelation, HashedRelationWithAllNullKeys}

/**
 * The hash table of a broadcast. Lives here because Spark's hash tables are visible only in
 * `org.apache.spark.sql.execution`.
 */
final class BroadcastTable private (table: HashedRelation) {

  def keyIsUnique: Boolean = table.keyIsUnique

  /**
   * The keys in the form of the table, in which integral keys may be packed into a long. A key may
   * occur more than once. All returned rows are one object.
   */
  def keys: Iterator[InternalRow] = table.keys()

  /** The keys, each once; None if there are more than `most`. */
  def distinctKeys(most: Long): Option[Seq[InternalRow]] = {
    val found = mutable.LinkedHashSet.empty[InternalRow]
    val all = keys
    while (all.hasNext && found.size <= most) {
      val key = all.next()
      if (!found.contains(key)) found += key.copy()
    }
    if (found.size > most) None else Some(found.toSeq)
  }

  /** All rows. All returned rows are one object. */
  def allRows: Iterator[InternalRow] = distinctKeys(Long.MaxValue).iterator.flatten.flatMap(rows)

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
