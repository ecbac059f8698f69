package io.github.skewext.multijoin

import org.apache.spark.sql.catalyst.expressions.{BaseOrdering, UnsafeProjection, UnsafeRow}

/**
 * Groups rows of inputs that come sorted by their keys, as bucketed and sorted tables do: a plain
 * merge that keeps no rows, and gives the groups in the order of their keys. A run is the rows of
 * one key.
 *
 * Rows with a null in the key stand at their places in the order, one group each.
 */
private[multijoin] final class OrderedGroups(
    keys: JoinKeys,
    numFields: Array[Int],
    single: Array[Boolean],
    groupRowsInMemory: Int,
    inputs: Array[Iterator[UnsafeRow]],
    keyProjections: Array[UnsafeProjection],
    numKeys: Int,
    ordering: BaseOrdering)
    extends MergedGroups(keys, numFields, single, groupRowsInMemory) {

  private[this] val runKey = UnsafeRow.createFromByteArray(0, numKeys)
  private[this] var keyOfRunHasNull = false

  inputs.indices.foreach { i =>
    mainSources(i) = new RunSource.Ordered(inputs(i), numFields(i), keyProjections(i))
  }

  override def peakMemory: Long = 0L

  override protected[this] def openNextRun(): Boolean = {
    var lowest: RunSource = null
    var i = 0
    while (i < n) {
      val source = mainSources(i)
      if (source.live && (lowest == null || compare(source, lowest) < 0)) lowest = source
      i += 1
    }
    if (lowest != null) {
      runKey.copyFrom(keyOf(lowest))
      keyOfRunHasNull = runKey.anyNull()
    }
    lowest != null
  }

  override protected[this] def inRun(source: RunSource): Boolean =
    source.live && (source.oneRun || ordering.compare(keyOf(source), runKey) == 0)

  override protected[this] def runHasNull: Boolean = keyOfRunHasNull

  private def compare(a: RunSource, b: RunSource): Int = ordering.compare(keyOf(a), keyOf(b))

  private def keyOf(source: RunSource): UnsafeRow = source.asInstanceOf[RunSource.Ordered].key
}
