package io.github.skewext.join.range

import io.github.skewext.facts.KeepsStableRows

import org.apache.spark.broadcast.Broadcast
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, UnsafeRow}
import org.apache.spark.sql.catalyst.plans.physical.{BroadcastPartitioning, IdentityBroadcastMode, Partitioning}
import org.apache.spark.sql.execution.{SparkPlan, UnaryExecNode}
import org.apache.spark.unsafe.Platform

/**
 * The rows of a broadcast side and the index of their intervals. Spark broadcasts nothing but its
 * hash tables and arrays of rows. So this is an array of a few rows, whose bytes are blocks:
 * {{{
 * header: numbers of rows, of intervals, bytes of a row or 0, sizes of prefixes, groups | prefixes
 * los:    the lower ends, see RangeIndex
 * ends:   the upper ends and their tree
 * places: the place of each row (4 bytes), those with an interval first and in the index's order
 * groups: the hashes of equal keys in order | the first interval of each (4 bytes)
 * rows:   up to 512 blocks of rows; a row has its size before it unless all have the same
 * }}}
 * Besides the rows, it takes 21 bytes for each of them. A row has at least 16 bytes. Without equal
 * keys, all intervals are one group.
 */
private[skewext] final class RangeRelation(blocks: Array[InternalRow]) {
  import RangeRelation._

  private[this] val bases = blocks.map(block => bytesOf(block): AnyRef)

  private def header(i: Int): Long = Platform.getLong(bases(0), Start + 8L * i)

  /** The number of all rows. */
  val numRows: Int = header(0).toInt

  /** The number of rows that have an interval. Others match nothing. */
  val numIntervals: Int = header(1).toInt

  private[this] val rowBytes = header(2).toInt

  val loPrefix: Array[Byte] = prefix(HeaderBytes, header(3).toInt)

  val hiPrefix: Array[Byte] = prefix(HeaderBytes + header(3), header(4).toInt)

  private[this] val hashes = new Array[Long](header(5).toInt)
  private[this] val firsts = new Array[Int](hashes.length)
  Platform.copyMemory(bases(4), Start, hashes, Platform.LONG_ARRAY_OFFSET, 8L * hashes.length)
  Platform.copyMemory(
    bases(4),
    Start + 8L * hashes.length,
    firsts,
    Platform.INT_ARRAY_OFFSET,
    4L * firsts.length)

  val index = new RangeIndex(numIntervals, bases(1), Start, bases(2), Start)

  private def prefix(at: Long, length: Int): Array[Byte] = {
    val bytes = new Array[Byte](length)
    Platform.copyMemory(bases(0), Start + at, bytes, Start, length)
    bytes
  }

  /** The group of intervals whose equal keys have this hash; negative if there is none. */
  def groupOf(hash: Long): Int = java.util.Arrays.binarySearch(hashes, hash)

  def firstOf(group: Int): Int = firsts(group)

  def endOf(group: Int): Int = if (group + 1 < firsts.length) firsts(group + 1) else numIntervals

  /** Points `row` to the row with this number. */
  def pointTo(row: UnsafeRow, number: Int): Unit = {
    val place = Platform.getInt(bases(3), Start + 4L * number)
    val block = bases(FirstRows + (place >>> BlockBits))
    val at = Start + ((place & BlockMask).toLong << 3)
    if (rowBytes > 0) row.pointTo(block, at, rowBytes)
    else row.pointTo(block, at + 8, Platform.getLong(block, at).toInt)
  }
}

private[skewext] object RangeRelation {

  private[range] final val Start = Platform.BYTE_ARRAY_OFFSET.toLong

  /** The blocks before those of rows. */
  private[range] final val FirstRows = 5

  private final val HeaderBytes = 6L * 8

  /** A place is the number of a block, and a multiple of 8 bytes in it. */
  private[range] final val BlockBits = 23
  private[range] final val BlockMask = (1 << BlockBits) - 1
  private[range] final val BlockBytes = 8 << BlockBits
  private[range] final val MaxBlocks = 1 << (32 - BlockBits)

  private def bytesOf(block: InternalRow): Array[Byte] =
    block.asInstanceOf[UnsafeRow].getBaseObject.asInstanceOf[Array[Byte]]
}

/**
 * The rows of a broadcast [[RangeRelation]], as Spark's nested loop join reads them. The driver reads
 * them and broadcasts them once more, so they must be few.
 */
case class BroadcastRowsExec(child: SparkPlan) extends UnaryExecNode with KeepsStableRows {

  override def passesColumns: Boolean = true

  override def output: Seq[Attribute] = child.output

  override def outputPartitioning: Partitioning = BroadcastPartitioning(IdentityBroadcastMode)

  @transient private lazy val rows: Broadcast[Array[InternalRow]] = {
    val relation = new RangeRelation(child.executeBroadcast[Array[InternalRow]]().value)
    val row = new UnsafeRow(output.size)
    sparkContext.broadcast(Array.tabulate[InternalRow](relation.numRows) { i =>
      relation.pointTo(row, i)
      row.copy()
    })
  }

  override def doExecuteBroadcast[T](): Broadcast[T] = rows.asInstanceOf[Broadcast[T]]

  override protected def doExecute(): RDD[InternalRow] =
    throw new UnsupportedOperationException(nodeName)

  override protected def withNewChildInternal(newChild: SparkPlan): BroadcastRowsExec =
    copy(child = newChild)
}
