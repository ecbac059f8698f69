package io.github.skewext.profile

import java.nio.ByteBuffer
import java.util.Arrays

import org.apache.spark.sql.catalyst.expressions.UnsafeRow

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
