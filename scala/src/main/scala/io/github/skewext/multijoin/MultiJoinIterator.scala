package io.github.skewext.multijoin

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{UnsafeArrayData, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.execution.RowIterator
import org.apache.spark.sql.skewext.TaskInternals

import io.github.skewext.multijoin.InputRole.{Excluded, Required}

/**
 * The rows of one partition of a [[MultiFullJoinExec]].
 *
 * First the inputs are drained one after the other. A row whose key has a null matches nothing, so
 * it comes out (or not) there and then and takes no memory, however many of them there are. Then the
 * other rows come out key by key.
 */
private[multijoin] final class MultiJoinIterator(task: MultiJoinTask, inputs: Array[Iterator[InternalRow]])
  extends RowIterator {

  private[this] val n = inputs.length
  private[this] val keys = task.keys
  private[this] val roles = task.roles.toArray
  private[this] val emitsNullKeys = Array.tabulate(n)(InputRole.emitsNullKeys(task.roles, _))
  private[this] val required = roles.indices.filter(roles(_) == Required).toArray
  private[this] val excluded = roles.indices.filter(roles(_) == Excluded).toArray
  private[this] val toUnsafe = task.inputTypes.map(types => UnsafeProjection.create(types.toArray))

  private[this] val combination = new InputRows(n)
  private[this] val projection = UnsafeProjection.create(task.output)
  private[this] val indicators = if (task.withIndicator) new Indicators(n) else null

  private[this] val gathered =
    new SpillableGroups(keys, task.inputTypes.map(_.size).toArray, task.grouping)
  private[this] var groups: KeyGroups = _
  private[this] var draining = 0
  private[this] var inputRows = 0L
  private[this] var numGroups = 0L
  private[this] var numNullKeys = 0L
  private[this] var outputRows = 0L
  private[this] var current: UnsafeRow = _

  TaskContext.get().addTaskCompletionListener[Unit](reportMetrics(_))

  override def getRow: InternalRow = current

  override def advanceNext(): Boolean = {
    if (groups == null) {
      if (drain()) return true
      groups = gathered.result()
    } else if (groups.nextCombination()) {
      showGroup()
      return true
    }
    while (groups.nextGroup()) {
      numGroups += 1
      if (comesOut()) {
        combination.first = firstPresent()
        if (indicators != null) combination.indicator = indicators.of(groups.rows)
        showGroup()
        return true
      }
    }
    false
  }

  /** Reads on until a row with a null key comes out (true), or all inputs are at their ends. */
  private def drain(): Boolean = {
    while (draining < n) {
      val input = inputs(draining)
      while (input.hasNext) {
        val row = input.next() match {
          case unsafe: UnsafeRow => unsafe
          case other => toUnsafe(draining)(other)
        }
        inputRows += 1
        if (!keys.hasNull(draining, row)) {
          gathered.insert(draining, keys.hash(draining, row), row)
        } else if (emitsNullKeys(draining)) {
          showAlone(row)
          return true
        }
      }
      gathered.finishInput(draining)
      task.metrics.inputRows(draining).add(inputRows)
      inputRows = 0
      draining += 1
    }
    false
  }

  private def comesOut(): Boolean = {
    val rows = groups.rows
    var i = 0
    while (i < required.length) {
      if (rows(required(i)) == null) return false
      i += 1
    }
    i = 0
    while (i < excluded.length) {
      if (rows(excluded(i)) != null) return false
      i += 1
    }
    true
  }

  private def firstPresent(): Int = {
    val rows = groups.rows
    var i = 0
    while (rows(i) == null) i += 1
    i
  }

  private def showGroup(): Unit = {
    System.arraycopy(groups.rows, 0, combination.rows, 0, n)
    current = projection(combination)
    outputRows += 1
  }

  private def showAlone(row: UnsafeRow): Unit = {
    java.util.Arrays.fill(combination.rows.asInstanceOf[Array[AnyRef]], null)
    combination.rows(draining) = row
    combination.first = draining
    if (indicators != null) combination.indicator = indicators.of(combination.rows)
    current = projection(combination)
    numNullKeys += 1
    outputRows += 1
  }

  private def reportMetrics(context: TaskContext): Unit = {
    val metrics = task.metrics
    metrics.outputRows.add(outputRows)
    metrics.groups.add(numGroups)
    metrics.nullKeys.add(numNullKeys)
    metrics.spillSize.add(gathered.spillSize)
    metrics.peakMemory.add(gathered.peakMemory)
    TaskInternals.reportPeakMemory(context, gathered.peakMemory)
  }
}

/** Positions of the inputs with the key, as arrays that are made once for every pattern met. */
private[multijoin] final class Indicators(n: Int) {
  private[this] val known = new java.util.HashMap[java.util.BitSet, UnsafeArrayData]()
  private[this] val present = new java.util.BitSet(n)

  def of(rows: Array[UnsafeRow]): UnsafeArrayData = {
    present.clear()
    var i = 0
    while (i < n) {
      if (rows(i) != null) present.set(i)
      i += 1
    }
    var positions = known.get(present)
    if (positions == null) {
      positions = UnsafeArrayData.fromPrimitiveArray(present.stream().toArray)
      if (known.size >= Indicators.MaxKnown) known.clear()
      known.put(present.clone().asInstanceOf[java.util.BitSet], positions)
    }
    positions
  }
}

private object Indicators {
  private val MaxKnown = 4096
}
