package io.github.skewext.join.exec

import scala.util.Try

import io.github.skewext.facts.{MadeOf, PartitionwiseOperator}
import io.github.skewext.join.InputRole.Required
import io.github.skewext.join.{InputRole, WholeReason}

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.physical._
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.skewext.MultiZipRDD

/**
 * Joins N inputs that are partitioned by their keys in one pass.
 *
 * The exchanges are the direct children, and the operator groups rows by key itself. A `SortExec`
 * for each input would copy and hash every row twice, and would read rows in an order that misses
 * the processor's caches. Inputs that are already sorted by their keys are merged.
 *
 * @param spreadBy if not empty, for each input an expression by which its rows are partitioned
 *                 besides the key, so that rows with a null key may be in any partition, see
 *                 [[SpreadNullKeys]].
 * @param storagePartitioned whether the inputs are [[AlignPartitionsExec]] and need no exchange.
 */
case class MultiFullJoinExec(
    children: Seq[SparkPlan],
    keys: Seq[Seq[Expression]],
    keyColumns: Seq[Seq[Attribute]],
    keyOutput: Seq[Attribute],
    roles: Seq[InputRole],
    indicator: Option[Attribute],
    spreadBy: Seq[Expression] = Nil,
    storagePartitioned: Boolean = false)
    extends MultiJoinExec
    with PartitionwiseOperator {

  override def spreadNullKeys: Boolean = spreadBy.nonEmpty

  override protected def mergesSorted: Boolean = true

  override def madeOf: Seq[MadeOf.Part] =
    children.zip(roles).map { case (child, role) => MadeOf.Part(child, linear = role == Required) }

  override def nodeName: String = MultiFullJoinExec.Name

  override def requiredChildDistribution: Seq[Distribution] =
    if (storagePartitioned) {
      // One that the first input has. Spark plans no query adaptively in which nothing is required,
      // and only adaptive queries are split.
      children.zipWithIndex.map {
        case (aligned: AlignPartitionsExec, 0) => ClusteredDistribution(aligned.columns)
        case _ => UnspecifiedDistribution
      }
    } else {
      keys.zipWithIndex.map { case (key, i) =>
        // Requires the whole key. Spark compares the partitioning of each child with that of one
        // child. With parts of the key, two children may agree with a third one but not with each
        // other.
        ClusteredDistribution(key ++ spreadBy.lift(i), requireAllClusterKeys = true)
      }
    }

  override def outputOrdering: Seq[SortOrder] =
    if (comesOrdered && showsComparedKeys) keyOutput.map(SortOrder(_, Ascending)) else Nil

  /** False if a key is computed for the comparison, because the output does not contain it. */
  private def showsComparedKeys: Boolean =
    keys.flatten.zip(keyColumns.flatten).forall { case (k, c) => k.semanticEquals(c) }

  /**
   * All inputs are partitioned alike and every key is returned in its own partition. So the
   * partitioning of an input's keys also holds for the output's keys, if these are the compared
   * ones. An input with one column as two keys is skipped, because its partitioning by that column
   * would be translated to either key.
   */
  override def outputPartitioning: Partitioning = {
    val ofInputs = if (storagePartitioned) storagePartitions else ofShuffledInputs
    ofInputs
      .filter(_ => showsComparedKeys)
      .getOrElse(UnknownPartitioning(children.head.outputPartitioning.numPartitions))
  }

  private def ofShuffledInputs: Option[Partitioning] =
    children.indices.view
      .filter(i => keys(i).map(_.canonicalized).distinct.size == keys(i).size)
      .flatMap(i => overKeyOutput(i, children(i).outputPartitioning))
      .headOption

  private def storagePartitions: Option[Partitioning] = children.collectFirst {
    case aligned: AlignPartitionsExec =>
      KeysTogether(aligned.positions.map(keyOutput), aligned.values.size)
  }

  private def overKeyOutput(input: Int, partitioning: Partitioning): Option[Partitioning] = {
    def translate(expressions: Seq[Expression]): Option[Seq[Expression]] = {
      val translated = expressions.map { e =>
        keyOutput.lift(keys(input).indexWhere(_.semanticEquals(e)))
      }
      if (translated.forall(_.isDefined)) Some(translated.flatten) else None
    }
    partitioning match {
      case h: HashPartitioning => translate(h.expressions).map(e => h.copy(expressions = e))
      case SinglePartition => Some(SinglePartition)
      case PartitioningCollection(all) => all.flatMap(overKeyOutput(input, _)).headOption
      case other if CoalescedPartitions.exist => CoalescedPartitions.translated(other, translate)
      case _ => None
    }
  }

  override protected def joined(makesRows: Boolean): RDD[InternalRow] =
    new MultiZipRDD[InternalRow](
      sparkContext,
      children.map(_.execute()),
      children.map(MultiZipRDD.isRead),
      task(makesRows))

  override def simpleString(maxFields: Int): String = super.simpleString(maxFields) +
    WholeReason.suffix(this)

  override protected def withNewChildrenInternal(
      newChildren: IndexedSeq[SparkPlan]): MultiFullJoinExec = copy(children = newChildren)
}

object MultiFullJoinExec {

  /** The name in plans. */
  val Name = "MultiFullJoin"
}

/**
 * The partitioning of a shuffle whose partitions Spark has coalesced. Spark 3.5.0 lacks the class.
 * No operator may mention it: Python reads all methods of an operator, and would fail there.
 */
private[exec] object CoalescedPartitions {

  val exist: Boolean = Try(
    Class.forName(
      "org.apache.spark.sql.catalyst.plans.physical.CoalescedHashPartitioning")).isSuccess

  /** The partitioning by other expressions; None if it is of another kind. */
  def translated(
      partitioning: Partitioning,
      translate: Seq[Expression] => Option[Seq[Expression]]): Option[Partitioning] =
    partitioning match {
      case c: CoalescedHashPartitioning =>
        translate(c.from.expressions).map(e => c.copy(from = c.from.copy(expressions = e)))
      case _ => None
    }
}
