package io.github.skewext.internal

import org.apache.spark.network.util.ByteUnit
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.internal.SQLConf.buildConf

/**
 * All settings of skewext. The entries are Spark's own `ConfigEntry`s, so `SET -v` lists them and
 * Spark rejects a wrong value when it is set. `docs/settings.md` is generated from them. Settings
 * are read per query.
 */
object SkewConf {

  val ENABLED = buildConf("spark.skewext.enabled")
    .doc("The master switch. When false, Spark plans as if skewext were not there: a multi-way " +
      "join that was asked for by name is planned as Spark's own chain of two-way joins.")
    .version("0.1.0")
    .booleanConf
    .createWithDefault(true)

  val EXCLUDED_RULES = buildConf("spark.skewext.excludedRules")
    .doc(
      "Names of rules of skewext that do nothing, separated by commas; rules.md has all names. " +
        "Those of the optimizer may also stand in spark.sql.optimizer.excludedRules.")
    .version("0.1.0")
    .stringConf
    .toSequence
    .createWithDefault(Nil)

  val MULTI_JOIN_SPREAD_NULL_KEYS = buildConf("spark.skewext.multiJoin.spreadNullKeys.enabled")
    .doc(
      "Whether rows with a null in the key, which match nothing, are spread over all tasks of " +
        "the multi-way join instead of going to one; also those of the source of a MERGE that " +
        "looks for target rows which match twice. Done only in adaptive execution, and only " +
        "where nothing above the join makes use of its partitioning by the key.")
    .version("0.1.0")
    .booleanConf
    .createWithDefault(true)

  val MULTI_JOIN_BROADCAST = buildConf("spark.skewext.multiJoin.broadcast.enabled")
    .doc(
      "Whether a multi-way join of one large, required input with inputs that are small enough " +
        "to broadcast (spark.sql.autoBroadcastJoinThreshold) broadcasts these, so that nothing is " +
        "shuffled. Not with an indicator, and not for floating-point keys.")
    .version("0.1.0")
    .booleanConf
    .createWithDefault(true)

  val MULTI_JOIN_RUNTIME_FILTER = buildConf("spark.skewext.multiJoin.runtimeFilter.enabled")
    .doc(
      "Whether the keys of a small required input with a condition may tell, while the query " +
        "runs, what is not read or not shuffled of larger inputs: partitions, as " +
        "spark.sql.optimizer.dynamicPartitionPruning.* say it for Spark's joins, and rows that a " +
        "bloom filter does not have, as spark.sql.optimizer.runtime.bloomFilter.* say it.")
    .version("0.1.0")
    .booleanConf
    .createWithDefault(true)

  val MULTI_JOIN_ORDER = buildConf("spark.skewext.multiJoin.order")
    .doc(
      "In which order the multi-way join brings keys out. 'auto': in their natural order where " +
        "all inputs come sorted by the key (bucketed and sorted tables) and no partition is split, " +
        "and then without keeping rows in memory; else in no order. 'natural': in their natural " +
        "order, with a sort of each input that is not sorted. 'none': in no order.")
    .version("0.1.0")
    .stringConf
    .transform(_.toLowerCase(java.util.Locale.ROOT))
    .checkValues(Set("auto", "natural", "none"))
    .createWithDefault("auto")

  val MULTI_JOIN_GROUPING = buildConf("spark.skewext.multiJoin.grouping")
    .doc(
      "How a task of the multi-way join brings the rows of one key together. 'hash' keeps the " +
        "rows in small hash tables and goes over to sorting when they do not fit in the task's " +
        "memory; 'sort' sorts and spills from the start.")
    .version("0.1.0")
    .stringConf
    .transform(_.toLowerCase(java.util.Locale.ROOT))
    .checkValues(Set("hash", "sort"))
    .createWithDefault("hash")

  val MULTI_JOIN_MAX_ROWS_IN_MEMORY = buildConf("spark.skewext.multiJoin.maxRowsInMemory")
    .doc("Rows that one task of the multi-way join keeps in hash tables before it goes over to " +
      "sorting, however much memory is left.")
    .version("0.1.0")
    .longConf
    .checkValue(_ >= 0, "The number of rows must not be negative.")
    .createWithDefault(Long.MaxValue)

