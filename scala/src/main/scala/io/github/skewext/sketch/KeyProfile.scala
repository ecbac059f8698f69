package io.github.skewext.sketch

import java.io.{ByteArrayInputStream, ByteArrayOutputStream, DataInputStream, DataOutputStream}

import org.apache.datasketches.frequencies.{ErrorType, ItemsSketch}
import org.apache.datasketches.hll.{HllSketch, TgtHllType, Union}
import org.apache.datasketches.memory.Memory

/**
 * What a pass over rows has seen of their keys: of a part of the rows, or, merged, of all. Its size
 * depends on the number of partitions and on the sketches, not on the rows.
 *
 * @param rows how many rows a shuffle would send to each partition, without those with a null key
 * @param nullRows the same for rows with a null in the key
 * @param bytes how large the rows of each partition are, if that was asked for
 * @param asked how many rows the keys have that were asked for
 * @param untracked rows whose key is too large to be kept, see [[KeyProfile.MaxKeyBytes]]
 */
private[skewext] final class KeyProfile(
    val rows: Array[Long],
    val nullRows: Array[Long],
    val bytes: Array[Long],
    val asked: Array[Long],
    var untracked: Long,
    val keys: ItemsSketch[ReportedKey],
    var distinct: HllSketch) {

  def numRows: Long = rows.sum + nullRows.sum

  /** Adds what another part of the rows has; returns this. */
  def merge(other: KeyProfile): KeyProfile = {
    add(rows, other.rows)
    add(nullRows, other.nullRows)
    add(bytes, other.bytes)
    add(asked, other.asked)
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

  /** All keys that may have more than so many rows, those with the most first. */
  def frequent(rows: Long): Seq[ReportedKey] =
    keys.getFrequentItems(rows, ErrorType.NO_FALSE_NEGATIVES).toSeq.map(_.getItem)

  /** The least and the most rows that a key can have. */
  def bounds(key: ReportedKey): (Long, Long) = {
    // A key has no more rows than its partition, and these are known exactly.
    val ofPartition = rows(key.partition(rows.length))
    (keys.getLowerBound(key), math.min(keys.getUpperBound(key), ofPartition))
  }

  def toBytes: Array[Byte] = {
    val result = new ByteArrayOutputStream(1 << 14)
    val out = new DataOutputStream(result)
    Seq(rows, nullRows, bytes, asked).foreach { counts =>
      out.writeInt(counts.length)
      counts.foreach(out.writeLong)
    }
    out.writeLong(untracked)
    Seq(keys.toByteArray(ReportedKeySerDe), distinct.toCompactByteArray).foreach { sketch =>
      out.writeInt(sketch.length)
      out.write(sketch)
    }
    result.toByteArray
  }
}

private[skewext] object KeyProfile {

  /** Larger keys are not kept, or no bound would hold for the memory. */
  val MaxKeyBytes = 4096

  /** 4,096 registers: a standard error of 1.6 %. */
  val LgDistinct = 12

  def empty(numPartitions: Int, sketchSize: Int, withBytes: Boolean, asked: Int): KeyProfile =
    new KeyProfile(
      new Array[Long](numPartitions),
      new Array[Long](numPartitions),
      new Array[Long](if (withBytes) numPartitions else 0),
      new Array[Long](asked),
      0L,
      new ItemsSketch[ReportedKey](sketchSize),
      new HllSketch(LgDistinct, TgtHllType.HLL_8))

  def fromBytes(bytes: Array[Byte]): KeyProfile = {
    val in = new DataInputStream(new ByteArrayInputStream(bytes))
    def counts(): Array[Long] = Array.fill(in.readInt())(in.readLong())
    def sketch(): Array[Byte] = {
      val sketch = new Array[Byte](in.readInt())
      in.readFully(sketch)
      sketch
    }
    new KeyProfile(
      counts(),
      counts(),
      counts(),
      counts(),
      in.readLong(),
      ItemsSketch.getInstance(Memory.wrap(sketch()), ReportedKeySerDe),
      HllSketch.heapify(sketch()))
  }

  /** The same of profiles as bytes; an empty array stands for no rows at all. */
  def merge(one: Array[Byte], other: Array[Byte]): Array[Byte] =
    if (one.isEmpty) other
    else if (other.isEmpty) one
    else fromBytes(one).merge(fromBytes(other)).toBytes

  /**
   * The size of the sketch that finds every key with more than this share of the rows. It keeps three
   * quarters as many keys.
   */
  def sketchSize(share: Double): Int = {
    val sizes = Iterator.iterate(MinSketchSize)(_ * 2)
    sizes.dropWhile(ItemsSketch.getEpsilon(_) > share).next()
  }

  private val MinSketchSize = 1024
}
