package io.github.skewext.merge

import io.github.skewext.SkewExtensions
import io.github.skewext.join.InputRole
import io.github.skewext.join.InputRole.{Optional, Present, Required}
import io.github.skewext.platform.SkewConf
import io.github.skewext.skew.CompressedSkewTest
import io.github.skewext.skew.run.{KeySketchExec, SplitJoinExec}

import io.delta.sql.DeltaSparkSessionExtension
import org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions

import org.apache.spark.sql.Column
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.functions._

/**
 * MERGEs that shuffle hardly more than keys of the target. Equal rows compress to nearly nothing, so
 * the sizes of shuffle files do not show the hot key. Samples of rows do. Where paths of files are
 * shuffled as well, the size of the shuffle in memory shows it without samples.
 */
class EqualRowsSuite
    extends LakehouseTest(
      Seq(
        classOf[SkewExtensions],
        classOf[DeltaSparkSessionExtension],
        classOf[IcebergSparkSessionExtensions]))
    with CompressedSkewTest {

  override protected def beforeAll(): Unit = {
    super.beforeAll()
    // A file of Delta's is read by a task of its own.
    spark.conf.set("spark.sql.files.openCostInBytes", "1000000")
    spark.conf.set("spark.sql.files.maxPartitionBytes", "1000000")
    rows(24000, when(id % 2 === 0, Hot).otherwise(other(id))).createOrReplaceTempView("target")
    val source = rows(600, when(id === 0, Hot).otherwise(other(id * 20)))
    source.createOrReplaceTempView("source")
    source.union(source.where(col("k") === Hot)).createOrReplaceTempView("twice")
  }

  private val Hot = 3L
  private val id = col("id")

  private def other(number: Column) = number * 7919 % 1000003 + 10

  private def rows(n: Long, key: Column) = spark
    .range(0, n, 1, 8)
    .select(key.as("k"), id.as("v"), md5(id.cast("string").cast("binary")).as("txt"))

  private def upsert(table: String, source: String): String =
    s"""MERGE INTO $table t USING $source s ON t.k = s.k
       |WHEN MATCHED THEN UPDATE SET v = s.v, txt = s.txt
       |WHEN NOT MATCHED THEN INSERT (k, v, txt) VALUES (s.k, s.v, s.txt)""".stripMargin

  /** Splits of joins by the key of the MERGE. Delta joins by paths of files, too. */
  private def splitInRoles(plans: Seq[SparkPlan], roles: InputRole*): Seq[SplitJoinExec] =
    plans.flatMap(collectWithSubqueries(_) {
      case join: SplitJoinExec
          if join.roles == roles && join.keys.flatten.forall(_.references.forall(_.name == "k")) =>
        join
    })

  private def sketchesIn(plans: Seq[SparkPlan]): Seq[KeySketchExec] =
    plans.flatMap(collectWithSubqueries(_) { case sketch: KeySketchExec => sketch })

  private def checkMerge(name: String, withPaths: Boolean, roles: InputRole*)(
      make: String => Unit): Unit = {
    val tables = Seq("on", "uncounted", "off").map(way => s"${name}_$way")
    tables.foreach(make)
    val Seq(on, uncounted, off) = tables
    val plans = plansOf(spark.sql(upsert(on, "source")))
    assert(splitInRoles(plans, roles: _*).nonEmpty, plans)
    assert(sketchesIn(plans).nonEmpty, plans)
    withSQLConf(SkewConf.SKEW_OUTPUT_MODE.key -> SkewConf.OutputSkew.Off) {
      val others = plansOf(spark.sql(upsert(uncounted, "source")))
      assert(splitInRoles(others, roles: _*).nonEmpty === withPaths, others)
      assert(sketchesIn(others).isEmpty, others)
    }
    withSQLConf(Off)(spark.sql(upsert(off, "source")))
    for (table <- Seq(on, uncounted)) assertSameRows(rowsOf(table), rowsOf(off), table)
    intercept[Exception](spark.sql(upsert(on, "twice")))
    assertSameRows(rowsOf(on), rowsOf(off), "what failed did nothing")
  }

  test("Delta, deletion vectors: the rows to write", Slow) {
    withTable("vectors_on", "vectors_uncounted", "vectors_off") {
      checkMerge("vectors", withPaths = false, Required, Optional) { table =>
        spark.sql(s"""CREATE TABLE $table USING delta
                     |TBLPROPERTIES (delta.enableDeletionVectors = true)
                     |AS SELECT * FROM target""".stripMargin)
      }
    }
  }

  test("Iceberg, copy-on-write: the files that are concerned", Slow) {
    checkMerge("ice.db.equal", withPaths = true, Required, Present) { table =>
      write(spark.table("target"), table)
      setMode(table, CopyOnWrite)
    }
  }
}
