package io.github.skewext.report

import io.github.skewext.internal.{LoadedExtension, SkewConf}
import io.github.skewext.plan.SkewSettings
import io.github.skewext.sketch.{KeyPass, KeyProfile, ReportedKey}
import io.github.skewext.skew.SkewPlanner

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.skewext.SqlInternals
import org.apache.spark.sql.types.LongType
import org.apache.spark.sql.{DataFrame, SparkSession}

/**
 * Where the skew of a key is, in one DataFrame or in a join of two.
 *
 * @param passes what was seen of each, and how large a row of it is
 */
final class SkewReport private (
    session: SparkSession,
    keys: Seq[Attribute],
    numPartitions: Int,
    passes: Seq[SkewReport.Seen],
    hot: Seq[SkewReport.HotKey],
    settings: SkewSettings) {

  /**
   * The keys that have many rows somewhere, in their own types. After the columns of the key come the
   * partition and, for each input, the least and the most rows that the key can have there. Running
   * it reads nothing.
   */
  def hotKeys: DataFrame = SqlInternals.withActive(session) {
    val counts = "partition" +: passes.indices.flatMap(i => Seq(s"low$i", s"high$i"))
    val output = keys ++ counts.map(AttributeReference(_, LongType)())
    val whole = UnsafeProjection.create(output.map(_.dataType).toArray)
    val rows = hot.map { key =>
      val numbers = key.partition.toLong +: key.bounds.flatMap { case (low, high) =>
        Seq(low, high)
      }
      whole(new JoinedRow(key.key.row(keys.size), InternalRow.fromSeq(numbers))).copy()
    }
    SqlInternals.dataFrame(session, LocalRelation(output, rows))
  }

  /** All other figures, as JSON. */
  def figures: String = {
    val inputs = passes.map { seen =>
      val profile = seen.profile
      Json.fields(
        "rows" -> profile.numRows.toString,
        "untracked_rows" -> profile.untracked.toString,
        "max_error" -> profile.keys.getMaximumError.toString,
        "distinct_low" -> math.round(profile.distinct.getLowerBound(2)).toString,
        "distinct" -> math.round(profile.distinct.getEstimate).toString,
        "distinct_high" -> math.round(profile.distinct.getUpperBound(2)).toString,
        "row_bytes" -> seen.rowBytes.toString,
        "partition_rows" -> Json.numbers(profile.rows.toSeq),
        "partition_null_rows" -> Json.numbers(profile.nullRows.toSeq),
        "partition_bytes" -> Json.numbers(seen.bytes),
        "split_above_bytes" -> settings.skewThreshold(seen.bytes).toString,
        "slice_bytes" -> settings
          .targetBytes(seen.bytes, settings.skewThreshold(seen.bytes))
          .toString)
    }
    val output = if (passes.size == 2) Json.fields(joined: _*) else "null"
    val conf = session.sessionState.conf
    val adaptive = conf.adaptiveExecutionEnabled && conf.getConf(SQLConf.SKEW_JOIN_ENABLED)
    val ours = adaptive && LoadedExtension.isIn(session) && SkewConf.enabled(conf) &&
      conf.getConf(SkewConf.SKEW_ENABLED)
    Json.fields(
      "shuffle_partitions" -> numPartitions.toString,
      "spark_splits" -> adaptive.toString,
      "skewext_splits" -> ours.toString,
      "skewed_factor" -> settings.factor.toString,
      "broadcast_bytes" -> conf.autoBroadcastJoinThreshold.toString,
      "inputs" -> inputs.mkString("[", ",", "]"),
      "output" -> output,
      "output_cost" -> SkewPlanner.OutputCost.toString)
  }

  /**
   * What an inner join would give: of hot keys the product of their rows, and of the others, of which
   * nothing is known but how many they are, what there would be if they had equally many rows each.
   */
  private def joined: Seq[(String, String)] = {
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
    Seq(
      "rows" -> Json.rounded(all.sum),
      "hot_low" -> Json.rounded(hot.map(_.bounds.map(_._1.toDouble).product).sum),
      "hot_high" -> Json.rounded(hot.map(_.bounds.map(_._2.toDouble).product).sum),
      "partition_rows" -> all.map(Json.rounded).mkString("[", ",", "]"),
      "row_bytes" -> rowBytes.toString,
      "split_above_bytes" -> settings.skewThreshold(moved).toString)
  }
}

object SkewReport {

  private[skewext] case class Seen(profile: KeyProfile, typicalRowBytes: Long) {
    val rowBytes: Long =
      if (profile.bytes.isEmpty || profile.numRows == 0) typicalRowBytes
      else profile.bytes.sum / profile.numRows

    val bytes: IndexedSeq[Long] = profile.rows.indices.map { p =>
      if (profile.bytes.isEmpty) (profile.rows(p) + profile.nullRows(p)) * rowBytes
      else profile.bytes(p)
    }
  }

  /** A key that has many rows in some input, with bounds for each. */
  private[skewext] case class HotKey(key: ReportedKey, partition: Int, bounds: Seq[(Long, Long)]) {
    def middle: Seq[Double] = bounds.map { case (low, high) => (low + high) / 2.0 }
  }

  /**
   * Looks at `df`, and then at `other`, where the rows of the keys that are hot in `df` are counted one
   * by one.
   *
   * @param partitions into how many partitions a shuffle goes; by default as many as Spark would take
   * @param minShare keys with more than this share of an input's rows are all found
   * @param withBytes whether to measure rows, for which all columns have to be read
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
    val all = (hotInFirst ++ profiles.tail.flatMap(frequent(_, minShare))).distinct
    val hot = all.map { key =>
      val bounds = profiles.head.bounds(key) +: profiles.tail.map { profile =>
        counted
          .get(key)
          .map(i => (profile.asked(i), profile.asked(i)))
          .getOrElse(profile.bounds(key))
      }
      HotKey(key, key.partition(numPartitions), bounds)
    }
    new SkewReport(
      session,
      keys,
      numPartitions,
      profiles.zip(passes).map { case (profile, pass) => Seen(profile, pass.typicalRowBytes) },
      hot,
      SkewSettings.of(conf))
  }

  /** A key is in it if it has at least this share of the rows with a key. */
  private def frequent(profile: KeyProfile, minShare: Double): Seq[ReportedKey] = {
    val least = math.max(1L, math.ceil(minShare * profile.rows.sum).toLong)
    profile.frequent(least - 1)
  }
}

/** Numbers and booleans as JSON; there are no strings in it. */
private[skewext] object Json {
  def fields(fields: (String, String)*): String =
    fields.map { case (name, value) => s""""$name":$value""" }.mkString("{", ",", "}")

  def numbers(numbers: Seq[Long]): String = numbers.mkString("[", ",", "]")

  /** Products of counts may be larger than a Long. */
  def rounded(number: Double): String =
    BigDecimal(number).setScale(0, BigDecimal.RoundingMode.HALF_UP).bigDecimal.toPlainString
}
