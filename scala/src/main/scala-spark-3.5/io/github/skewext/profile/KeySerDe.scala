package io.github.skewext.profile

import org.apache.datasketches.ArrayOfItemsSerDe
import org.apache.datasketches.memory.Memory

/** The methods for keys that the sketch of this line's library requires. */
private[skewext] abstract class KeySerDe extends ArrayOfItemsSerDe[ReportedKey] {

  protected def read(bytes: Array[Byte], numKeys: Int): Array[ReportedKey with Object]

  override def deserializeFromMemory(
      memory: Memory,
      numKeys: Int): Array[ReportedKey with Object] = {
    val all = new Array[Byte](memory.getCapacity.toInt)
    memory.getByteArray(0, all, 0, all.length)
    read(all, numKeys)
  }
}
