package org.apache.spark.sql.skewext

import org.apache.spark.rdd.{DeterministicLevel, RDD}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.{HashPartitioner, LocalSparkContext, SparkContext, SparkFunSuite}

/** What Spark is told of the rows of a join when they are computed again. */
class MultiZipRDDSuite extends SparkFunSuite with LocalSparkContext {

  test("never in the same order, and others where those of an input are") {
    sc = new SparkContext("local", getClass.getSimpleName)
    def level(inputs: RDD[InternalRow]*) =
      new MultiZipRDD[InternalRow](sc, inputs, (_, of) => of.head()).outputDeterministicLevel
    val fixed = sc.parallelize(Seq.empty[InternalRow], 1)
    assert(fixed.outputDeterministicLevel === DeterministicLevel.DETERMINATE)
    assert(level(fixed, fixed) === DeterministicLevel.UNORDERED)
    val others = new WanderingRDD[InternalRow](sc, Nil, 1, () => 0)
    assert(level(fixed, others) === DeterministicLevel.INDETERMINATE)
  }

  test("inputs are open before the first row, but for those that read a shuffle") {
    sc = new SparkContext("local", getClass.getSimpleName)
    val opened = sc.longAccumulator
    def input(shuffled: Boolean): RDD[InternalRow] = {
      val rows = sc.parallelize(Seq.empty[(Int, Int)], 1)
      (if (shuffled) rows.partitionBy(new HashPartitioner(1)) else rows).mapPartitions { _ =>
        opened.add(1)
        Iterator(InternalRow.empty)
      }
    }
    def openAtFirst(shuffled: Boolean*): Long = {
      opened.reset()
      new MultiZipRDD[InternalRow](sc, shuffled.map(input), (_, _) => Iterator(InternalRow.empty))
        .count()
      opened.value
    }
    assert(openAtFirst(false, false, false) === 3)
    assert(openAtFirst(true, false, true) === 1)
    // An input that reads a shuffle and a scan.
    opened.reset()
    val both = input(shuffled = true).zipPartitions(input(shuffled = false))((a, _) => a)
    new MultiZipRDD[InternalRow](sc, Seq(both), (_, _) => Iterator(InternalRow.empty)).count()
    assert(opened.value === 2)
    // A chain of RDDs that each read the one before twice.
    val twice = (0 until 40).foldLeft(input(shuffled = true)) { (rdd, _) =>
      rdd.zipPartitions(rdd)((a, _) => a)
    }
    new MultiZipRDD[InternalRow](sc, Seq(twice), (_, _) => Iterator.empty)
  }
}
