package org.apache.spark.sql.skewext

/** Code that differs between lines of Spark. Each line has its own object. */
object SparkShims extends Spark4Shims with Until40Shims with Until42Shims
