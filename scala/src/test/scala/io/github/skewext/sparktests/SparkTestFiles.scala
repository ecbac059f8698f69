package io.github.skewext.sparktests

import java.io.File
import java.nio.file.{Files, StandardCopyOption}
import java.util.jar.JarFile

import scala.collection.JavaConverters._

import org.apache.commons.io.FileUtils

import org.apache.spark.sql.SQLQueryTestSuite

/**
 * The queries and answers of Spark's tests, which its suite reads from a checkout of Spark: unpacked
 * from the jar of its tests to where they are in a checkout.
 */
object SparkTestFiles {

  private val Home = "spark.test.home"
  private val Folders = Seq("sql-tests/inputs/", "sql-tests/results/", "test-data/postgresql/")

  private lazy val home: File = {
    val home = Files.createTempDirectory("spark-tests").toFile
    unpack(new File(home, "sql/core/src/test/resources"))
    FileUtils.forceDeleteOnExit(home)
    home
  }

  lazy val resources: File = new File(home, "sql/core/src/test/resources")

  /** Names of all files of queries, but those of Python's functions. */
  def queryFiles: Seq[String] = {
    val inputs = new File(resources, "sql-tests/inputs").toPath
    val files = Files.walk(inputs)
    try {
      files.iterator.asScala
        .filter(Files.isRegularFile(_))
        .map(inputs.relativize(_).iterator.asScala.mkString("/"))
        .filter(name => name.endsWith(".sql") && !name.matches("ud(f|af|tf)/.*"))
        .toList
        .sorted
    } finally {
      files.close()
    }
  }

  /** Makes Spark's suites find the files; returns what `restoreHome` needs. */
  def setHome(): Option[String] = Option(System.setProperty(Home, home.getPath))

  def restoreHome(before: Option[String]): Unit =
    before.fold(System.clearProperty(Home))(System.setProperty(Home, _))

  private def unpack(target: File): Unit = {
    val jar = new JarFile(
      new File(classOf[SQLQueryTestSuite].getProtectionDomain.getCodeSource.getLocation.toURI))
    try {
      for {
        entry <- jar.entries.asScala
        if !entry.isDirectory && Folders.exists(entry.getName.startsWith)
      } {
        val file = new File(target, entry.getName).toPath
        Files.createDirectories(file.getParent)
        Files.copy(jar.getInputStream(entry), file, StandardCopyOption.REPLACE_EXISTING)
      }
    } finally {
      jar.close()
    }
  }
}
