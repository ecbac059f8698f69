package io.github.skewext.join

import io.github.skewext.join.exec.AlignPartitionsExec
import io.github.skewext.platform.LogicalLinks

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.datasources.v2.{BatchScanExec, DataSourceV2ScanRelation}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.skewext.{PartitionValues, SparkShims}

/**
 * Recognizes inputs with the same partitioning in their storage, by transforms of the join's keys:
 * `bucket(16, k)`, `days(k)`, `k`. The settings of Spark's storage-partitioned joins of two tables
 * apply to the join of N:
 *
 *  - `spark.sql.sources.v2.bucketing.enabled`;
 *  - `...pushPartValues.enabled`, if the tables do not all have the same values, such as days;
 *  - `spark.sql.requireAllClusterKeysForCoPartition`, which must be off if they are partitioned by
 *    some of the keys only.
 *
 * `...partiallyClusteredDistribution.enabled` has no effect: all files of a value are one partition
 * of an input.
 */
private[skewext] object StoragePartitions {

  /**
   * Whether each input may be partitioned in this way. A scan reports its partitions when it is
   * planned.
   */
  def areIn(inputs: Seq[LogicalPlan], conf: SQLConf): Seq[Boolean] = {
    val mayBe = conf.v2BucketingEnabled
    inputs.map(mayBe && _.exists {
      case scan: DataSourceV2ScanRelation => scan.keyGroupedPartitioning.isDefined
      case _ => false
    })
  }

  /** The inputs with their partitions in a common order, if they have the same partitioning. */
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
        inputs.zip(keys).map { case (input, key) =>
          LogicalLinks.wrapping(input)(
            AlignPartitionsExec(values.sorted, positions, positions.map(key), first.shown, input))
        }
      }
    } else {
      None
    }
  }

  /** The position of the key for each partition column, equal in all inputs. */
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

  /** The values of all inputs; None if every input must have all of them and one does not. */
  private def commonValues(
      partitions: Seq[PartitionValues],
      conf: SQLConf): Option[PartitionValues] = {
    val all = partitions.head.copy(values = partitions.flatMap(_.values).distinct)
    if (conf.v2BucketingPushPartValuesEnabled ||
      partitions.forall(_.values.distinct.size == all.values.size)) {
      Some(all)
    } else {
      None
    }
  }

  /**
   * The partitioning of one input.
   *
   * @param positions for each partition column, the positions of the keys that are this column;
   *                  several if it is compared with several columns of another input.
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

  /** Matches a transform of one column, and returns the transform and the column. */
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

    /** Whether the plan has the partitions of one scan, and needs no exchange below it. */
    private def isOfScan(plan: SparkPlan): Boolean = plan match {
      case _: BatchScanExec => true
      case node: UnaryExecNode =>
        isOfScan(node.child) &&
        node.requiredChildDistribution.forall(node.child.outputPartitioning.satisfies(_))
      case _ => false
    }

    /**
     * The scan's name for a column. Partitionings above a projection use the scan's name on Spark
     * 3.5, and the projection's name on 4.1.
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
