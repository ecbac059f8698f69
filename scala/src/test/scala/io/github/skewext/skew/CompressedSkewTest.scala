package io.github.skewext.skew

import io.github.skewext.platform.SkewConf

import org.apache.spark.SparkConf

/** Equal rows in shuffles that are compressed, as users have them: by bytes nobody sees how many there are. */
trait CompressedSkewTest extends SkewTest {

  override protected def sparkConf: SparkConf =
    super.sparkConf.set("spark.shuffle.compress", "true")

  override protected def beforeAll(): Unit = {
    super.beforeAll()
    spark.conf.set(Threshold, "50000")
    spark.conf.set(Advisory, "5000")
    spark.conf.set(SkewConf.SKEW_OUTPUT_SAMPLE_EVERY.key, "8")
  }
}
