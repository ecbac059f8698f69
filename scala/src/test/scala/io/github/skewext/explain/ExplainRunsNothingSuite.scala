package io.github.skewext.explain

import io.github.skewext.PythonApi
import io.github.skewext.platform.SkewConf
import io.github.skewext.technique.{SkewTechniques, TechniqueTest}

import org.apache.spark.SparkConf
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.functions._

/** To plan a query, and to say how it is planned, starts no job, whatever rules and techniques do. */
class ExplainRunsNothingSuite extends TechniqueTest {

  override protected def sparkConf: SparkConf =
    super.sparkConf
      .set(SkewConf.MULTI_JOIN_REWRITE.key, "true")
      .set(SkewConf.MULTI_JOIN_BROADCAST.key, "true")

  private def check(query: => DataFrame): Unit =
    withAdaptive {
      val jobs = jobsOf {
        val df = again(query)
        Seq("simple", "extended", "formatted", "cost").foreach { mode =>
          Console.withOut(new java.io.ByteArrayOutputStream)(df.explain(mode))
        }
        PythonApi.explain(df)
      }
      assert(jobs === 0, s"${query.queryExecution.executedPlan}")
    }

  private def checkSql(query: String): Unit = {
    assert(jobsOf(sql(s"EXPLAIN FORMATTED $query").collect()) === 0, query)
    check(sql(query))
  }

  test("joins of many inputs, by name and as chains of Spark's joins") {
    val inputs = (0 until 4).map(skewed(_, 60))
    check(fullJoin("k")(inputs: _*).where("k > 3 AND v1 > 2").orderBy("v2"))
    check(multiJoin(inputs, Seq("k"), roles = Seq("required", "optional", "required", "excluded")))
    check(inputs.reduce(_.join(_, Seq("k"), "full")).groupBy("k").count())
    withSQLConf("spark.sql.autoBroadcastJoinThreshold" -> "10m") {
      check(
        multiJoin(inputs, Seq("k"), roles = Seq("required", "optional", "optional", "optional")))
    }
  }

  test("every technique, by its hint", Slow) {
    withTempView("l", "r") {
      skewed(0, 200, hot = 2).createOrReplaceTempView("l")
      skewed(1, 60).createOrReplaceTempView("r")
      val cases = for {
        technique <- SkewTechniques.all.map(_.name) :+ "salted, 'hot_keys=3'"
        how <- Seq("FULL", "LEFT", "INNER", "LEFT SEMI")
      } yield (technique, how)
      for ((technique, how) <- covering(cases))
        checkSql(s"SELECT /*+ SKEWEXT_JOIN(r, $technique) */ l.k FROM l $how JOIN r ON l.k = r.k")
    }
  }

  test("every technique, when the function has returned", Slow) {
    val cases =
      for (technique <- SkewTechniques.all.map(_.name); how <- Seq("full", "left"))
        yield (technique, how)
    for ((technique, how) <- covering(cases)) {
      val df = skewJoin(skewed(0, 200, hot = 2), skewed(1, 60), "k", how, technique)
      check(df)
    }
    // It looks for the hot keys itself, and says so in its documentation: the listener hears that.
    val salted =
      jobsOf(skewJoin(skewed(0, 200, hot = 2), skewed(1, 60), "k", "full", "salted"))
    assert(salted > 0)
  }

  test("tables in buckets, partitions and files", Slow) {
    withTable("b0", "b1", "p0") {
      Seq(0, 1).foreach { i =>
        skewed(i, 200).write.bucketBy(4, "k").sortBy("k").saveAsTable(s"b$i")
      }
      // Of more than 32 partitions Spark itself lists the files by a job.
      skewed(2, 200).withColumn("p", col("k") % 6).write.partitionBy("p").saveAsTable("p0")
      checkSql("SELECT * FROM b0 FULL JOIN b1 USING (k) WHERE k IN (3, 5)")
      checkSql("SELECT * FROM b0 JOIN b1 USING (k) WHERE b0.v0 > 3")
      check(fullJoin("k")(spark.table("b0"), spark.table("b1"), skewed(2, 60)))
      check(
        multiJoin(
          Seq(
            spark.table("p0").drop("k").withColumnRenamed("p", "k"),
            spark.table("b0").where("v0 = 3")),
          Seq("k"),
          roles = Seq("required", "required")))
    }
  }
}
