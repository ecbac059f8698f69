package io.github.skewext.sparktests

import org.apache.spark.sql.SQLQueryTestSuite

/** Under which settings Spark's suite runs a file of queries. */
abstract class GoldenCases extends SQLQueryTestSuite {

  protected def goldenCase(name: String, input: String, result: String): TestCase =
    if (name.startsWith("postgreSQL/")) PgSQLTestCase(name, input, result)
    else if (name.startsWith("ansi/")) AnsiTestCase(name, input, result)
    else if (name.startsWith("timestampNTZ/")) TimestampNTZTestCase(name, input, result)
    else if (name == "cte.sql") CTETestCase(name, input, result)
    else RegularTestCase(name, input, result)
}
