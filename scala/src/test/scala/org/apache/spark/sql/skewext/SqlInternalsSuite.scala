package org.apache.spark.sql.skewext

import org.apache.spark.{SparkConf, SparkFunSuite}

class SqlInternalsSuite extends SparkFunSuite {

  test("the memory of an executor is in MiB without a unit, as for Spark") {
    def memory(set: String) =
      SqlInternals.executorMemory(new SparkConf(false).set("spark.executor.memory", set))
    assert(memory("4096") === 4L << 30)
    assert(memory("3g") === 3L << 30)
    assert(SqlInternals.executorMemory(new SparkConf(false)) === 1L << 30)
  }
}
