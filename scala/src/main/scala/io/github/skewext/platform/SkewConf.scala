package io.github.skewext.platform

import org.apache.spark.network.util.ByteUnit
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.internal.SQLConf.buildConf

/**
 * All settings of skewext. Public ones are promised to users; internal ones are for tests. The
 * entries are Spark's own `ConfigEntry`s, so `SET -v` lists the public ones and Spark rejects a
 * wrong value when it is set. `docs/settings.md` is generated from them. Settings are read per
 * query.
 */
object SkewConf {

  /** The values of [[SKEW_OUTPUT_MODE]]. */
  object OutputSkew {
    val Off = "off"
    val MultiJoin = "multiJoin"
    val All = "all"

    private[SkewConf] val modes = Set(Off, MultiJoin, All)
  }

  private def setting(key: String, doc: String, since: String = "0.1.0") =
    buildConf(key).doc(doc).version(since)

  private def internal(key: String, doc: String, since: String = "0.1.0") =
    setting(key, doc, since).internal()

  private def switch(key: String, doc: String, since: String = "0.1.0") =
    setting(key, doc, since).booleanConf.createWithDefault(true)

  private def internalSwitch(key: String, doc: String) =
    internal(key, doc).booleanConf.createWithDefault(true)

  val ENABLED = switch(
    "spark.skewext.enabled",
    "The master switch. When false, Spark plans as if skewext were not there. A multi-way join " +
      "that a query requests by name becomes Spark's own chain of two-way joins. As-of joins and " +
      "latest rows that are requested by name have no plan of Spark's, and remain.")

  val EXCLUDED_RULES = setting(
    "spark.skewext.excludedRules",
    "Names of rules of skewext to exclude, separated by commas. rules.md lists the names. " +
      "Rules of the optimizer can also be excluded with spark.sql.optimizer.excludedRules.").stringConf.toSequence
    .createWithDefault(Nil)

  val JOIN_ENABLED = switch(
    "spark.skewext.join.enabled",
    "When true, joins of two sides that Spark would shuffle and sort, or shuffle and hash, run as " +
      "a join that builds the smaller side of each task in memory and streams the other one. " +
      "Joins with a hint of the user remain Spark's.",
    since = "0.4.0")

  val RANGE_JOIN_ENABLED = switch(
    "spark.skewext.rangeJoin.enabled",
    "When true, joins by a range, such as a point in an interval or intervals that overlap, test only " +
      "pairs of rows whose ranges touch. This applies to joins that Spark would run as a broadcast " +
      "nested loop, and to joins with equal keys beside the range that spark.skewext.join.enabled " +
      "concerns.",
    since = "0.4.0")

  val RANGE_JOIN_MIN_PAIRS = internal(
    "spark.skewext.rangeJoin.minPairs",
    "Number of pairs of rows, as Spark estimates them, from which a range join without a small " +
      "side is cut into ranges of values. For that, a subquery reads the ends of both sides once " +
      "more. Below it, each pair of partitions is joined.",
    since = "0.4.0").longConf
    .checkValue(_ >= 0, "The number of pairs must not be negative.")
    .createWithDefault(100000000L)

  val MULTI_JOIN_SPREAD_NULL_KEYS = switch(
    "spark.skewext.multiJoin.spreadNullKeys.enabled",
    "When true, rows with a null in the key, which match nothing, are spread over all tasks of " +
      "the multi-way join instead of going to one task. This includes such rows in the source of " +
      "a MERGE with a cardinality check. It needs adaptive execution, and applies only if no " +
      "operator above the join uses its partitioning by the key.")

  val MULTI_JOIN_BROADCAST = internalSwitch(
    "spark.skewext.multiJoin.broadcast.enabled",
    "When true, a multi-way join of one large, required input with inputs below " +
      "spark.sql.autoBroadcastJoinThreshold broadcasts the small inputs and shuffles nothing. It " +
      "does not apply to joins with an indicator or with floating-point keys. An as-of join whose " +
      "tables of versions are all below the threshold broadcasts them.")

  val MULTI_JOIN_RUNTIME_FILTER = internalSwitch(
    "spark.skewext.multiJoin.runtimeFilter.enabled",
    "When true, the keys of a small, filtered, required input prune larger inputs at run time. " +
      "They prune partitions under the conditions of " +
      "spark.sql.optimizer.dynamicPartitionPruning.*, and rows by a bloom filter under those of " +
      "spark.sql.optimizer.runtime.bloomFilter.*.")

