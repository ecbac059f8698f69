package io.github.skewext

import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.internal.SQLConf.buildConf

/**
 * Every setting of skewext. The entries are Spark's own `ConfigEntry`s, so `SET -v` lists them and
 * a wrong value fails when it is set; `docs/settings.md` is generated from them ([[SettingsDoc]]).
 * Settings are read per query.
 */
object SkewConf {

  val ENABLED = buildConf("spark.skewext.enabled")
    .doc("The master switch. When false, Spark plans as if skewext were not there: a multi-way " +
      "join that was asked for by name is planned as Spark's own chain of two-way joins.")
    .version("0.1.0")
    .booleanConf
    .createWithDefault(true)

  val MULTI_JOIN_SPREAD_NULL_KEYS = buildConf("spark.skewext.multiJoin.spreadNullKeys.enabled")
    .doc(
      "Whether rows with a null in the key, which match nothing, are spread over all tasks of " +
        "the multi-way join instead of going to one. Done only in adaptive execution, and only " +
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

  val MULTI_JOIN_ORDER = buildConf("spark.skewext.multiJoin.order")
    .doc("In which order the multi-way join brings keys out. 'auto': in their natural order where " +
      "all inputs come sorted by the key (bucketed and sorted tables), and then without keeping " +
      "rows in memory; else in no order. 'natural': in their natural order, with a sort of each " +
      "input that is not sorted. 'none': in no order.")
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

  val SHUFFLE_BULK_ROWS = buildConf("spark.skewext.shuffle.bulkRows.enabled")
    .doc("Whether the exchanges right below a multi-way join write and read rows by the buffer. " +
      "What they write is what Spark's own exchange writes, in less time for each row. Only with " +
      "Spark's own shuffle manager, and without plugins (spark.plugins).")
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

  /** All entries, in the order of the documentation. */
  val entries = Seq(
    ENABLED,
    MULTI_JOIN_SPREAD_NULL_KEYS,
    MULTI_JOIN_BROADCAST,
    MULTI_JOIN_ORDER,
    MULTI_JOIN_GROUPING,
    MULTI_JOIN_MAX_ROWS_IN_MEMORY,
    MULTI_JOIN_GROUP_ROWS_IN_MEMORY,
    SHUFFLE_BULK_ROWS,
    MULTI_JOIN_HASH_BITS)

  def enabled(conf: SQLConf): Boolean = conf.getConf(ENABLED)
}
