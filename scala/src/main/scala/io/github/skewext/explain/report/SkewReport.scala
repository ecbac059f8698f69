package io.github.skewext.explain.report

import io.github.skewext.explain.Json
import io.github.skewext.platform.{LoadedExtension, SkewConf}
import io.github.skewext.profile.{KeyPass, KeyProfile, ReportedKey}
import io.github.skewext.skew.plan.{SkewPlanner, SkewSettings}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation
import org.apache.spark.sql.catalyst.types.DataTypeUtils.toAttributes
import org.apache.spark.sql.catalyst.util.ArrayData
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.skewext.SqlInternals
import org.apache.spark.sql.types._
import org.apache.spark.sql.{DataFrame, SparkSession}
import org.apache.spark.unsafe.types.UTF8String

/**
 * The skew of a key, in one DataFrame or in a join of two.
 *
 * @param passes the profile of each input, and the size of its rows.
 */
final class SkewReport private (
    session: SparkSession,
    keys: Seq[Attribute],
    numPartitions: Int,
    passes: Seq[SkewReport.Seen],
    hot: Seq[SkewReport.HotKey],
    settings: SkewSettings) {

  /**
   * The first row has the figures as JSON. Each other row has a key with many rows in at least one
   * input, or with one that is most of a partition, in its own types, its partition, and for each input a lower and an upper bound of the
   * key's rows.
   */
  def rows: Seq[InternalRow] = {
    val all = InternalRow(null, null, null, null, UTF8String.fromString(figures))
    all +: hot.map { key =>
      val (least, most) = key.bounds.unzip
      InternalRow(
        key.key.row(keys.size),
        key.partition.toLong,
        ArrayData.toArrayData(least.toArray),
        ArrayData.toArrayData(most.toArray),
        null)
    }
  }

  /** The rows as a DataFrame. Reading it reads no input. */
  def frame: DataFrame = SqlInternals.withActive(session) {
    SqlInternals.dataFrame(session, LocalRelation(toAttributes(SkewReport.schema(keys)), rows))
  }

  /** All figures but those of keys, as JSON. */
  def figures: String = {
    val inputs = passes.map { seen =>
      val profile = seen.profile
      Json.fields(
        "rows" -> profile.numRows,
        "untracked_rows" -> profile.untracked,
        "max_error" -> profile.keys.getMaximumError,
        "distinct_low" -> math.round(profile.distinct.getLowerBound(2)),
        "distinct" -> math.round(profile.distinct.getEstimate),
        "distinct_high" -> math.round(profile.distinct.getUpperBound(2)),
        "row_bytes" -> seen.rowBytes,
        "partition_rows" -> profile.rows,
        "partition_null_rows" -> profile.nullRows,
        "partition_bytes" -> seen.bytes,
        "largest_row" -> seen.decisiveRow.map { row =>
          Json.fields(
            "bytes" -> row.bytes,
            "partition" -> row.partition,
            "key" -> row.key.map(key => hot.indexWhere(_.key == key)))
        },
        "split_above_bytes" -> settings.skewThreshold(seen.bytes),
        "slice_bytes" -> settings.targetBytes(seen.bytes, settings.skewThreshold(seen.bytes)))
    }
    val conf = session.sessionState.conf
    val adaptive = conf.adaptiveExecutionEnabled && conf.getConf(SQLConf.SKEW_JOIN_ENABLED)
    val ours = LoadedExtension.isIn(session) && SkewConf.splits(conf)
    Json.text(
      Json.fields(
        "shuffle_partitions" -> numPartitions,
        "spark_splits" -> adaptive,
        "skewext_splits" -> ours,
        "skewed_factor" -> settings.factor,
        "broadcast_bytes" -> conf.autoBroadcastJoinThreshold,
        "inputs" -> inputs,
        "output" -> (if (passes.size == 2) Some(joined) else None),
        "output_cost" -> SkewPlanner.OutputCost))
  }

  /**
   * The estimated output of an inner join. For a hot key, it is the product of its rows. For the
   * other keys only their number is known, so the estimate assumes that each has equally many rows.
   */
  private def joined: Map[String, Any] = {
    val ofHot = new Array[Double](numPartitions)
    val hotRows = passes.map(_ => new Array[Double](numPartitions))
    hot.foreach { key =>
      ofHot(key.partition) += key.middle.product
      key.middle.zipWithIndex.foreach { case (rows, i) => hotRows(i)(key.partition) += rows }
    }
    val distinct = passes.map(p => math.max(1.0, p.profile.distinct.getEstimate - hot.size)).max
    val perPartition = math.max(1.0, distinct / numPartitions)
    val all = (0 until numPartitions).map { p =>
      val others = passes.indices.map { i =>
        math.max(0.0, passes(i).profile.rows(p) - hotRows(i)(p))
      }
      ofHot(p) + others.product / perPartition
    }
    val rowBytes = passes.map(_.rowBytes).sum
    val moved = (0 until numPartitions).map { p =>
      (passes.map(_.bytes(p)).sum + all(p) * rowBytes).toLong
    }
    Json.fields(
      "rows" -> rounded(all.sum),
      "hot_low" -> rounded(hot.map(_.bounds.map(_._1.toDouble).product).sum),
      "hot_high" -> rounded(hot.map(_.bounds.map(_._2.toDouble).product).sum),
      "partition_rows" -> all.map(rounded),
      "row_bytes" -> rowBytes,
      "split_above_bytes" -> settings.skewThreshold(moved))
  }

  /** A rounded number. Products of counts may exceed a Long. */
  private def rounded(number: Double): BigInt =
    BigDecimal(number).setScale(0, BigDecimal.RoundingMode.HALF_UP).toBigInt
}

