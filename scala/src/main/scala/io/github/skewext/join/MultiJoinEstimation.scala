package io.github.skewext.join

import io.github.skewext.join.InputRole.{Optional, Required}

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeMap}
import org.apache.spark.sql.catalyst.plans.logical.statsEstimation.EstimationUtils
import org.apache.spark.sql.catalyst.plans.logical.{ColumnStat, LogicalPlan, Statistics}
import org.apache.spark.sql.types._

/**
 * Estimates the size and the statistics of a [[MultiFullJoin]].
 *
 * The size is the sum of the inputs if at most one of them may have duplicate keys. Inputs with
 * duplicate keys are multiplied, as in Spark's estimate for two inputs. A smaller estimate could
 * make a join above broadcast a large result. With column statistics (`spark.sql.cbo.enabled`) the
 * product is divided by the number of keys.
 */
private[skewext] object MultiJoinEstimation {

  def apply(join: MultiFullJoin): Statistics = {
    val shown = join.children.indices.filter(join.roles(_).isShown)
    val inputs = shown.map(join.children(_).stats)
    val (once, repeated) = shown.partition(join.hasDistinctKeys)
    // As in Spark's estimates, an input that turned out to be empty does not make the result small.
    def sizes(of: Seq[Int]) = of.map(join.children(_).stats.sizeInBytes).filter(_ > 0)
    val size = (sizes(once).sum + (if (repeated.isEmpty) 0 else sizes(repeated).product)).max(1)
    val product = repeated match {
      case Seq() => Some(BigInt(0))
      case Seq(one) =>
        // It may have more rows than the required inputs, or other keys.
        val required = once.filter(join.roles(_) == Required)
        productOf(join, required :+ one).orElse(join.children(one).stats.rowCount)
      case several => productOf(join, several)
    }
    if (inputs.nonEmpty && inputs.forall(_.rowCount.isDefined) && product.isDefined) {
      val sum =
        rowCount(join, shown.map(i => join.roles(i) -> join.children(i).stats.rowCount.get))
      val most = join.maxRows.map(BigInt(_))
      val rows = most.fold(sum.max(product.get))(_.min(sum.max(product.get)))
      if (join.conf.cboEnabled) {
        val columns = columnStats(join, rows, sum)
        Statistics(
          sizeInBytes = EstimationUtils.getOutputSize(join.output, rows, columns),
          rowCount = Some(rows),
          attributeStats = columns)
      } else {
        Statistics(sizeInBytes = size, rowCount = Some(rows))
      }
    } else {
      Statistics(sizeInBytes = size)
    }
  }

  /** The number of rows that match in all inputs; None if the number of keys is unknown. */
  private def productOf(join: MultiFullJoin, inputs: Seq[Int]): Option[BigInt] = {
    val keys = inputs.map { i =>
      val stats = join.children(i).stats
      val ofColumns = join.keyColumns(i).map(stats.attributeStats.get(_).flatMap(_.distinctCount))
      for {
        rows <- stats.rowCount
        counts <- if (ofColumns.forall(_.isDefined)) Some(ofColumns.flatten) else None
      } yield rows -> counts.product.min(rows)
    }
    if (keys.forall(_.isDefined)) {
      val (rows, distinct) = keys.flatten.unzip
      Some(rows.product / distinct.max.max(1).pow(inputs.size - 1))
    } else {
      None
    }
  }

  private def rowCount(join: MultiFullJoin, inputs: Seq[(InputRole, BigInt)]): BigInt = {
    val required = inputs.collect { case (Required, rows) => rows }
    val estimate = if (required.isEmpty) inputs.map(_._2).sum else required.max
    join.maxRows.map(BigInt(_).min(estimate)).getOrElse(estimate)
  }

  /** Statistics of the columns. In rows without an optional input, its columns are null. */
  private def columnStats(
      join: MultiFullJoin,
      rows: BigInt,
      sum: BigInt): AttributeMap[ColumnStat] = {
    val values = for {
      i <- join.children.indices if join.roles(i).isShown
      input = join.children(i).stats
      column <- join.valueColumns(i)
      stat <- input.attributeStats.get(column)
    } yield {
      val absent = if (join.roles(i) == Optional) (sum - input.rowCount.get).max(0) else BigInt(0)
      column -> stat.copy(
        distinctCount = stat.distinctCount.map(_.min(rows)),
        nullCount = stat.nullCount.map(n => (n + absent).min(rows)),
        // Omitted if there are more rows, because a histogram contains the number of rows of each
        // bin.
        histogram = if (absent > 0) None else stat.histogram)
    }
    AttributeMap(values ++ keyStats(join, rows))
  }

  /** A required input bounds the number of key values, because every row has its key. */
  private def keyStats(join: MultiFullJoin, rows: BigInt): Seq[(Attribute, ColumnStat)] =
    for {
      j <- join.exactKeys
      of = join.children.indices.filter(join.roles(_).isShown).map { i =>
        join.roles(i) -> join.children(i).stats.attributeStats.get(join.keyColumns(i)(j))
      }
      if of.forall(_._2.exists(_.distinctCount.isDefined))
      all = of.map(_._2.get)
      required = of.collect { case (Required, stat) => stat.get }
      counted = if (required.isEmpty) all else Seq(required.minBy(keysOf))
      (min, max) <- range(counted, join.keyOutput(j).dataType)
    } yield {
      val nulls = if (required.isEmpty) all.flatMap(_.nullCount).sum else BigInt(0)
      join.keyOutput(j) -> ColumnStat(
        distinctCount = Some(counted.map(keysOf).sum.min(rows)),
        min = min,
        max = max,
        nullCount = Some(nulls.min(rows)),
        avgLen = all.flatMap(_.avgLen).reduceOption(_ max _),
        maxLen = all.flatMap(_.maxLen).reduceOption(_ max _))
    }

  private def keysOf(stat: ColumnStat): BigInt = stat.distinctCount.get

  /**
   * The least and the greatest key of the inputs, or None if they are unknown. To Spark, a column with
   * statistics and without these has only nulls, unless its values are text or binary.
   */
  private def range(of: Seq[ColumnStat], keyType: DataType): Option[(Option[Any], Option[Any])] = {
    val filled = of.filter(keysOf(_) > 0)
    val (least, greatest) = (filled.flatMap(_.min), filled.flatMap(_.max))
    keyType match {
      case _: StringType | BinaryType => Some((None, None))
      case _: NumericType | DateType | TimestampType | BooleanType
          if least.size == filled.size && greatest.size == filled.size =>
        val order = Ordering.by((key: Any) => Double.box(EstimationUtils.toDouble(key, keyType)))
        Some((least.reduceOption(order.min(_, _)), greatest.reduceOption(order.max(_, _))))
      case _ => None
    }
  }
}

/** The number of rows of a plan: that of its statistics, or its size by the width of a row. */
private[skewext] object EstimatedRows {

  def of(plan: LogicalPlan): BigInt = plan.stats.rowCount.getOrElse(
    plan.stats.sizeInBytes / EstimationUtils.getSizePerRow(plan.output).max(1))
}
