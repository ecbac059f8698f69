package org.apache.spark.sql.skewext

import org.apache.spark.rdd.{DeterministicLevel, RDD}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.{HashPartitioner, LocalSparkContext, SparkConf, SparkContext, SparkFunSuite}

/** What Spark is told of the rows of a join when they are computed again. */
class MultiZipRDDSuite extends SparkFunSuite with LocalSparkContext {

  test("never in the same order, and others where those of an input are") {
    sc = new SparkContext("local", getClass.getSimpleName)
    def level(inputs: RDD[InternalRow]*) =
      new MultiZipRDD[InternalRow](
        sc,
        inputs,
        inputs.map(_ => false),
        (_, of) => of.head()).outputDeterministicLevel
    val fixed = sc.parallelize(Seq.empty[InternalRow], 1)
    assert(fixed.outputDeterministicLevel === DeterministicLevel.DETERMINATE)
    assert(level(fixed, fixed) === DeterministicLevel.UNORDERED)
    val others = new WanderingRDD[InternalRow](sc, Nil, 1, () => 0)
    assert(level(fixed, others) === DeterministicLevel.INDETERMINATE)
  }

  test("inputs are open before the first row, but for those that only read a shuffle") {
    for (isOffHeap <- Seq(false, true)) {
      val conf = new SparkConf()
        .set("spark.memory.offHeap.enabled", isOffHeap.toString)
        .set("spark.memory.offHeap.size", "1m")
      sc = new SparkContext("local", getClass.getSimpleName, conf)
      val opened = sc.longAccumulator
      def input(shuffled: Boolean): RDD[InternalRow] = {
        val rows = sc.parallelize(Seq.empty[(Int, Int)], 1)
        (if (shuffled) rows.partitionBy(new HashPartitioner(1)) else rows).mapPartitions { _ =>
          opened.add(1)
          Iterator(InternalRow.empty)
        }
      }
      def openAtFirst(inputs: RDD[InternalRow]*)(areReads: Boolean*): Long = {
        opened.reset()
        new MultiZipRDD[InternalRow](sc, inputs, areReads, (_, _) => Iterator(InternalRow.empty))
          .count()
        opened.value
      }
      val (scan, shuffle) = (input(shuffled = false), input(shuffled = true))
      assert(openAtFirst(scan, scan, scan)(false, false, false) === 3)
      assert(openAtFirst(shuffle, scan, shuffle)(true, false, true) === 1)
      // Such as an aggregate of what a shuffle has.
      assert(openAtFirst(shuffle, scan)(false, false) === (if (isOffHeap) 2 else 1))
      // An input that reads a shuffle and a scan.
      assert(openAtFirst(shuffle.zipPartitions(scan)((a, _) => a))(false) === 2)
      // A chain of RDDs that each read the one before twice.
      val twice = (0 until 40).foldLeft(shuffle)((rdd, _) => rdd.zipPartitions(rdd)((a, _) => a))
      new MultiZipRDD[InternalRow](sc, Seq(twice), Seq(false), (_, _) => Iterator.empty)
      resetSparkContext()
    }
  }
}
