package io.github.skewext.bucket

import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.atomic.AtomicLong

import scala.collection.JavaConverters._

import org.apache.spark.TaskContext
import org.apache.spark.util.AccumulatorV2

/**
 * How many rows each task of a stage has seen, by the number of its partition and by bucket. In the
 * stage that gives a job's result, Spark counts each task once, however often it has run.
 */
private[skewext] class RowsByTask extends AccumulatorV2[Int, Map[(Int, Int), Long]] {

  // Executors report it while their tasks add to it.
  private val rows = new ConcurrentHashMap[(Int, Int), AtomicLong]

  // That of the row before: most tasks have one bucket.
  @transient private var last: AtomicLong = _
  @transient private var lastBucket = -1

  /** A condition that all rows fulfil. */
  def addRow(bucket: Int): Boolean = {
    add(bucket)
    true
  }

  override def add(bucket: Int): Unit = {
    if (last == null || bucket != lastBucket) {
      last = counter((TaskContext.getPartitionId(), bucket))
      lastBucket = bucket
    }
    last.incrementAndGet()
  }

  private def counter(of: (Int, Int)): AtomicLong = rows.computeIfAbsent(of, _ => new AtomicLong)

  override def value: Map[(Int, Int), Long] =
    rows.asScala.iterator.map { case (of, n) => of -> n.get }.toMap

  override def isZero: Boolean = rows.isEmpty

  override def copy(): RowsByTask = {
    val copied = new RowsByTask
    copied.merge(this)
    copied
  }

  override def reset(): Unit = {
    rows.clear()
    last = null
  }

  override def merge(other: AccumulatorV2[Int, Map[(Int, Int), Long]]): Unit =
    other.value.foreach { case (of, n) => counter(of).addAndGet(n) }
}
