package io.github.skewext.asof.exec

import io.github.skewext.rows.{InputSorters, KeyOrder, SpilledInputs}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.types.DataType
import org.apache.spark.util.collection.unsafe.sort.{RecordComparator, UnsafeSorterIterator}

/** The rows of inputs that do not fit into memory, sorted in an order. */
private[skewext] final class SortedInputs(
    inputTypes: Seq[Seq[DataType]],
    order: KeyOrder,
    pageSize: Long)
    extends SpilledInputs {

  private[this] val current = inputTypes.map(types => new UnsafeRow(types.size)).toArray

  override protected val sorters: InputSorters =
    new InputSorters(current.length, pageSize, input => Some(new InOrder(input)))

  /** The sorted rows of each input, once it is finished. */
  val rows: Array[Iterator[InternalRow]] = Array.fill(current.length)(Iterator.empty)

  override def insert(input: Int, hash: Long, base: AnyRef, offset: Long, size: Int): Unit = {
    current(input).pointTo(base, offset, size)
    sorters.insert(input, order.prefix(input, current(input)), base, offset, size)
  }

  override def finishInput(input: Int): Unit =
    sorters.finish(input).foreach(records => rows(input) = new Rows(input, records))

  private final class Rows(input: Int, records: UnsafeSorterIterator)
      extends Iterator[InternalRow] {
    override def hasNext: Boolean = records.hasNext

    override def next(): InternalRow = {
      records.loadNext()
      current(input).pointTo(records.getBaseObject, records.getBaseOffset, records.getRecordLength)
      current(input)
    }
  }

  private final class InOrder(input: Int) extends RecordComparator {
    private[this] val left, right = new UnsafeRow(inputTypes(input).size)

    override def compare(
        leftBase: AnyRef,
        leftOffset: Long,
        leftLength: Int,
        rightBase: AnyRef,
        rightOffset: Long,
        rightLength: Int): Int = {
      left.pointTo(leftBase, leftOffset, leftLength)
      right.pointTo(rightBase, rightOffset, rightLength)
      order.compare(input, left, input, right)
    }
  }

  override def free(): Unit = sorters.free()

  override def spillSize: Long = sorters.spillSize

  override def peakMemory: Long = sorters.peakMemory
}
