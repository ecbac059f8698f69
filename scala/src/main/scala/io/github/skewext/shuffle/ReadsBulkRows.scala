package io.github.skewext.shuffle

import org.apache.spark.sql.execution.SparkPlan

/** An operator whose exchanges write blocks of columns, see [[BulkExchanges]]. */
trait ReadsBulkRows extends SparkPlan