  val MULTI_JOIN_GROUPING = internal(
    "spark.skewext.multiJoin.grouping",
    "How a task of the multi-way join groups the rows of a key. 'hash' keeps rows in hash " +
      "tables and switches to sorting when they exceed the memory of the task. 'sort' sorts, " +
      "and spills if necessary, from the start.").stringConf
    .transform(_.toLowerCase(java.util.Locale.ROOT))
    .checkValues(Set("hash", "sort"))
    .createWithDefault("hash")

  val MULTI_JOIN_MAX_ROWS_IN_MEMORY = internal(
    "spark.skewext.multiJoin.maxRowsInMemory",
    "Number of rows that a task of the multi-way join keeps in hash tables before it " +
      "switches to sorting, even if it has more memory.").longConf
    .checkValue(_ >= 0, "The number of rows must not be negative.")
    .createWithDefault(Long.MaxValue)

  val MULTI_JOIN_GROUP_ROWS_IN_MEMORY = internal(
    "spark.skewext.multiJoin.groupRowsInMemory",
    "Number of rows of one key and one input that a sorting task of the multi-way join " +
      "keeps on the heap while it combines duplicate keys. Further rows go to memory pages " +
      "that Spark can spill. A larger number spills less and uses more heap.").intConf
    .checkValue(_ > 0, "At least one row must be allowed.")
    .createWithDefault(4096)

  val MULTI_JOIN_REWRITE = switch(
    "spark.skewext.multiJoin.rewrite.enabled",
    "When true, chains of Spark's full outer joins on one key are rewritten to one multi-way " +
      "join, and Spark's own as-of joins to skewext's.")

  val LATEST_REWRITE = switch(
    "spark.skewext.latest.rewrite.enabled",
    "When true, filters such as row_number() OVER (PARTITION BY k ORDER BY t DESC) = 1 run as " +
      "the operator of latest, which groups rows by k.",
    since = "0.3.0")

  val OR_JOIN_ENABLED = switch(
    "spark.skewext.orJoin.enabled",
    "When true, joins without equal keys whose condition has an OR with an equality of both " +
      "sides in each part, such as a.email = b.email OR a.phone = b.phone, run as joins on equal " +
      "keys. When false, Spark compares all pairs of rows.",
    since = "0.4.0")

  val OR_JOIN_MIN_PAIRS = internal(
    "spark.skewext.orJoin.minPairs",
    "Number of pairs of rows, as Spark estimates them, from which a join with OR runs as joins on " +
      "equal keys. It is that for up to 300000 rows and their copies, and in proportion for " +
      "more. Below it, comparing all pairs takes less time.",
    since = "0.4.0").longConf
    .checkValue(_ >= 0, "The number of pairs must not be negative.")
    .createWithDefault(10000000L)

  val SHUFFLE_ENABLED = switch(
    "spark.skewext.shuffle.enabled",
    "When true, the exchanges directly below a join, an as-of join or latest write " +
      "columns instead of rows, which takes less time and fewer bytes. They need hash " +
      "partitioning. Columns must be strings, binaries or values of up to eight bytes, and " +
      "columns times partitions must not exceed 16384. Other exchanges are Spark's, and " +
      "explain shows the reason. If spark.plugins names an accelerator, Spark's own exchanges run.",
    since = "0.3.0")

  val MULTI_JOIN_HASH_BITS = internal(
    "spark.skewext.multiJoin.hashBits",
    "Number of bits of the key's 64-bit hash that are used. Fewer bits cause collisions, " +
      "for tests.").intConf
    .checkValue(bits => bits >= 0 && bits <= 64, "Between 0 and 64.")
    .createWithDefault(64)

  val SKEW_ENABLED = switch(
    "spark.skewext.skew.enabled",
    "When true, the extension splits skewed partitions where Spark's own rule cannot: full " +
      "outer joins, multi-way joins, several joins in a stage, the output of one map task. " +
      "Spark's settings spark.sql.adaptive.skewJoin.* define a skewed partition, and " +
      "spark.sql.adaptive.advisoryPartitionSizeInBytes the size of a slice.")

