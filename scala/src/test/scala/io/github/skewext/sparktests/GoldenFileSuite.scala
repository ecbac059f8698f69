package io.github.skewext.sparktests

import java.io.File

import org.apache.spark.sql.SQLQueryTestSuite

/**
 * Files of Spark's with queries and their answers, with all joins rewritten.
 *
 * @param homeBefore
 *   where Spark's files were looked for before this suite was made
 */
abstract class GoldenFileSuite(homeBefore: Option[String])
    extends SQLQueryTestSuite
    with RewriteForced {

  // Only the constructor of Spark's suite asks.
  SparkTestFiles.restoreHome(homeBefore)

  protected def files: Seq[String]

  override protected lazy val listTestCases: Seq[TestCase] = files.map { name =>
    val input = new File(inputFilePath, name).getPath
    val result = new File(goldenFilePath, s"$name.out").getPath
    if (name.startsWith("postgreSQL/")) PgSQLTestCase(name, input, result)
    else if (name.startsWith("ansi/")) AnsiTestCase(name, input, result)
    else if (name.startsWith("timestampNTZ/")) TimestampNTZTestCase(name, input, result)
    else if (name == "cte.sql") CTETestCase(name, input, result)
    else RegularTestCase(name, input, result)
  }

  override protected def testFile(name: String): String =
    new File(SparkTestFiles.resources, name).toURI.toString
}
