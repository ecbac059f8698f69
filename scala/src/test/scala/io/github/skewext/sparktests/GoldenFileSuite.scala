package io.github.skewext.sparktests

import java.io.File

/**
 * Files of Spark's with queries and their answers.
 *
 * @param homeBefore
 *   where Spark's files were looked for before this suite was made
 */
abstract class GoldenFileSuite(homeBefore: Option[String]) extends GoldenCases with SparkSuite {

  // Only the constructor of Spark's suite asks.
  SparkTestFiles.restoreHome(homeBefore)

  protected def files: Seq[String]

  override protected lazy val listTestCases: Seq[TestCase] = files.map { name =>
    val input = new File(inputFilePath, name).getPath
    val result = new File(goldenFilePath, s"$name.out").getPath
    goldenCase(name, input, result)
  }

  override protected def testFile(name: String): String =
    new File(SparkTestFiles.resources, name).toURI.toString
}
