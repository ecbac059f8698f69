package io.github.skewext.multijoin

import org.apache.spark.TaskContext
import org.apache.spark.memory.SparkOutOfMemoryError
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Expression, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.skewext.TaskInternals
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.map.BytesToBytesMap

/**
 * A set of keys, to which a much larger input is compared that is neither kept nor sorted: one row of
 * each key is let through, and the input is left as soon as all keys were met.
 *
 * The set is in pages of the task. If there is no memory for it, it is given up and all rows are let
 * through, which is as right and only slower: the join knows how to spill them.
 *
 * @param keys the keys of each input, bound to its rows; equal keys have equal bytes
 */
private[multijoin] final class WantedKeys(keys: Seq[Seq[Expression]], context: TaskContext) {

  private[this] val projections = keys.map(UnsafeProjection.create(_)).toArray
  private[this] val mark = Array[Long](0L)
  private[this] var unmet = 0L

  /** The key looked for last: where a key is hot, the next one is often the same. */
  private[this] val lastKey = UnsafeRow.createFromByteArray(0, keys.head.size)

  /** Null once there was no memory for it, or when it is not needed any more. */
  private[this] var set: BytesToBytesMap = create()

  context.addTaskCompletionListener[Unit](_ => free())

  /** The key of the row, if it has no null, is wanted. */
  def add(input: Int, row: UnsafeRow): Unit = if (set != null) {
    val key = projections(input)(row)
    if (!key.anyNull()) {
      val location = set.lookup(key.getBaseObject, key.getBaseOffset, key.getSizeInBytes)
      if (!location.isDefined) {
        val added =
          try {
            location.append(
              key.getBaseObject,
              key.getBaseOffset,
              key.getSizeInBytes,
              mark,
              Platform.LONG_ARRAY_OFFSET,
              8)
          } catch {
            case _: SparkOutOfMemoryError => false
          }
        if (added) unmet += 1 else free()
      }
    }
  }

  /** Of the rows, the first of each wanted key; all of them if the set was given up. */
  def firstOfEach(input: Int, rows: Iterator[InternalRow]): Iterator[InternalRow] =
    new Iterator[InternalRow] {
      private[this] var found: InternalRow = _
      private[this] var started = false
      private[this] var all = false

      override def hasNext: Boolean = {
        if (!started) {
          started = true
          all = set == null
        }
        if (all) {
          rows.hasNext
        } else {
          while (found == null && unmet > 0 && rows.hasNext) {
            val row = rows.next().asInstanceOf[UnsafeRow]
            if (meet(input, row)) found = row
          }
          if (found == null) free()
          found != null
        }
      }

      override def next(): InternalRow = {
        if (!hasNext) throw new NoSuchElementException
        if (all) {
          rows.next()
        } else {
          val row = found
          found = null
          row
        }
      }
    }

  /** Whether the key of the row is wanted and was not met before. */
  private def meet(input: Int, row: UnsafeRow): Boolean = {
    val key = projections(input)(row)
    if (key == lastKey || key.anyNull()) {
      false
    } else {
      lastKey.copyFrom(key)
      val location = set.lookup(key.getBaseObject, key.getBaseOffset, key.getSizeInBytes)
      val first = location.isDefined &&
        Platform.getLong(location.getValueBase, location.getValueOffset) == 0L
      if (first) {
        Platform.putLong(location.getValueBase, location.getValueOffset, 1L)
        unmet -= 1
      }
      first
    }
  }

  private def create(): BytesToBytesMap = {
    val memory = TaskInternals.memory(context)
    try {
      new BytesToBytesMap(
        memory,
        WantedKeys.InitialCapacity,
        math.min(WantedKeys.PageSize, memory.pageSizeBytes))
    } catch {
      case _: SparkOutOfMemoryError => null
    }
  }

  private def free(): Unit = if (set != null) {
    set.free()
    set = null
  }
}

private object WantedKeys {
  private val InitialCapacity = 1024
  private val PageSize = 1L << 20
}
