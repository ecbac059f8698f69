package io.github.skewext.planner

import io.github.skewext.execution.AlignPartitionsExec
import io.github.skewext.internal.LogicalLinks

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.datasources.v2.{BatchScanExec, DataSourceV2ScanRelation}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.skewext.{PartitionValues, SparkShims}

/**
 * Inputs that are partitioned alike in their storage, by transforms of the join's keys:
 * `bucket(16, k)`, `days(k)`, `k`. By what settings Spark goes for joins of two of them, the join of N
 * goes, too:
 *
 *  - `spark.sql.sources.v2.bucketing.enabled`;
 *  - `...pushPartValues.enabled`, where tables have not all the same values, say days;
 *  - `spark.sql.requireAllClusterKeysForCoPartition`, off where they are partitioned by some of
 *    the keys only.
 *
 * `...partiallyClusteredDistribution.enabled` makes no difference: all files of a value are one
 * partition of an input.
 */
private[skewext] object StoragePartitions {

  /** Whether the rows of each input may be partitioned so, which the scans know when planned. */
  def areIn(inputs: Seq[LogicalPlan], conf: SQLConf): Seq[Boolean] = inputs.map { input =>
    conf.v2BucketingEnabled && input.exists {
      case scan: DataSourceV2ScanRelation => scan.keyGroupedPartitioning.isDefined
      case _ => false
    }
  }

  /** The inputs with their partitions in one order, if they are partitioned alike. */
  def aligned(
      inputs: Seq[SparkPlan],
      keys: Seq[Seq[Expression]],
      conf: SQLConf): Option[Seq[AlignPartitionsExec]] = {
    val found = inputs.zip(keys).map { case (input, key) => Layout.of(input, key) }
    if (found.forall(_.isDefined)) {
      val layouts = found.flatten
      val first = layouts.head
      for {
        positions <- commonPositions(layouts, keys.head.size, conf)
        values <- commonValues(layouts.map(_.partitions), conf)
      } yield {
        inputs.map { input =>
          LogicalLinks.wrapping(input)(
            AlignPartitionsExec(values.sorted, positions, first.shown, input))
        }
      }
    } else {
      None
    }
  }

  /** The key by which each of the partitions' columns is made, the same one in all inputs. */
  private def commonPositions(
      layouts: Seq[Layout],
      numKeys: Int,
      conf: SQLConf): Option[Seq[Int]] = {
    val first = layouts.head
    if (layouts.tail.forall(first.isLike)) {
      val positions = first.positions.indices.map { j =>
        layouts.map(_.positions(j)).reduce(_ intersect _)
      }
      val isAll = positions.flatten.distinct.size == numKeys
      val wantsAll = conf.getConf(SQLConf.REQUIRE_ALL_CLUSTER_KEYS_FOR_CO_PARTITION)
      if (positions.forall(_.nonEmpty) && (isAll || !wantsAll)) Some(positions.map(_.head))
      else None
    } else {
      None
    }
  }

  /** The values of all, of which each has all if it must. */
  private def commonValues(
      partitions: Seq[PartitionValues],
      conf: SQLConf): Option[PartitionValues] = {
    val all = partitions.head.copy(values = partitions.flatMap(_.values).distinct)
    if (conf.v2BucketingPushPartValuesEnabled ||
      partitions.forall(_.values.size == all.values.size)) {
      Some(all)
    } else {
      None
    }
  }

  /**
   * How one input is partitioned.
   *
   * @param positions which keys the column is that a partition's value is made of: several where one
   *                  column is compared with several of another input
   */
  private case class Layout(partitions: PartitionValues, positions: Seq[Seq[Int]]) {

    def isLike(other: Layout): Boolean =
      positions.size == other.positions.size &&
        partitions.by.zip(other.partitions.by).forall {
          case (a: TransformExpression, b: TransformExpression) =>
            a.isSameFunction(b) && a.dataType == b.dataType
          case (a: Attribute, b: Attribute) => a.dataType == b.dataType
          case _ => false
        }

    def shown: String = partitions.by
      .map {
        case OfColumn(transform, column) =>
          val arguments = transform.numBucketsOpt.map(_.toString).toSeq :+ column.name
          s"${transform.function.name}(${arguments.mkString(", ")})"
        case other => other.sql
      }
      .mkString(", ")
  }

  /** A transform of one column, and this column. */
  private object OfColumn {
    def unapply(transform: TransformExpression): Option[(TransformExpression, Attribute)] =
      transform.children match {
        case Seq(column: Attribute) => Some((transform, column))
        case _ => None
      }
  }

  private object Layout {

    def of(input: SparkPlan, keys: Seq[Expression]): Option[Layout] = if (isOfScan(input)) {
      val columns = keys.map(originOf(_, input))
      for {
        found <- PartitionValues.of(input)
        partitions = found.copy(by = found.by.map(_.transform { case a: Attribute =>
          originOf(a, input)
        }))
        positions = partitions.by.map {
          case OfColumn(_, column) => positionsOf(column, columns)
          case column: Attribute => positionsOf(column, columns)
          case _ => Nil
        }
        if positions.forall(_.nonEmpty)
        if !keys.exists(k => SparkShims.hasCollation(k.dataType))
      } yield Layout(partitions, positions)
    } else {
      None
    }

    private def positionsOf(column: Attribute, columns: Seq[Expression]): Seq[Int] =
      columns.indices.filter(i => columns(i).semanticEquals(column))

    /** The partitions of one scan, which no exchange below the input will change. */
    private def isOfScan(plan: SparkPlan): Boolean = plan match {
      case _: BatchScanExec => true
      case node: UnaryExecNode =>
        node.requiredChildDistribution.forall(node.child.outputPartitioning.satisfies(_)) &&
        isOfScan(node.child)
      case _ => false
    }

    /**
     * What the scan calls a column: on Spark 3.5 partitionings have this name above projections, too, on 4.1
     * that of the projection.
     */
    private def originOf(e: Expression, plan: SparkPlan): Expression = (e, plan) match {
      case (a: Attribute, ProjectExec(list, child)) =>
        val origin = list.collectFirst {
          case alias: Alias if alias.exprId == a.exprId => alias.child
        }
        originOf(origin.getOrElse(a), child)
      case (_, node: UnaryExecNode) => originOf(e, node.child)
      case _ => e
    }
  }
}
