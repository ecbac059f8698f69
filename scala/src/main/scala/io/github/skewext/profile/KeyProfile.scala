package io.github.skewext.profile

import java.nio.ByteBuffer
import java.util.Arrays

import org.apache.datasketches.frequencies.{ErrorType, ItemsSketch}
import org.apache.datasketches.hll.{HllSketch, TgtHllType, Union}
import org.apache.datasketches.memory.Memory

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.skewext.SqlInternals

/**
 * A profile of the keys of some rows, or, after a merge, of all rows. Its size depends on the
 * number of partitions and on the sketches, not on the number of rows.
 *
 * @param rows the number of rows that a shuffle would send to each partition, without rows with a
 *             null in the key.
 * @param nullRows the same for rows with a null in the key.
 * @param bytes the size of the rows of each partition, if it is measured.
 * @param asked the exact number of rows of each key that the pass counts exactly.
 * @param largest the largest row, if sizes are measured.
 * @param untracked the number of rows whose key is too large to store, see
 *                  [[KeyProfile.MaxKeyBytes]].
 */
private[skewext] final class KeyProfile(
    val rows: Array[Long],
    val nullRows: Array[Long],
    val bytes: Array[Long],
    val asked: Array[Long],
    var largest: Option[KeyProfile.LargestRow],
    var untracked: Long,
    val keys: ItemsSketch[ReportedKey],
    var distinct: HllSketch) {

  def numRows: Long = rows.sum + nullRows.sum

  /** Adds the profile of other rows, and returns this profile. */
  def merge(other: KeyProfile): KeyProfile = {
    add(rows, other.rows)
    add(nullRows, other.nullRows)
    add(bytes, other.bytes)
    add(asked, other.asked)
    largest = (largest ++ other.largest).reduceOption((a, b) => if (b.bytes > a.bytes) b else a)
    untracked += other.untracked
    keys.merge(other.keys)
    val union = new Union(KeyProfile.LgDistinct)
    union.update(distinct)
    union.update(other.distinct)
    distinct = union.getResult(TgtHllType.HLL_8)
    this
  }

  private def add(to: Array[Long], from: Array[Long]): Unit = {
    var i = 0
    while (i < to.length) {
      to(i) += from(i)
      i += 1
    }
  }

  /** All keys that may have more than `rows` rows, the most frequent first. */
  def frequent(rows: Long): Seq[ReportedKey] =
    keys.getFrequentItems(rows, ErrorType.NO_FALSE_NEGATIVES).toSeq.map(_.getItem)

  /** A lower and an upper bound of the rows of a key. */
  def bounds(key: ReportedKey): (Long, Long) = {
    // A key has at most as many rows as its partition, whose number of rows is exact.
    val ofPartition = rows(key.partition(rows.length))
    (keys.getLowerBound(key), math.min(keys.getUpperBound(key), ofPartition))
  }

  /** Every serializer supports the bytes as the result of a task. */
  def toBytes: Array[Byte] = SqlInternals.toBytes(
    (
      Array(rows, nullRows, bytes, asked),
      largest,
      untracked,
      keys.toByteArray(ReportedKeySerDe),
      distinct.toCompactByteArray))
}

private[skewext] object KeyProfile {

  /** @param key None for a key with a null, or one that is too large to store. */
  case class LargestRow(bytes: Long, partition: Int, key: Option[ReportedKey])

  /** The largest key that is stored. Without this limit, memory would have no bound. */
  val MaxKeyBytes = 4096

  /** The logarithm of the number of registers: 4,096, for a standard error of 1.6 %. */
  val LgDistinct = 12

  def empty(numPartitions: Int, sketchSize: Int, withBytes: Boolean, asked: Int): KeyProfile =
    new KeyProfile(
      new Array[Long](numPartitions),
      new Array[Long](numPartitions),
      new Array[Long](if (withBytes) numPartitions else 0),
      new Array[Long](asked),
      None,
      0L,
      new ItemsSketch[ReportedKey](sketchSize),
      new HllSketch(LgDistinct, TgtHllType.HLL_8))

  def fromBytes(bytes: Array[Byte]): KeyProfile = {
    type Parts = (Array[Array[Long]], Option[LargestRow], Long, Array[Byte], Array[Byte])
    val (counts, largest, untracked, keys, distinct) = SqlInternals.fromBytes[Parts](bytes)
    new KeyProfile(
      counts(0),
      counts(1),
      counts(2),
      counts(3),
      largest,
      untracked,
      ItemsSketch.getInstance(Memory.wrap(keys), ReportedKeySerDe),
      HllSketch.heapify(distinct))
  }

  /** Merges serialized profiles. An empty array represents a profile without rows. */
  def merge(one: Array[Byte], other: Array[Byte]): Array[Byte] =
    if (one.isEmpty) other
    else if (other.isEmpty) one
    else fromBytes(one).merge(fromBytes(other)).toBytes

  /**
   * The size of a sketch that finds every key with more than this share of the rows. The sketch
   * keeps three quarters as many keys.
   */
  def sketchSize(share: Double): Int = {
    val sizes = Iterator.iterate(MinSketchSize)(_ * 2)
    sizes.dropWhile(ItemsSketch.getEpsilon(_) > share).next()
  }

  private val MinSketchSize = 1024
}

/**
 * A key as the bytes of an `UnsafeRow`, with Spark's hash of it, which determines its partition.
 */
private[skewext] final class ReportedKey(val hash: Int, val bytes: Array[Byte])
    extends Serializable {

  override def hashCode: Int = hash

  override def equals(other: Any): Boolean = other match {
    case key: ReportedKey => key.hash == hash && Arrays.equals(key.bytes, bytes)
    case _ => false
  }

  def partition(numPartitions: Int): Int = Math.floorMod(hash, numPartitions)

  def row(numFields: Int): UnsafeRow = {
    val row = new UnsafeRow(numFields)
    row.pointTo(bytes, bytes.length)
    row
  }
}

/** Serializes keys for the sketch: for each key its hash, its length, and its bytes. */
private[skewext] object ReportedKeySerDe extends KeySerDe {

  override def serializeToByteArray(keys: Array[ReportedKey with Object]): Array[Byte] = {
    val out = ByteBuffer.allocate(keys.map(8 + _.bytes.length).sum)
    keys.foreach(key => out.putInt(key.hash).putInt(key.bytes.length).put(key.bytes))
    out.array()
  }

  override protected def read(all: Array[Byte], numKeys: Int): Array[ReportedKey with Object] = {
    val in = ByteBuffer.wrap(all)
    Array.fill[ReportedKey with Object](numKeys) {
      val hash = in.getInt()
      val bytes = new Array[Byte](in.getInt())
      in.get(bytes)
      new ReportedKey(hash, bytes)
    }
  }
}
