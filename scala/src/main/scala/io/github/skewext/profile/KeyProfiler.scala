package io.github.skewext.profile

import java.util.HashMap

import io.github.skewext.rows.UnsafeInputs

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BoundReference, Expression, Murmur3Hash, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.types.DataType
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.array.ByteArrayMethods

/**
 * The parameters of a profile, which tasks receive.
 *
 * @param keys the key columns, bound to the rows.
 * @param rowTypes the types of the columns, if the size of rows is measured.
 * @param asked keys whose rows are counted exactly.
 */
private[skewext] final case class KeyProfiling(
    keys: Seq[Expression],
    rowTypes: Option[Seq[DataType]],
    numPartitions: Int,
    sketchSize: Int,
    asked: Array[ReportedKey]) {

  def profile(rows: Iterator[InternalRow]): KeyProfile = {
    val profiler = new KeyProfiler(this)
    rows.foreach(profiler.add)
    profiler.result()
  }
}

/**
 * Computes the profile of one task's rows. A small table of recent keys is in front of the
 * sketches, so that a row with a hot key costs little more than one comparison.
 */
private[skewext] final class KeyProfiler(profiling: KeyProfiling) {
  import KeyProfiler._

  private[this] val numPartitions = profiling.numPartitions
  private[this] val profile = KeyProfile.empty(
    numPartitions,
    profiling.sketchSize,
    profiling.rowTypes.isDefined,
    profiling.asked.length)
  private[this] val rows = profile.rows
  private[this] val nullRows = profile.nullRows
  private[this] val bytes = profile.bytes
  private[this] var largestBytes = 0L

  private[this] val keyOf = UnsafeProjection.create(profiling.keys)
  private[this] val hashOf =
    UnsafeProjection.create(Seq(new Murmur3Hash(profiling.keys.zipWithIndex.map { case (key, i) =>
      BoundReference(i, key.dataType, key.nullable)
    })))
  private[this] lazy val asUnsafe = new UnsafeInputs(profiling.rowTypes.toSeq)

  private[this] val asked = new HashMap[ReportedKey, Integer]
  profiling.asked.zipWithIndex.foreach { case (key, i) => asked.put(key, i) }

  private[this] val recent = new Array[ReportedKey](RecentKeys)
  private[this] val recentRows = new Array[Long](RecentKeys)

  def add(row: InternalRow): Unit = {
    val key = keyOf(row)
    val hash = hashOf(key).getInt(0)
    val partition = Math.floorMod(hash, numPartitions)
    // The size of a row in a shuffle before compression, including its length.
    if (bytes.length > 0) {
      val size = 4L + asUnsafe(0, row).getSizeInBytes
      bytes(partition) += size
      if (size > largestBytes) {
        largestBytes = size
        val stored = !key.anyNull() && key.getSizeInBytes <= KeyProfile.MaxKeyBytes
        profile.largest = Some(
          KeyProfile.LargestRow(
            size,
            partition,
            if (stored) Some(new ReportedKey(hash, bytesOf(key))) else None))
      }
    }
    if (key.anyNull()) {
      nullRows(partition) += 1
    } else {
      rows(partition) += 1
      // The low bits equal the partition if the number of partitions is a power of two, so mix the
      // hash.
      val slot = (hash * Spread) >>> (32 - LgRecentKeys)
      val known = recent(slot)
      if (known != null && known.hash == hash && same(known.bytes, key)) {
        recentRows(slot) += 1
      } else {
        flush(slot)
        recent(slot) = new ReportedKey(hash, bytesOf(key))
        recentRows(slot) = 1
      }
    }
  }

  def result(): KeyProfile = {
    recent.indices.foreach(flush)
    profile
  }

  private def same(known: Array[Byte], key: UnsafeRow): Boolean =
    known.length == key.getSizeInBytes && ByteArrayMethods.arrayEquals(
      known,
      Platform.BYTE_ARRAY_OFFSET,
      key.getBaseObject,
      key.getBaseOffset,
      known.length)

  /** A copy of the key. `UnsafeRow.getBytes` may return the buffer that the next key overwrites. */
  private def bytesOf(key: UnsafeRow): Array[Byte] = {
    val copy = new Array[Byte](key.getSizeInBytes)
    key.writeToMemory(copy, Platform.BYTE_ARRAY_OFFSET)
    copy
  }

  private def flush(slot: Int): Unit = {
    val key = recent(slot)
    if (key != null) {
      recent(slot) = null
      profile.distinct.update(key.bytes)
      if (key.bytes.length <= KeyProfile.MaxKeyBytes) {
        profile.keys.update(key, recentRows(slot))
        if (!asked.isEmpty) {
          val position = asked.get(key)
          if (position != null) profile.asked(position) += recentRows(slot)
        }
      } else {
        profile.untracked += recentRows(slot)
      }
    }
  }
}

private[skewext] object KeyProfiler {
  private val LgRecentKeys = 10
  private val RecentKeys = 1 << LgRecentKeys
  private val Spread = 0x9e3779b9
}