  val MULTI_JOIN_GROUP_ROWS_IN_MEMORY = buildConf("spark.skewext.multiJoin.groupRowsInMemory")
    .doc(
      "Rows of one key and one input that are kept on the heap while the multi-way join " +
        "forms the product of duplicate keys; more rows go to pages that Spark accounts for and " +
        "spills. Only for tasks that sort.")
    .version("0.1.0")
    .intConf
    .checkValue(_ > 0, "At least one row must be allowed.")
    .createWithDefault(4096)

  val MULTI_JOIN_REWRITE = buildConf("spark.skewext.multiJoin.rewrite.enabled")
    .doc("Whether chains of Spark's full outer joins on one key become one multi-way join.")
    .version("0.1.0")
    .booleanConf
    .createWithDefault(true)

  val MULTI_JOIN_REWRITE_MIN_INPUTS = buildConf("spark.skewext.multiJoin.rewrite.minInputs")
    .doc("Chains of fewer inputs stay Spark's joins.")
    .version("0.1.0")
    .intConf
    .checkValue(_ >= 2, "A join has at least two inputs.")
    .createWithDefault(3)

  val MULTI_JOIN_REWRITE_MIXED = buildConf("spark.skewext.multiJoin.rewrite.mixed.enabled")
    .doc(
      "Whether inner, left, right and anti joins on the key of a chain become part of the " +
        "multi-way join as well. Where Spark would shuffle the result of a full outer join for " +
        "such a join, they do in any case.")
    .version("0.1.0")
    .booleanConf
    .createWithDefault(false)

  val SHUFFLE_BULK_ROWS = buildConf("spark.skewext.shuffle.bulkRows.enabled")
    .doc(
      "Whether the exchanges right below a multi-way join write and read rows by the buffer, and " +
        "whether split joins read those of Spark so. " +
        "What is written is what Spark's own exchange writes, in less time for each row. Only with " +
        "Spark's own shuffle manager, and without plugins (spark.plugins).")
    .version("0.1.0")
    .booleanConf
    .createWithDefault(true)

  val SHUFFLE_COLUMNS = buildConf("spark.skewext.shuffle.columns.enabled")
    .doc(
      "Whether the exchanges right below a multi-way join write columns where a scan gives them, and not " +
        "rows: less time and fewer bytes for the same rows. Only with bulk rows " +
        "(spark.skewext.shuffle.bulkRows.enabled), above a vectorized scan or a cached table with nothing " +
        "but filters and selected columns between, by hash, for columns of up to eight bytes, strings and " +
        "binaries, and up to 16384 columns of partitions; elsewhere rows are written, and explain says why.")
    .version("0.1.0")
    .booleanConf
    .createWithDefault(true)

  val MULTI_JOIN_HASH_BITS = buildConf("spark.skewext.multiJoin.hashBits")
    .internal()
    .doc("Bits of the key's 64-bit hash that are used. Fewer bits make collisions, for tests.")
    .version("0.1.0")
    .intConf
    .checkValue(bits => bits >= 0 && bits <= 64, "Between 0 and 64.")
    .createWithDefault(64)

  val SKEW_ENABLED = buildConf("spark.skewext.skew.enabled")
    .doc(
      "Whether skewed partitions of joins are split where Spark leaves them whole. What is skewed, " +
        "and how large the parts should be, is said by Spark's own settings " +
        "spark.sql.adaptive.skewJoin.* and spark.sql.adaptive.advisoryPartitionSizeInBytes.")
    .version("0.1.0")
    .booleanConf
    .createWithDefault(true)

  val SKEW_MAX_SLICES = buildConf("spark.skewext.skew.maxSlices")
    .doc("Into how many slices one skewed partition is cut at most.")
    .version("0.1.0")
    .intConf
    .checkValue(_ >= 2, "With fewer than two slices there is no split.")
    .createWithDefault(256)

  val SKEW_MAX_REREAD_FACTOR = buildConf("spark.skewext.skew.maxRereadFactor")
    .doc(
      "How much the tasks of a split partition may read together, as a multiple of what one task " +
        "would read: every slice reads what the other inputs have in the partition once more, and " +
        "tasks that share what one map task wrote read all of it, each. With larger inputs on the " +
        "other side, or with fewer map tasks, there are fewer slices.")
    .version("0.1.0")
    .doubleConf
    .checkValue(_ >= 1, "A split never does less work than one task.")
    .createWithDefault(4.0)

  val SKEW_MIN_GAIN = buildConf("spark.skewext.skew.minGain")
    .doc("A partition is split only if its longest task is expected to be shorter by this factor.")
    .version("0.1.0")
    .doubleConf
    .checkValue(_ >= 1, "A split must not make the longest task longer.")
    .createWithDefault(1.5)

