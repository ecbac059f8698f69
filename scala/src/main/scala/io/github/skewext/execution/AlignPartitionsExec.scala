package io.github.skewext.execution

import io.github.skewext.plan.KeepsStableRows

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.physical._
import org.apache.spark.sql.catalyst.util.InternalRowComparableWrapper
import org.apache.spark.sql.execution.{SparkPlan, UnaryExecNode}
import org.apache.spark.sql.skewext.{AlignedRDD, PartitionValues}
import org.apache.spark.sql.types.{DataType, IntegerType}

/**
 * The partitions that a table has in its storage, in the order of values that all inputs of a join have
 * in common; an empty one where the table has none of a value. So the inputs are partitioned alike
 * without a shuffle, in a storage-partitioned join.
 *
 * Spark itself pushes the common values into scans. It knows joins of two inputs only, and would push
 * other ones through this join; here scans stay as they are.
 *
 * @param values of which each is one partition
 * @param positions which of the join's keys the partitions are made by
 * @param by the same as it is shown
 */
case class AlignPartitionsExec(
    // They cannot be written; plans above go to the tasks with all that is below them.
    @transient values: Seq[InternalRowComparableWrapper],
    positions: Seq[Int],
    by: String,
    child: SparkPlan)
    extends UnaryExecNode
    with KeepsStableRows {

  override def nodeName: String = "AlignPartitions"

  override def output: Seq[Attribute] = child.output

  override def passesColumns: Boolean = true

  override def outputPartitioning: Partitioning = UnknownPartitioning(values.size)

  override protected def doExecute(): RDD[InternalRow] = {
    val present = PartitionValues.of(child).map(_.values).getOrElse(Nil)
    val rows = child.execute()
    // What a filter has left out while the query ran is an empty partition to the scan. Anything else
    // would be rows that are not joined.
    if (present.size != rows.getNumPartitions || !present.forall(values.toSet)) {
      throw new IllegalStateException(
        s"The partitions of ${child.simpleStringWithNodeId()} are not those that the join was " +
          "planned for. spark.sql.sources.v2.bucketing.enabled=false shuffles its rows.")
    }
    val partitionOf = present.zipWithIndex.toMap
    new AlignedRDD(rows, values.map(partitionOf.get).toArray)
  }

  override def simpleString(maxFields: Int): String =
    s"$nodeName $by, ${values.size} partitions"

  override protected def withNewChildInternal(newChild: SparkPlan): AlignPartitionsExec =
    copy(child = newChild)
}

/**
 * Rows with equal values of the columns are in one partition; in which one is known to nobody, so that
 * it is like no other partitioning.
 */
case class KeysTogether(columns: Seq[Expression], numPartitions: Int)
    extends Expression
    with Partitioning
    with Unevaluable {

  override def children: Seq[Expression] = columns
  override def nullable: Boolean = false
  override def dataType: DataType = IntegerType

  override def satisfies0(required: Distribution): Boolean =
    super.satisfies0(required) || (required match {
      case c: ClusteredDistribution if c.requireAllClusterKeys =>
        c.areAllClusterKeysMatched(columns)
      case c: ClusteredDistribution => columns.forall(e => c.clustering.exists(_.semanticEquals(e)))
      case _ => false
    })

  /** That of ranges, which is compatible with none. */
  override def createShuffleSpec(distribution: ClusteredDistribution): ShuffleSpec =
    RangeShuffleSpec(numPartitions, distribution)

  override protected def withNewChildrenInternal(
      newChildren: IndexedSeq[Expression]): KeysTogether = copy(columns = newChildren)
}
