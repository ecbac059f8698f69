package io.github.skewext.join.range

import io.github.skewext.rows.{KillCheck, UnsafeInputs}

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.skewext.TaskInternals

/**
 * Joins the rows of the left side with those of the right side, in parts of the right side for which
 * there is memory. For each part, the rows of the left side are read again.
 *
 * @param maxRows of a part.
 */
private[range] final class RangeParts(
    task: RangeJoinTask,
    endsOfRight: RangeEnds,
    maxRows: Long,
    left: () => Iterator[InternalRow],
    right: Iterator[InternalRow])
    extends Iterator[InternalRow] {
  import RangeParts._

  private[this] val context = TaskContext.get()
  private[this] val memory = new TaskInternals.HeapMemory(context)
  private[this] val killed = new KillCheck(context)
  private[this] val asUnsafe = new UnsafeInputs(task.output.inputTypes)
  private[this] var pairs: Iterator[InternalRow] = Iterator.empty
  private[this] val end = TaskInternals.atEnd(context)(memory.release())

  override def hasNext: Boolean = {
    while (!pairs.hasNext && right.hasNext) pairs = task.pairs(left(), nextPart(), context)
    val has = pairs.hasNext
    if (!has) end.run()
    has
  }

  override def next(): InternalRow = pairs.next()

  private def nextPart(): Array[InternalRow] = {
    memory.release()
    val builder = new RangeRelationBuilder(endsOfRight, task.output.inputTypes(1))
    var reserved = 0L
    var used = 0L
    var rows = 0L
    // A part has at least one row, whatever memory there is.
    do {
      killed.check()
      val row = asUnsafe(1, right.next())
      builder.insert(row)
      rows += 1
      used += Copies * row.getSizeInBytes + BytesOfRow
      if (used > reserved && memory.reserve(used + Step)) reserved = used + Step
    } while (right.hasNext && rows < maxRows && used <= reserved && used < MaxPart)
    builder.result()
  }
}

private object RangeParts {

  /** Memory is reserved in steps. */
  private final val Step = 1L << 20

  /** While blocks grow, there are two copies. The sort takes 32 bytes for each row. */
  private final val Copies = 2
  private final val BytesOfRow = 80
  private final val MaxPart = 1L << 30
}
