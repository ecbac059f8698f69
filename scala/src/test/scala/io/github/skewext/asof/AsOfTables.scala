package io.github.skewext.asof

import java.nio.file.{Files, Path}

import scala.collection.mutable.ArrayBuffer

import io.github.skewext.platform.SkewConf
import org.apache.commons.io.FileUtils

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.functions._

/** Rows that several suites join, and settings that group them. */
trait AsOfTables extends AsOfTest {

  protected def spine =
    table("id, k, t", "(1, 1, 5), (2, 1, 9), (3, 2, 5), (4, null, 5), (5, 1, null)")
  protected def prices =
    table(
      "k, at, price",
      "(1, 4, 10), (1, 5, 20), (1, 7, 30), (2, 6, 40), (null, 1, 50), (1, null, 60)")

  /**
   * Rows that are random, but always the same: keys from 1, some null, and the times.
   *
   * @param times SQL of an array
   */
  protected def rows(seed: Int, n: Int, keys: Int, times: String, time: String): DataFrame = {
    def random(salt: Int, below: Int) = pmod(hash(col("id"), lit(seed), lit(salt)), lit(below))
    val values = expr(times)
    spark
      .range(0, n, 1, 2)
      .select(
        col("id").as(s"id$seed"),
        when(random(1, 8) > 0, random(2, keys) + 1).as("k"),
        when(random(3, 8) > 0, element_at(values, (random(4, 1000) % size(values) + 1).cast("int")))
          .as(time),
        when(random(5, 5) > 0, random(6, 6)).as(s"x$seed"),
        when(random(7, 5) > 0, random(8, 3).cast("string")).as(s"y$seed"))
  }

  /** The same rows in two files. */
  protected def stored(df: DataFrame): DataFrame = {
    folders += Files.createTempDirectory("as-of")
    val path = folders.last.toString
    df.write.mode("overwrite").parquet(path)
    spark.read.parquet(path)
  }

  private val folders = ArrayBuffer.empty[Path]

  override protected def afterAll(): Unit =
    try super.afterAll()
    finally folders.foreach(folder => FileUtils.deleteDirectory(folder.toFile))

  /**
   * Hash tables, sorts, hash tables for which there is too little memory, and tables and sorts with
   * one hash for all.
   */
  protected val groupings = Seq(
    Nil,
    Seq(SkewConf.MULTI_JOIN_GROUPING.key -> "sort"),
    Seq(SkewConf.MULTI_JOIN_MAX_ROWS_IN_MEMORY.key -> "5"),
    Seq(SkewConf.MULTI_JOIN_HASH_BITS.key -> "0"),
    Seq(SkewConf.MULTI_JOIN_GROUPING.key -> "sort", SkewConf.MULTI_JOIN_HASH_BITS.key -> "0"))
}
