package io.github.skewext.profile

import org.apache.datasketches.common.ArrayOfItemsSerDe
import org.apache.datasketches.memory.Memory

/** The methods for keys that the sketch of these lines' library requires. */
private[skewext] abstract class KeySerDe extends ArrayOfItemsSerDe[ReportedKey] {

  protected def read(bytes: Array[Byte], numKeys: Int): Array[ReportedKey with Object]

  override def serializeToByteArray(key: ReportedKey): Array[Byte] =
    serializeToByteArray(Array[ReportedKey with Object](key))

  override def deserializeFromMemory(
      memory: Memory,
      offset: Long,
      numKeys: Int): Array[ReportedKey with Object] = {
    val rest = new Array[Byte]((memory.getCapacity - offset).toInt)
    memory.getByteArray(offset, rest, 0, rest.length)
    read(rest, numKeys)
  }

  override def sizeOf(key: ReportedKey): Int = serializeToByteArray(key).length

  override def sizeOf(memory: Memory, offset: Long, numKeys: Int): Int =
    deserializeFromMemory(memory, offset, numKeys).map(key => sizeOf(key)).sum

  override def toString(key: ReportedKey): String = key.toString

  override def getClassOfT: Class[ReportedKey] = classOf[ReportedKey]
}
