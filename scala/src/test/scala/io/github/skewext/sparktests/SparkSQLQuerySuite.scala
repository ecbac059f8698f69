package io.github.skewext.sparktests

import scala.collection.mutable

/** The files that are made of joins, each once: interpreted, and with nothing broadcast. */
class SparkSQLQuerySuite(homeBefore: Option[String]) extends GoldenFileSuite(homeBefore) {

  def this() = this(SparkTestFiles.setHome())

  override protected def ourJoins: Long = 75

  override protected def files: Seq[String] = Seq(
    "cross-join.sql",
    "inner-join.sql",
    "join-empty-relation.sql",
    "outer-join.sql",
    "subquery/exists-subquery/exists-joins-and-set-ops.sql",
    "subquery/in-subquery/not-in-joins.sql",
    "using-join.sql") ++ (if (sys.env.contains("SKEWEXT_TEST_ALL")) slowest else Nil)

  // Those above have joins of the same kinds, and are quicker.
  private def slowest =
    Seq("natural-join.sql", "postgreSQL/join.sql", "subquery/in-subquery/in-joins.sql")

  // A file names up to eighteen sets of settings to be run with.
  private lazy val ran = mutable.Set.empty[String]

  override protected def runQueries(
      queries: Seq[String],
      testCase: TestCase,
      settings: Seq[(String, String)]): Unit =
    if (ran.add(testCase.name)) {
      super.runQueries(queries, testCase, settings ++ SparkSQLQuerySuite.quick)
    }
}

object SparkSQLQuerySuite {

  // Compiling takes longer than running such queries.
  private val quick = Seq(
    "spark.sql.autoBroadcastJoinThreshold" -> "-1",
    "spark.sql.codegen.wholeStage" -> "false",
    "spark.sql.codegen.factoryMode" -> "NO_CODEGEN")
}