  val SKEW_MARKING = buildConf("spark.skewext.skew.marking.enabled")
    .doc(
      "Whether tasks before a split join may find the keys that a skewed input has, where reading " +
        "them in one task would take longer than anything else. They read the skewed partition, " +
        "slice by slice, and what the other inputs have there.")
    .version("0.1.0")
    .booleanConf
    .createWithDefault(true)

  val SKEW_OUTPUT_ENABLED = buildConf("spark.skewext.skew.output.enabled")
    .doc(
      "Whether partitions are split that are small, but out of which much comes (a key with " +
        "thousands of rows on both sides) or in which equal keys have many more rows than their " +
        "bytes tell. The map tasks of multi-way joins then count the keys of one row in 64. Only " +
        "with Spark's own shuffle manager, and without plugins (spark.plugins).")
    .version("0.1.0")
    .booleanConf
    .createWithDefault(true)

  val SKEW_OUTPUT_SPARK_JOINS = buildConf("spark.skewext.skew.output.sparkJoins.enabled")
    .doc(
      "Whether the map tasks of Spark's own joins count keys as well " +
        "(spark.skewext.skew.output.enabled). That takes some processor time of every join, and " +
        "shortens only those that have such partitions. Those of a MERGE do in any case.")
    .version("0.1.0")
    .booleanConf
    .createWithDefault(false)

  val SKEW_OUTPUT_SAMPLE_EVERY = buildConf("spark.skewext.skew.output.sampleEvery")
    .internal()
    .doc("Of how many rows one is counted. Few rows need a larger part, for tests.")
    .version("0.1.0")
    .intConf
    .checkValue(_ > 0, "At least one.")
    .createWithDefault(64)

  val SKEW_JOIN_MAX_BROADCAST = buildConf("spark.skewext.skewJoin.maxBroadcastBytes")
    .doc(
      "How large a side of a join may be for skew_join to broadcast it: by what Spark knows of its " +
        "size when it plans the query, and, in adaptive execution, in memory when the driver has " +
        "built it. Every executor holds all of it. spark.driver.maxResultSize is a limit in any " +
        "case.")
    .version("0.1.0")
    .bytesConf(ByteUnit.BYTE)
    .checkValue(_ > 0, "At least one byte.")
    .createWithDefaultString("256MB")

  val SKEW_JOIN_SAMPLE_ROWS = buildConf("spark.skewext.skewJoin.sampleRows")
    .doc("At how many rows of a side skew_join looks by a small job, when technique=\"auto\" has to know " +
      "which keys are hot: where partitions cannot be split at run time and neither side is small " +
      "enough to broadcast. The rows are the first ones of up to eight partitions. " +
      "Only of tables and files, with conditions or without; what would have to be computed first is " +
      "not looked at. A hint looks at nothing. 0 switches it off.")
    .version("0.1.0")
    .intConf
    .checkValue(_ >= 0, "The number of rows must not be negative.")
    .createWithDefault(100000)

  val BUCKET_MERGE = buildConf("spark.skewext.bucket.merge.enabled")
    .doc(
      "Whether the sorted files of a bucket are merged where Spark would sort all of their rows: " +
        "for joins and aggregates of tables with sorted buckets, also after appends.")
    .version("0.1.0")
    .booleanConf
    .createWithDefault(true)

  val BUCKET_MERGE_MAX_FILES = buildConf("spark.skewext.bucket.merge.maxFiles")
    .doc(
      "How many files of a bucket are merged at most, and so are open at a time in a task, for each " +
        "table. With more of them Spark sorts the rows.")
    .version("0.1.0")
    .intConf
    .checkValue(_ > 0, "At least one file must be allowed.")
    .createWithDefault(8)

  val BUCKET_MERGE_MULTI_JOIN_MAX_FILES =
    buildConf("spark.skewext.bucket.merge.multiJoin.maxFiles")
      .doc("How many files of a bucket are merged at most for the multi-way join. With more of them in " +
        "a table, rows are brought together by hash, which shuffles and sorts nothing either, and " +
        "was faster than merging several files of several tables where rows fitted in memory. " +
        "More than one file is for buckets whose rows do not.")
      .version("0.1.0")
      .intConf
      .checkValue(_ > 0, "At least one file must be allowed.")
      .createWithDefault(1)