  val SKEW_MAX_REREAD_FACTOR = setting(
    "spark.skewext.skew.maxRereadFactor",
    "Limit on the data that all tasks of a split partition read, as a multiple of the data " +
      "that one task would read. Each slice reads the other inputs of the partition again, " +
      "and each task that shares the output of one map task reads all of that output. A " +
      "larger value allows more slices, at the cost of more network and disk reads.").doubleConf
    .checkValue(_ >= 1, "A split never does less work than one task.")
    .createWithDefault(4.0)

  val SKEW_MIN_GAIN = internal(
    "spark.skewext.skew.minGain",
    "Smallest expected gain of a split: the time of the longest task without the split, " +
      "divided by that with the split. A larger value splits fewer partitions.").doubleConf
    .checkValue(_ >= 1, "A split must not make the longest task longer.")
    .createWithDefault(1.5)

  val SKEW_MARKING = internalSwitch(
    "spark.skewext.skew.marking.enabled",
    "When true, tasks before a split join may compute which keys match the skewed input, if a " +
      "single task would take longest for this. These tasks read the skewed partition, slice by " +
      "slice, and the other inputs of the partition.")

  val SKEW_OUTPUT_MODE = setting(
    "spark.skewext.skew.outputSkew.mode",
    "Which joins are also split where a partition is small but produces a large output (a " +
      "key with thousands of rows on both sides), or where its size on disk hides its row " +
      "count because equal keys compress well. The map tasks of these joins sample the keys " +
      "of one row in 64, which costs CPU time in every such join. 'multiJoin': multi-way " +
      "joins and the joins of a MERGE. 'all': Spark's own joins, too. 'off': no join. It " +
      "needs a session without an accelerator in spark.plugins.",
    since = "0.3.0").stringConf
    .transform(mode => OutputSkew.modes.find(_.equalsIgnoreCase(mode)).getOrElse(mode))
    .checkValues(OutputSkew.modes)
    .createWithDefault(OutputSkew.MultiJoin)

  val SKEW_OUTPUT_SAMPLE_EVERY = internal(
    "spark.skewext.skew.output.sampleEvery",
    "One row in this many is sampled. A smaller number suits tests with few rows.").intConf
    .checkValue(n => n > 0 && n <= (1 << 30), "At least one, and at most 1073741824.")
    .createWithDefault(64)

  val SKEW_JOIN_MAX_BROADCAST = setting(
    "spark.skewext.skewJoin.maxBroadcastBytes",
    "Largest size of a side that skew_join broadcasts. It limits the size that Spark " +
      "estimates when it plans the query. In adaptive execution it also limits the size in " +
      "memory when the driver has built the broadcast. A larger value uses more memory in " +
      "the driver and in every executor. spark.driver.maxResultSize applies in any case.")
    .bytesConf(ByteUnit.BYTE)
    .checkValue(_ > 0, "At least one byte.")
    .createWithDefaultString("256MB")

  val BUCKET_ORDER = switch(
    "spark.skewext.bucket.order.enabled",
    "When true, joins, aggregates and windows on tables with sorted buckets use the order of their " +
      "files, where Spark would sort all rows, if every bucket has one file.")

  val UI_ENABLED = switch(
    "spark.skewext.ui.enabled",
    "When true, the rewrites and splits of a query's joins are recorded for query_report, for " +
      "the tab 'skewext' of Spark's UI and, if Spark writes one, in the event log. The tab exists " +
      "only if it is true when the application starts.")

  def enabled(conf: SQLConf): Boolean = conf.getConf(ENABLED)

  /** The settings that must all be true for partitions to be split, in adaptive execution. */
  val splitSwitches = Seq(ENABLED, SKEW_ENABLED, SQLConf.SKEW_JOIN_ENABLED)

  /** Whether skewed partitions are split. */
  def splits(conf: SQLConf): Boolean =
    conf.adaptiveExecutionEnabled && splitSwitches.forall(conf.getConf(_))

  /** Whether a rule is excluded: by the setting, or because its classes do not fit this Spark. */
  def excludes(conf: SQLConf, ruleName: String): Boolean =
    RuleName.isOff(conf.getConf(EXCLUDED_RULES), ruleName)
}
