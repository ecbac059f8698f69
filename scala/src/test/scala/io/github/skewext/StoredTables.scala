package io.github.skewext

import java.nio.file.{Files, Path}

import org.apache.commons.io.FileUtils

import org.apache.spark.sql.DataFrame

/** Tables of files in a folder that is deleted after the suite. Their scans return columns. */
trait StoredTables extends MultiJoinTest {

  // Scans return columns only if Spark generates code.
  override protected def generatesCode: Boolean = true

  protected lazy val folder: Path = Files.createTempDirectory("stored")

  override protected def afterAll(): Unit =
    try super.afterAll()
    finally FileUtils.deleteDirectory(folder.toFile)

  /** A table that is written once. */
  protected def stored(name: String, df: => DataFrame, format: String = "parquet"): DataFrame = {
    val path = folder.resolve(name)
    if (!Files.exists(path)) df.write.format(format).save(path.toString)
    spark.read.format(format).load(path.toString)
  }

  /** A table of which most rows have one key, in files of four tasks. */
  protected def hot: DataFrame = stored(
    "hot",
    spark.range(0, 30000, 1, 4).selectExpr("if(id % 10 = 0, id, 7) k", "xxhash64(id) h"))

  /** Splits partitions as small as those of `hot`. */
  protected val SplitsFrom10KB: Seq[(String, String)] = Seq(
    "spark.sql.adaptive.enabled" -> "true",
    "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes" -> "10KB",
    "spark.sql.adaptive.skewJoin.skewedPartitionFactor" -> "1.5",
    "spark.sql.adaptive.advisoryPartitionSizeInBytes" -> "10KB",
    "spark.sql.adaptive.coalescePartitions.enabled" -> "false")
}