  val BUCKET_MERGE_MAX_BYTES = buildConf("spark.skewext.bucket.merge.maxBytes")
    .doc(
      "How much the readers of the files that a task merges may hold, of each table: a part of " +
        "every file, one row group or stripe, is in memory at a time. Estimated from the sizes of " +
        "the files and of the columns that are read.")
    .version("0.1.0")
    .bytesConf(ByteUnit.BYTE)
    .checkValue(_ >= 0, "The number of bytes must not be negative.")
    .createWithDefaultString("512m")

  val BUCKET_PRUNING = buildConf("spark.skewext.bucket.pruning.enabled")
    .doc(
      "Whether conditions on the bucket columns of a table, of any number, choose the buckets that " +
        "are read. Spark alone does so for tables with one bucket column.")
    .version("0.1.0")
    .booleanConf
    .createWithDefault(true)

  val BUCKET_PRUNING_JOIN_KEYS = buildConf("spark.skewext.bucket.pruning.joinKeys.enabled")
    .doc(
      "Whether the keys of the broadcast side of a join choose the buckets that are read of the " +
        "other side, where rows without a match do not come out. Only in adaptive execution, which " +
        "plans the join when the keys are there.")
    .version("0.1.0")
    .booleanConf
    .createWithDefault(true)

  val BUCKET_PRUNING_MAX_VALUES = buildConf("spark.skewext.bucket.pruning.maxValues")
    .doc(
      "For how many combinations of values of the bucket columns, or keys of the broadcast side, " +
        "the buckets are looked up at most. With more, all buckets are read.")
    .version("0.1.0")
    .intConf
    .checkValue(_ > 0, "At least one.")
    .createWithDefault(10000)

  val BUCKET_SKEW = buildConf("spark.skewext.bucket.skew.enabled")
    .doc(
      "Whether buckets that are far larger than others are read by several tasks of a join, by " +
        "their files and the row groups of these. What is skewed is said as for shuffles " +
        "(spark.skewext.skew.enabled); sizes are those of files, by the share of the columns that " +
        "are read.")
    .version("0.1.0")
    .booleanConf
    .createWithDefault(true)

  val UI_ENABLED = buildConf("spark.skewext.ui.enabled")
    .doc(
      "Whether what became of a query's joins is kept for the tab 'skewext' of Spark's UI and, where " +
        "Spark writes one, in the event log. Of no effect where Spark's UI and its event log are off. " +
        "When it is false in the settings that the application starts with, there is no tab.")
    .version("0.1.0")
    .booleanConf
    .createWithDefault(true)

  /** All entries, in the order of the documentation. */
  val entries = Seq(
    ENABLED,
    EXCLUDED_RULES,
    MULTI_JOIN_SPREAD_NULL_KEYS,
    MULTI_JOIN_BROADCAST,
    MULTI_JOIN_RUNTIME_FILTER,
    MULTI_JOIN_ORDER,
    MULTI_JOIN_GROUPING,
    MULTI_JOIN_MAX_ROWS_IN_MEMORY,
    MULTI_JOIN_GROUP_ROWS_IN_MEMORY,
    MULTI_JOIN_REWRITE,
    MULTI_JOIN_REWRITE_MIN_INPUTS,
    MULTI_JOIN_REWRITE_MIXED,
    SHUFFLE_BULK_ROWS,
    SHUFFLE_COLUMNS,
    MULTI_JOIN_HASH_BITS,
    SKEW_ENABLED,
    SKEW_MAX_SLICES,
    SKEW_MAX_REREAD_FACTOR,
    SKEW_MIN_GAIN,
    SKEW_MARKING,
    SKEW_OUTPUT_ENABLED,
    SKEW_OUTPUT_SPARK_JOINS,
    SKEW_OUTPUT_SAMPLE_EVERY,
    SKEW_JOIN_MAX_BROADCAST,
    SKEW_JOIN_SAMPLE_ROWS,
    BUCKET_MERGE,
    BUCKET_MERGE_MAX_FILES,
    BUCKET_MERGE_MULTI_JOIN_MAX_FILES,
    BUCKET_MERGE_MAX_BYTES,
    BUCKET_PRUNING,
    BUCKET_PRUNING_JOIN_KEYS,
    BUCKET_PRUNING_MAX_VALUES,
    BUCKET_SKEW,
    UI_ENABLED)

  def enabled(conf: SQLConf): Boolean = conf.getConf(ENABLED)

  def excludes(conf: SQLConf, ruleName: String): Boolean =
    conf.getConf(EXCLUDED_RULES).contains(ruleName)
}
