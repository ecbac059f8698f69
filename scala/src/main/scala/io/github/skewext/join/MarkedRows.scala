package io.github.skewext.technique

import java.io.{ByteArrayInputStream, ByteArrayOutputStream, DataInputStream, DataOutputStream}
import java.util.BitSet

import scala.collection.mutable.ArrayBuffer

/**
 * A set of rows, with one bit per row. A row is identified by its `monotonically_increasing_id`:
 * the partition in the upper bits, and the position of the row in the partition in the lower bits.
 */
final class MarkedRows {
  import MarkedRows._

  private[this] val rowsOf = ArrayBuffer.empty[BitSet]

  /** Returns false if the row was in the set already. */
  def add(id: Long): Boolean = {
    val rows = ofPartition((id >>> RowBits).toInt)
    val row = rowIn(id)
    val isNew = !rows.get(row)
    if (isNew) rows.set(row)
    isNew
  }

  def contains(id: Long): Boolean = {
    val partition = (id >>> RowBits).toInt
    partition < rowsOf.size && rowsOf(partition).get(rowIn(id))
  }

  /** A broadcast has far fewer rows than 2 to the 31. */
  private def rowIn(id: Long): Int = Math.toIntExact(id & ((1L << RowBits) - 1))

  private def ofPartition(partition: Int): BitSet = {
    while (rowsOf.size <= partition) rowsOf += new BitSet
    rowsOf(partition)
  }

  def toBytes: Array[Byte] = {
    val bytes = new ByteArrayOutputStream
    val out = new DataOutputStream(bytes)
    out.writeInt(rowsOf.size)
    rowsOf.foreach { rows =>
      val ofRows = rows.toByteArray
      out.writeInt(ofRows.length)
      out.write(ofRows)
    }
    bytes.toByteArray
  }

  private def addAll(bytes: Array[Byte]): this.type = {
    val in = new DataInputStream(new ByteArrayInputStream(bytes))
    (0 until in.readInt()).foreach { partition =>
      val ofRows = new Array[Byte](in.readInt())
      in.readFully(ofRows)
      ofPartition(partition).or(BitSet.valueOf(ofRows))
    }
    this
  }
}

object MarkedRows {

  private val RowBits = 33

  def fromBytes(bytes: Array[Byte]): MarkedRows =
    if (bytes.isEmpty) new MarkedRows else new MarkedRows().addAll(bytes)

  /**
   * The union of two sets as bytes, which every serializer supports. No bytes are the empty set.
   */
  def merge(a: Array[Byte], b: Array[Byte]): Array[Byte] =
    if (a.isEmpty) b else if (b.isEmpty) a else fromBytes(a).addAll(b).toBytes
}
