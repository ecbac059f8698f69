package io.github.skewext.skew.run

import java.io.{ByteArrayInputStream, ByteArrayOutputStream, DataInputStream, DataOutputStream}

import scala.collection.mutable

import io.github.skewext.skew.plan.SketchLayout
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

  /**
   * Also drops the counters of the other accumulator. Spark keeps that one in the event of the task's
   * end, until each listener has processed the event.
   */
  override def merge(other: AccumulatorV2[KeyCounts.OfTask, Array[Int]]): Unit = other match {
    case counts: KeyCounts =>
      counts.ofTask.foreach(addUp)
      counts.ofTask = None
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
   * @param bytes the counters in Hadoop's variable length: one byte up to 127. A run of zeros is its
   *              length, negated. Zeros at the end are left out.
   */
  final class OfTask(val mapTask: Int, bytes: Array[Byte]) extends Serializable {

    def size: Int = bytes.length

    def addTo(sums: Array[Int]): Unit = {
      val in = new DataInputStream(new ByteArrayInputStream(bytes))
      var cell = 0
      while (in.available() > 0) {
        val next = WritableUtils.readVInt(in)
        if (next < 0) {
          cell -= next
        } else {
          sums(cell) += next
          cell += 1
        }
      }
    }
  }

  object OfTask {
    def apply(mapTask: Int, counts: Array[Int]): OfTask = {
      val bytes = new ByteArrayOutputStream(1024)
      val out = new DataOutputStream(bytes)
      var zeros = 0
      var cell = 0
      while (cell < counts.length) {
        if (counts(cell) == 0) {
          zeros += 1
        } else {
          if (zeros > 0) WritableUtils.writeVInt(out, -zeros)
          WritableUtils.writeVInt(out, counts(cell))
          zeros = 0
        }
        cell += 1
      }
      new OfTask(mapTask, bytes.toByteArray)
    }
  }
}
