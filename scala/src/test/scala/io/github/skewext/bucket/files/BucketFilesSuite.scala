package io.github.skewext.bucket.files

import io.github.skewext.MultiJoinTest
import org.apache.hadoop.fs.Path

import org.apache.spark.SparkEnv
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.execution.FileSourceScanExec
import org.apache.spark.sql.execution.datasources.{FileIndex, PartitionDirectory}
import org.apache.spark.sql.types.StructType
import org.apache.spark.util.collection.BitSet

/** The files of a bucketed scan are listed once, and looked at by several rules. */
class BucketFilesSuite extends MultiJoinTest {

  /** Counts how often files are listed. */
  private class Counting(index: FileIndex) extends FileIndex {
    var listings = 0
    override def listFiles(
        partitions: Seq[Expression],
        data: Seq[Expression]): Seq[PartitionDirectory] = {
      listings += 1
      index.listFiles(partitions, data)
    }
    override def rootPaths: Seq[Path] = index.rootPaths
    override def inputFiles: Array[String] = index.inputFiles
    override def refresh(): Unit = index.refresh()
    override def sizeInBytes: Long = index.sizeInBytes
    override def partitionSchema: StructType = index.partitionSchema
  }

  private def scanOf(df: DataFrame): FileSourceScanExec =
    df.queryExecution.sparkPlan.collectFirst { case scan: FileSourceScanExec => scan }.get

  /** A table of two files a bucket in each of two partitions, and a scan of it that is not planned. */
  private def withScan(condition: String)(body: (FileSourceScanExec, Counting) => Unit): Unit =
    withTable("t") {
      val rows = spark.range(0, 100, 1, 2).selectExpr("id AS k", "id AS v", "id % 2 AS p")
      rows.write.partitionBy("p").bucketBy(4, "k").sortBy("k").saveAsTable("t")
      val scan = scanOf(spark.table("t").where(condition))
      val index = new Counting(scan.relation.location)
      body(scan.copy(relation = scan.relation.copy(location = index)(spark)), index)
    }

  test("listed once, also for a copy that reads fewer buckets; and the scan has counted nothing") {
    withScan("true") { (scan, index) =>
      val files = BucketFiles.of(scan).get
      assert(files.bytes.size === 4 && files.bytes.forall(_ > 0))
      assert(files.mostFiles === 4)
      assert(files.ranges(0).size === 4)
      val some = new BitSet(4)
      some.set(2)
      val fewer =
        BucketFiles.of(BucketedScan.restrict(scan, scan.relation.bucketSpec.get, some)).get
      assert(fewer.bytes === files.bytes.updated(0, 0L).updated(1, 0L).updated(3, 0L))
      val coalesced = scan.copy(optionalNumCoalescedBuckets = Some(2))
      coalesced.copyTagsFrom(scan)
      val halved = BucketFiles.of(coalesced).get
      assert(halved.bytes === Seq(files.bytes(0) + files.bytes(2), files.bytes(1) + files.bytes(3)))
      assert(halved.mostFiles === 8)
      assert(index.listings === 1)
      assert(scan.driverMetrics("numFiles").value === 0)
    }
  }

  test("a bucket has several files if there are more files than buckets") {
    withScan("true") { (scan, _) =>
      assert(BucketFiles.areSurelyMore(scan, 1))
      val none =
        BucketedScan.restrict(scan, scan.relation.bucketSpec.get, new BitSet(4))
      assert(!BucketFiles.areSurelyMore(none, 1))
    }
  }

  test("partitions that are not read have no files; those that a subquery may leave out have") {
    withScan("p = 1")((scan, _) => assert(BucketFiles.of(scan).get.mostFiles === 2))
    withScan("p = (SELECT max(k) % 2 FROM t)") { (scan, _) =>
      assert(BucketFiles.of(scan).get.mostFiles === 4)
    }
  }

  test("tasks that are given the plan are not given its files") {
    val listing = new BucketFiles.Listing(null, Nil)
    val serializer = SparkEnv.get.closureSerializer.newInstance()
    val sent = serializer.deserialize[BucketFiles.Listing](serializer.serialize(listing))
    assert(sent.directories === null)
  }
}
