package io.github.skewext.skew.exec

import java.io.ByteArrayOutputStream

import scala.collection.mutable

import io.github.skewext.skew.SketchLayout

import org.apache.spark.util.AccumulatorV2

/**
 * An accumulator that adds up the counters of all map tasks on the driver. Each map task counts
 * once: if it ran twice, because it was slow or its output was lost, both attempts read the same
 * rows.
 */
final class KeyCounts(val layout: SketchLayout)
    extends AccumulatorV2[KeyCounts.OfTask, Array[Int]] {

  /**
   * In a task, the counters to send. None until the task ends, because heartbeats also send the
   * accumulator.
   */
  private var ofTask: Option[KeyCounts.OfTask] = None

  /** On the driver, the sums of the received counters, and the map tasks that sent them. */
  @transient private var sums: Array[Int] = _
  @transient private var counted: mutable.BitSet = _

  override def isZero: Boolean = ofTask.isEmpty && sums == null

  override def add(counts: KeyCounts.OfTask): Unit = ofTask = Some(counts)

  override def merge(other: AccumulatorV2[KeyCounts.OfTask, Array[Int]]): Unit = other match {
    case counts: KeyCounts => counts.ofTask.foreach(addUp)
    case _ => throw new IllegalArgumentException(s"Not counts of keys: ${other.getClass.getName}")
  }

  private def addUp(counts: KeyCounts.OfTask): Unit = synchronized {
    if (sums == null) {
      sums = new Array[Int](layout.size)
      counted = mutable.BitSet()
    }
    if (counted.add(counts.mapTask)) counts.addTo(sums)
  }

  /** The sums of all tasks so far. Callers must not change the array. */
  override def value: Array[Int] = synchronized {
    if (sums == null) Array.empty else sums
  }

  override def copyAndReset(): KeyCounts = new KeyCounts(layout)

  override def copy(): KeyCounts = synchronized {
    val copied = new KeyCounts(layout)
    copied.ofTask = ofTask
    if (sums != null) {
      copied.sums = sums.clone()
      copied.counted = counted.clone()
    }
    copied
  }

  override def reset(): Unit = synchronized {
    ofTask = None
    sums = null
    counted = null
  }
}

object KeyCounts {

  /**
   * The counters of one map task.
   *
   * @param bytes for each counter that is not 0, its distance to the previous one, and its
   *              value. Numbers have seven bits per byte, the lowest bits first.
   */
  final class OfTask(val mapTask: Int, bytes: Array[Byte]) extends Serializable {

    def size: Int = bytes.length

    def addTo(sums: Array[Int]): Unit = {
      var position = 0
      def next(): Int = {
        var number = 0
        var shift = 0
        while (bytes(position) < 0) {
          number |= (bytes(position) & 0x7f) << shift
          shift += 7
          position += 1
        }
        position += 1
        number | bytes(position - 1) << shift
      }
      var cell = -1
      while (position < bytes.length) {
        cell += next()
        sums(cell) += next()
      }
    }
  }

  object OfTask {
    def apply(mapTask: Int, counts: Array[Int]): OfTask = {
      val out = new ByteArrayOutputStream(1024)
      def write(number: Int): Unit = {
        var left = number
        while (left > 0x7f) {
          out.write(left & 0x7f | 0x80)
          left >>>= 7
        }
        out.write(left)
      }
      var last = -1
      var cell = 0
      while (cell < counts.length) {
        if (counts(cell) != 0) {
          write(cell - last)
          write(counts(cell))
          last = cell
        }
        cell += 1
      }
      new OfTask(mapTask, out.toByteArray)
    }
  }
}