object SkewReport {

  /** The columns of [[SkewReport.rows]]. */
  private[skewext] def schema(keys: Seq[Attribute]): StructType = {
    val ofInputs = ArrayType(LongType, containsNull = false)
    new StructType()
      .add("key", StructType(keys.map(a => StructField(a.name, a.dataType))))
      .add("partition", LongType)
      .add("least_rows", ofInputs)
      .add("most_rows", ofInputs)
      .add("figures", StringType)
  }

  private[skewext] case class Seen(profile: KeyProfile, typicalRowBytes: Long) {
    val rowBytes: Long =
      if (profile.bytes.isEmpty || profile.numRows == 0) typicalRowBytes
      else profile.bytes.sum / profile.numRows

    val bytes: IndexedSeq[Long] = profile.rows.indices.map { p =>
      if (profile.bytes.isEmpty) (profile.rows(p) + profile.nullRows(p)) * rowBytes
      else profile.bytes(p)
    }

    /** A row that is most of the largest partition: no split of it helps. */
    def decisiveRow: Option[KeyProfile.LargestRow] =
      profile.largest.filter(row => bytes(row.partition) == bytes.max && 2 * row.bytes > bytes.max)
  }

  /** A key with many rows or a decisive one in some input, with bounds for each input. */
  private[skewext] case class HotKey(key: ReportedKey, partition: Int, bounds: Seq[(Long, Long)]) {
    def middle: Seq[Double] = bounds.map { case (low, high) => (low + high) / 2.0 }
  }

  /**
   * Computes the profiles of one or two DataFrames. In the second one, the rows of keys that are
   * hot in the first one are counted exactly.
   *
   * @param partitions the number of shuffle partitions; Spark's setting by default.
   * @param minShare the share of an input's rows above which all keys are found.
   * @param withBytes whether to measure the size of rows, which reads all columns.
   */
  def of(
      session: SparkSession,
      inputs: Seq[DataFrame],
      names: Seq[Seq[String]],
      partitions: Option[Int],
      minShare: Double,
      withBytes: Boolean): SkewReport = SqlInternals.withActive(session) {
    val conf = session.sessionState.conf
    val numPartitions = partitions.getOrElse(conf.numShufflePartitions)
    val size = KeyProfile.sketchSize(minShare)
    val (keys, passes) = KeyPass.over(session, inputs, names)
    val first = passes.head.run(numPartitions, size, withBytes, Nil)
    val hotInFirst = frequent(first, minShare)
    val profiles = first +: passes.tail.map(_.run(numPartitions, size, withBytes, hotInFirst))
    val counted = hotInFirst.zipWithIndex.toMap
    val seen =
      profiles.zip(passes).map { case (profile, pass) => Seen(profile, pass.typicalRowBytes) }
    val all = (hotInFirst ++ profiles.tail.flatMap(frequent(_, minShare)) ++
      seen.flatMap(_.decisiveRow).flatMap(_.key)).distinct
    val hot = all.map { key =>
      val bounds = profiles.head.bounds(key) +: profiles.tail.map { profile =>
        counted
          .get(key)
          .map(i => (profile.asked(i), profile.asked(i)))
          .getOrElse(profile.bounds(key))
      }
      HotKey(key, key.partition(numPartitions), bounds)
    }
    new SkewReport(session, keys, numPartitions, seen, hot, SkewSettings.of(conf))
  }

  /** The keys with at least this share of the rows that have a key. */
  private def frequent(profile: KeyProfile, minShare: Double): Seq[ReportedKey] = {
    val least = math.max(1L, math.ceil(minShare * profile.rows.sum).toLong)
    profile.frequent(least - 1)
  }
}
