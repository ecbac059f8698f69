package org.apache.spark.sql.skewext

import org.apache.spark.rdd.{DeterministicLevel, RDD}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.{LocalSparkContext, SparkContext, SparkFunSuite}

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
    sc = new SparkContext("local", getClass.getSimpleName)
    val opened = sc.longAccumulator
    def openAtFirst(areReads: Boolean*): Long = {
      opened.reset()
      val inputs = areReads.map { _ =>
        sc.parallelize(Seq(1), 1).mapPartitions { _ =>
          opened.add(1)
          Iterator(InternalRow.empty)
        }
      }
      new MultiZipRDD[InternalRow](sc, inputs, areReads, (_, _) => Iterator(InternalRow.empty))
        .count()
      opened.value
    }
    assert(openAtFirst(false, false, false) === 3)
    assert(openAtFirst(true, false, true) === 1)
  }
}
