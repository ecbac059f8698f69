package io.github.skewext.join.range

import scala.collection.mutable.ArrayBuffer

import org.apache.spark.SparkException
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.types.DataType
import org.apache.spark.unsafe.Platform

/** Collects rows and makes the blocks of a [[RangeRelation]] of them, on the driver. */
private[range] final class RangeRelationBuilder(ends: RangeEnds, types: Seq[DataType]) {
  import RangeRelation._

  private[this] val rowBytes =
    if (types.forall(UnsafeRow.isFixedLength(_))) {
      UnsafeRow.calculateBitSetWidthInBytes(types.size) + 8 * types.size
    } else {
      0
    }
  private[this] val rows = ArrayBuffer.empty[Array[Byte]]
  private[this] var block = new Array[Byte](0)
  private[this] var used = 0
  private[this] var places = new Array[Int](1024)
  private[this] var numRows = 0

  private def fail(what: String): Nothing = throw new SparkException(
    s"Cannot broadcast a side of a range join with more than $what. Set " +
      "spark.sql.autoBroadcastJoinThreshold to a lower value, or remove the broadcast hint.")

  def insert(row: UnsafeRow): Unit = {
    val size = row.getSizeInBytes
    val header = if (rowBytes > 0) 0 else 8
    reserve(size + header)
    if (numRows == places.length) {
      if (numRows >= RangeIndex.MaxSize) fail(s"${RangeIndex.MaxSize} rows")
      places = java.util.Arrays.copyOf(places, math.min(2 * numRows, RangeIndex.MaxSize))
    }
    places(numRows) = (rows.size << BlockBits) | (used >>> 3)
    if (header > 0) Platform.putLong(block, Start + used, size.toLong)
    row.writeToMemory(block, Start + used + header)
    used += size + header
    numRows += 1
  }

  /** Makes room for a row. Blocks grow, so a small table takes little memory. */
  private def reserve(size: Int): Unit =
    if (used.toLong + size > block.length) {
      if (used > 0 && used.toLong + size > BlockBytes) {
        rows += java.util.Arrays.copyOf(block, used)
        if (rows.size >= MaxBlocks) fail(s"$MaxBlocks blocks of ${BlockBytes >> 20} MiB")
        block = new Array[Byte](math.max(4096, size))
        used = 0
      } else {
        val wanted = math.max(math.min(2L * block.length, BlockBytes.toLong), 4096L)
        block = java.util.Arrays.copyOf(block, math.max(wanted, used.toLong + size).toInt)
      }
    }

  def result(): Array[InternalRow] = {
    rows += java.util.Arrays.copyOf(block, used)
    val keys = new RangeKeys(ends)
    if (ends.hasBytes) {
      var isFirst = true
      foreachRow { (_, row) =>
        keys.shortenPrefixes(row, isFirst)
        isFirst = false
      }
    }
    val los = new Array[Long](numRows)
    val his = new Array[Long](numRows)
    val hashes = if (ends.keys.isEmpty) Array.emptyLongArray else new Array[Long](numRows)
    // Rows with an interval come first.
    val ordered = new Array[Int](numRows)
    var found = 0
    var without = numRows
    foreachRow { (place, row) =>
      if (keys.read(row)) {
        los(found) = keys.lo
        his(found) = keys.hi
        if (hashes.nonEmpty) hashes(found) = keys.hash
        ordered(found) = place
        found += 1
      } else {
        without -= 1
        ordered(without) = place
      }
    }
    val sorted = RangeIndex.sorted(los, his, found, hashes)
    val groups =
      if (hashes.isEmpty) Array(0L -> 0) else groupsOf(sorted.order.map(hashes(_)))
    val prefixes = Seq(keys.loPrefix, keys.hiPrefix)
    val header =
      Array[Long](numRows, found, rowBytes) ++ prefixes.map(_.length.toLong) :+ groups.size.toLong
    val inOrder = Array.tabulate(numRows) { i =>
      ordered(if (i < found) sorted.order(i) else i)
    }
    (Seq(
      prefixes.foldLeft(bytesOfLongs(header))(_ ++ _),
      bytesOfLongs(sorted.los),
      bytesOfLongs(sorted.ends),
      bytesOfInts(inOrder),
      bytesOfLongs(groups.map(_._1)) ++ bytesOfInts(groups.map(_._2))) ++ rows).map(asRow).toArray
  }

  /** Each hash, and its first position. */
  private def groupsOf(hashes: Array[Long]): Array[(Long, Int)] =
    hashes.indices.collect {
      case i if i == 0 || hashes(i) != hashes(i - 1) => hashes(i) -> i
    }.toArray

  private def foreachRow(f: (Int, UnsafeRow) => Unit): Unit = {
    val row = new UnsafeRow(types.size)
    var i = 0
    while (i < numRows) {
      val place = places(i)
      val bytes = rows(place >>> BlockBits)
      val at = Start + ((place & BlockMask).toLong << 3)
      if (rowBytes > 0) row.pointTo(bytes, at, rowBytes)
      else row.pointTo(bytes, at + 8, Platform.getLong(bytes, at).toInt)
      f(place, row)
      i += 1
    }
  }

  private def bytesOfLongs(array: Array[Long]): Array[Byte] =
    bytesOf(array, Platform.LONG_ARRAY_OFFSET, 8L * array.length)

  private def bytesOfInts(array: Array[Int]): Array[Byte] =
    bytesOf(array, Platform.INT_ARRAY_OFFSET, 4L * array.length)

  private def bytesOf(array: AnyRef, offset: Int, size: Long): Array[Byte] = {
    val bytes = new Array[Byte](Math.toIntExact(size))
    Platform.copyMemory(array, offset, bytes, Start, size)
    bytes
  }

  /** A row without columns whose bytes are the block. The size of a row is a multiple of 8. */
  private def asRow(bytes: Array[Byte]): InternalRow = {
    val padded = java.util.Arrays.copyOf(bytes, (bytes.length + 7) / 8 * 8)
    val row = new UnsafeRow(0)
    row.pointTo(padded, padded.length)
    row
  }
}
