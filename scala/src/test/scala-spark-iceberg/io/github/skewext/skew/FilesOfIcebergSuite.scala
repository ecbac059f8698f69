package io.github.skewext.skew

import io.github.skewext.merge.MergeTest
import io.github.skewext.platform.SkewConf
import io.github.skewext.skew.plan.SkewReason
import io.github.skewext.skew.run.SplitJoinExec


import org.apache.spark.sql.functions._

/** Joins that are written to tables of Iceberg, which say how rows are to be distributed. */
class FilesOfIcebergSuite extends MergeTest {

  /** The splits of a block of one map task that is written, and why there are none. */
  private def written(partitioned: Boolean, distribution: String): (Int, Seq[SkewReason]) = {
    val df = skewed(0, 800, hot = 2, maps = 1)
      .join(skewed(1, 60).hint("merge"), Seq("k"), "full")
      .withColumn("g", coalesce(col("v0"), lit(0)) % 3)
    val columns = df.schema.map(f => s"${f.name} ${f.dataType.sql}").mkString(", ")
    spark.sql("DROP TABLE IF EXISTS ice.db.written")
    spark.sql(s"""CREATE TABLE ice.db.written ($columns) USING iceberg
                 |${if (partitioned) "PARTITIONED BY (g)" else ""}
                 |TBLPROPERTIES ('write.distribution-mode' = '$distribution',
                 |  'write.spark.fanout.enabled' = 'true')""".stripMargin)
    val plans = plansOf(df.writeTo("ice.db.written").append())
    val rows = spark.table("ice.db.written").collect().toSeq
    assertSameRows(rows, rowsWhenOff(df), "the query, written")
    val splits = plans.flatMap(operators(_)).collect { case split: SplitJoinExec => split }
    (
      splits.size,
      plans.flatMap(collect(_) { case node => SkewReason.of(node).map(_.reason) }.flatten))
  }

  test("a join below a write of one file for each task is split") {
    assert(written(partitioned = false, "none")._1 === 1)
  }

  test("splits a join whose rows the table distributes", Slow) {
    withSQLConf(SkewConf.SKEW_MIN_GAIN.key -> "1.7") {
      assert(written(partitioned = true, "none") === ((0, Seq(SkewReason.FewFiles))))
      assert(written(partitioned = true, "hash")._1 === 1)
    }
  }
}
