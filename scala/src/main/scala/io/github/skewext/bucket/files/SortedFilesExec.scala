package io.github.skewext.bucket.files

import io.github.skewext.facts.{KeepsStableRows, MadeOf, PartitionwiseOperator}
import io.github.skewext.rows.KeyOrder

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, BindReferences, SortOrder}
import org.apache.spark.sql.catalyst.plans.physical.Partitioning
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLMetrics}
import org.apache.spark.sql.execution.{FileSourceScanExec, SortExec, SparkPlan, UnaryExecNode}
import org.apache.spark.sql.skewext.SqlInternals

/**
 * The rows of a scan whose tasks read one sorted file each.
 *
 * The order is checked row by row. If a file is not sorted as its table declares, the task fails,
 * because rows have been returned too early. Its next attempt sorts all rows.
 *
 * @param order the order of each file and of the output, ascending and nulls first
 */
case class SortedFilesExec(order: Seq[SortOrder], child: SparkPlan)
    extends UnaryExecNode
    with KeepsStableRows
    with PartitionwiseOperator {

  override def output: Seq[Attribute] = child.output

  override def madeOf: Seq[MadeOf.Part] = Seq(MadeOf.Part(child, linear = true))

  override def outputPartitioning: Partitioning = child.outputPartitioning

  override def outputOrdering: Seq[SortOrder] = order

  override lazy val metrics: Map[String, SQLMetric] = Map(
    "numOutputRows" -> SQLMetrics.createMetric(sparkContext, "number of output rows"))

  override protected def doExecute(): RDD[InternalRow] = {
    val files = child.execute()
    if (SortedFilesRDD.canRead(files)) {
      new SortedFilesRDD(
        files,
        child.output.map(_.dataType).toArray,
        KeyOrder(Seq(order.map(o => BindReferences.bindReference(o.child, child.output)))),
        description,
        longMetric("numOutputRows"))
    } else {
      // A plugin reads the files instead of Spark. The thread may have no session for a new node.
      SqlInternals.withActive(session)(SortExec(order, global = false, child).execute())
    }
  }

  private def description: String = {
    val table = child.collectFirst { case scan: FileSourceScanExec => scan.tableIdentifier }.flatten
    s"the table ${table.fold("")(_.unquotedString)} sorts its buckets by " +
      order.map(_.child.sql).mkString(", ")
  }

  override def simpleString(maxFields: Int): String =
    s"$nodeName ${order.map(_.simpleString(maxFields)).mkString("[", ", ", "]")}"

  override protected def withNewChildInternal(newChild: SparkPlan): SortedFilesExec =
    copy(child = newChild)
}
