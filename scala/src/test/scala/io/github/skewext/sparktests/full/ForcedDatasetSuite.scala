package io.github.skewext.sparktests.full

import io.github.skewext.sparktests.RewriteForced

import org.apache.spark.sql.DatasetSuite

/** Spark's own tests of Datasets, joins of objects among them, with all joins rewritten. */
class ForcedDatasetSuite extends DatasetSuite with RewriteForced
