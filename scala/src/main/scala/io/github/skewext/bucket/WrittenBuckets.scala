package io.github.skewext.bucket

import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.atomic.AtomicLong

import scala.collection.JavaConverters._

import org.json4s.jackson.JsonMethods.{compact, render}
import org.json4s.{JArray, JBool, JDouble, JInt, JObject, JString}

import org.apache.spark.TaskContext
import org.apache.spark.sql.execution.datasources.BucketingUtils
import org.apache.spark.util.AccumulatorV2

/**
 * The files, rows and bytes that a write has added to each bucket of a table.
 *
 * @param factor a bucket with more rows than so many times the median is skewed
 * @param isKnown whether files and bytes are known; rows are always those that tasks have counted
 */
case class WrittenBuckets(
    table: String,
    buckets: Seq[WrittenBuckets.Bucket],
    factor: Double,
    isKnown: Boolean = true) {

  /** Buckets with far more rows than others, the largest first. */
  def skewed: Seq[WrittenBuckets.Bucket] = {
    val rows = buckets.map(_.rows).sorted
    val median = if (rows.isEmpty) 0L else rows(rows.size / 2)
    buckets.filter(_.rows > factor * math.max(1L, median)).sortBy(-_.rows)
  }

  /** The same for Python. */
  def json: String = compact(
    render(
      JObject(
        "table" -> JString(table),
        "known" -> JBool(isKnown),
        "factor" -> JDouble(factor),
        "skewed" -> JArray(skewed.map(b => JInt(b.number)).toList),
        "buckets" -> JArray(buckets.map { b =>
          JObject(
            "number" -> JInt(b.number),
            "files" -> JInt(b.files),
            "rows" -> JInt(b.rows),
            "bytes" -> JInt(b.bytes))
        }.toList))))
}

object WrittenBuckets {

  case class Bucket(number: Int, files: Int, rows: Long, bytes: Long)

  /**
   * @param rows as the tasks of the write have counted them, by bucket
   * @param files names and lengths of what was written; in several partitions, names come again
   */
  def of(
      table: String,
      numBuckets: Int,
      rows: Map[Int, Long],
      files: Seq[(String, Long)],
      factor: Double): WrittenBuckets = {
    val byBucket = files.groupBy { case (name, _) => BucketingUtils.getBucketId(name) }
    val buckets = (0 until numBuckets).map { i =>
      val own = byBucket.getOrElse(Some(i), Nil)
      Bucket(i, own.size, rows.getOrElse(i, 0L), own.map(_._2).sum)
    }
    WrittenBuckets(table, buckets, factor)
  }

  def nothing(table: String, numBuckets: Int): WrittenBuckets =
    of(table, numBuckets, Map.empty, Nil, factor = 1)
}

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
