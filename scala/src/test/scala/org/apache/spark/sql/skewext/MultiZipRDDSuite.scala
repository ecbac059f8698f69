package org.apache.spark.sql.skewext

import org.apache.spark.rdd.{DeterministicLevel, RDD}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.{LocalSparkContext, SparkContext, SparkFunSuite}

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
}
