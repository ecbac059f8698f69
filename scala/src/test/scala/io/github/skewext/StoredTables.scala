package io.github.skewext

import java.nio.file.{Files, Path}

import org.apache.commons.io.FileUtils

import org.apache.spark.sql.DataFrame

/** Tables of Parquet files in a folder that is deleted after the suite. Their scans return columns. */
trait StoredTables extends MultiJoinTest {

  // Scans return columns only if Spark generates code.
  override protected def generatesCode: Boolean = true

  protected lazy val folder: Path = Files.createTempDirectory("stored")

  override protected def afterAll(): Unit =
    try super.afterAll()
    finally FileUtils.deleteDirectory(folder.toFile)

  /** A table that is written once. */
  protected def stored(name: String, df: => DataFrame): DataFrame = {
    val path = folder.resolve(name)
    if (!Files.exists(path)) df.write.parquet(path.toString)
    spark.read.parquet(path.toString)
  }
}
