package io.github.skewext.bucket

import org.apache.spark.TaskContext
import org.apache.spark.util.AccumulatorV2

/**
 * How many rows each task of a stage has seen, by the number of its partition. In the stage that
 * gives a job's result, Spark counts each task once, however often it has run.
 */
private[skewext] class RowsByTask extends AccumulatorV2[Int, Map[Int, Long]] {

  private var rows = Map.empty[Int, Long]

  // A task has one partition, so that the map is looked into once.
  private var partition = -1
  private var inPartition = 0L

  /** A condition that all rows fulfil. */
  def addRow(): Boolean = {
    add(TaskContext.getPartitionId())
    true
  }

  override def add(ofPartition: Int): Unit = {
    if (ofPartition != partition) {
      rows = value
      partition = ofPartition
      inPartition = rows.getOrElse(ofPartition, 0L)
    }
    inPartition += 1
  }

  override def value: Map[Int, Long] =
    if (partition < 0) rows else rows.updated(partition, inPartition)

  override def isZero: Boolean = value.isEmpty

  override def copy(): RowsByTask = {
    val copied = new RowsByTask
    copied.rows = value
    copied
  }

  override def reset(): Unit = {
    rows = Map.empty
    partition = -1
    inPartition = 0L
  }

  override def merge(other: AccumulatorV2[Int, Map[Int, Long]]): Unit = {
    rows = other.value.foldLeft(value) { case (all, (p, n)) =>
      all.updated(p, all.getOrElse(p, 0L) + n)
    }
    partition = -1
  }
}
