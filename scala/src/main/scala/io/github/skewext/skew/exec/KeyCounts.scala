package io.github.skewext.skew.exec

import java.io.{ByteArrayInputStream, ByteArrayOutputStream, DataInputStream, DataOutputStream}

import scala.collection.mutable

import io.github.skewext.skew.SketchLayout
import org.apache.hadoop.io.WritableUtils

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
   * @param bytes for each counter that is not 0, its distance to the previous one, and its value, in
   *              Hadoop's variable length: one byte for most of them.
   */
  final class OfTask(val mapTask: Int, bytes: Array[Byte]) extends Serializable {

    def size: Int = bytes.length

    def addTo(sums: Array[Int]): Unit = {
      val in = new DataInputStream(new ByteArrayInputStream(bytes))
      var cell = -1
      while (in.available() > 0) {
        cell += WritableUtils.readVInt(in)
        sums(cell) += WritableUtils.readVInt(in)
      }
    }
  }

  object OfTask {
    def apply(mapTask: Int, counts: Array[Int]): OfTask = {
      val bytes = new ByteArrayOutputStream(1024)
      val out = new DataOutputStream(bytes)
      var last = -1
      var cell = 0
      while (cell < counts.length) {
        if (counts(cell) != 0) {
          WritableUtils.writeVInt(out, cell - last)
          WritableUtils.writeVInt(out, counts(cell))
          last = cell
        }
        cell += 1
      }
      new OfTask(mapTask, bytes.toByteArray)
    }
  }
}
