package io.github.skewext.technique

import org.apache.spark.sql.functions._
import org.apache.spark.sql.skewext.RetriedTasks
import org.apache.spark.sql.{Column, DataFrame}
import org.apache.spark.{SparkException, TaskContext}

/** Joins whose tasks fail and run again: of the sides, and of whatever gives the rows of the join. */
class TechniqueRetriesSuite extends TechniqueTest with RetriedTasks {

  private def left = skewed(0, 80, hot = 2, maps = 2).select(col("k"), nullable("v0"))

  private def right =
    skewed(30, 20, keys = 12, maps = 2).select(col("k"), nullable("v30"))

  /** As the function below says of its result. */
  private def nullable(column: String) = when(col(column) >= 0, col(column)).as(column)

  /** Fails in the midst of the rows of a task that runs for the first time. */
  private val failsOnce = udf { (v: java.lang.Long) =>
    val task = TaskContext.get()
    if (v != null && v % 5 == 4 && task != null && task.attemptNumber() == 0) {
      throw new SparkException("not this time")
    }
    v
  }

  private def options(technique: String, how: String): Map[String, String] = technique match {
    case "salted" => Map("salts" -> "2", "side" -> "both")
    // The side of which it matters what has a match.
    case "broadcast_map" => Map("side" -> (if (how == "full") "right" else "left"))
    case "iterative_broadcast" => options("broadcast_map", how) + ("chunks" -> "2")
    case _ => Map.empty
  }

  private def hotKeys(technique: String): Seq[Seq[Column]] =
    if (technique == "salted") Seq(3, 31).map(k => Seq(lit(k))) else null

  for {
    technique <- SkewTechniques.all.map(_.name)
    how <- Seq("full", "left", "inner", "left_semi")
  } {
    test(s"$how join by $technique: tasks that fail and run again give no row twice") {
      def failing(df: DataFrame, column: String) = df.withColumn(column, failsOnce(col(column)))
      val df = skewJoin(
        failing(left, "v0"),
        failing(right, "v30"),
        "k",
        how,
        technique,
        options(technique, how),
        hotKeys(technique))
      assertStock(
        df.withColumn("again", failsOnce(col("k"))),
        stockJoin(left, right, "k", how).withColumn("again", col("k")))
    }
  }
}
