package io.github.skewext.shuffle

import org.apache.spark.sql.execution.SparkPlan

/** An operator whose exchanges write bulk rows or columns ([[BulkExchanges]]). */
trait ReadsBulkRows extends SparkPlan
