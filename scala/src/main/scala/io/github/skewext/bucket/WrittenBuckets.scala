package io.github.skewext.bucket

import org.json4s.jackson.JsonMethods.{compact, render}
import org.json4s.{JArray, JBool, JDouble, JInt, JObject, JString}

import org.apache.spark.sql.execution.datasources.BucketingUtils

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
