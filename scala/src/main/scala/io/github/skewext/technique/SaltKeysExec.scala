package io.github.skewext.technique

import io.github.skewext.facts.{ComparedByBytes, KeepsStableRows, StableRows}

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.optimizer.BuildSide
import org.apache.spark.sql.catalyst.plans.physical.{Partitioning, UnknownPartitioning}
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLMetrics}
import org.apache.spark.sql.execution.{SparkPlan, UnaryExecNode}
import org.apache.spark.sql.skewext.SqlInternals

/** Adds to each row its cells in a salted join, see [[SaltKeys]]. */
case class SaltKeysExec(
    keys: Seq[Expression],
    side: BuildSide,
    hot: Seq[SaltedKey],
    hotRows: HotRows,
    nullCells: Int,
    cell: Attribute,
    kind: Option[Attribute],
    child: SparkPlan)
    extends UnaryExecNode
    with KeepsStableRows {

  override lazy val metrics: Map[String, SQLMetric] = Map(
    "numOutputRows" -> SQLMetrics.createMetric(sparkContext, "number of output rows"),
    "numSaltedRows" -> SQLMetrics.createMetric(sparkContext, "number of salted rows"),
    "numCopies" -> SQLMetrics.createMetric(sparkContext, "number of copies of rows"),
    "numMarkers" -> SQLMetrics.createMetric(sparkContext, "number of markers"))

  override def output: Seq[Attribute] = SaltKeys.output(child.output, keys, hotRows, cell, kind)

  override def producedAttributes: AttributeSet = AttributeSet(cell +: kind.toSeq)

  /**
   * Not the partitioning of the input. If the input has all rows of a key in one partition, that
   * would satisfy a join on the key and the cell, and the rows of a hot key would stay together.
   */
  override def outputPartitioning: Partitioning =
    UnknownPartitioning(child.outputPartitioning.numPartitions)

  override def outputOrdering: Seq[SortOrder] = Nil

  override protected def stringArgs: Iterator[Any] = SaltKeys.stringArgs(keys, side, hot, hotRows)

  override protected def doExecute(): RDD[InternalRow] = {
    val boundKeys = keys.map(SaltKeysExec.bound(_, child.output))
    val ofKeys = SaltKeys.keyColumns(keys)
    val exact = AttributeSet(keys.collect {
      case a: Attribute if ComparedByBytes(a) => a
    })
    val salting = Salting(
      boundKeys.zipWithIndex.map { case (key, i) => BoundReference(i, key.dataType, key.nullable) },
      stable = StableRows.areIn(child),
      keysAlone = child.output.forall(exact.contains),
      side,
      hot,
      hotRows,
      nullCells)
    val (schema, isOfKey, withKind) =
      (child.schema, child.output.map(ofKeys.contains), kind.isDefined)
    val outputRows = longMetric("numOutputRows")
    val counters =
      SaltingMetrics(longMetric("numSaltedRows"), longMetric("numCopies"), longMetric("numMarkers"))
    child.execute().mapPartitionsWithIndex { (task, rows) =>
      val cells = new SaltedCells(salting, task, counters)
      new SaltedRows(boundKeys, schema, isOfKey, withKind, cells, outputRows, rows).toScala
    }
  }

  override protected def withNewChildInternal(newChild: SparkPlan): SaltKeysExec =
    copy(child = newChild)
}

object SaltKeysExec {

  /** Binds a key in the form in which equal values have the same bytes. */
  private def bound(key: Expression, input: Seq[Attribute]): Expression =
    BindReferences.bindReference(SqlInternals.normalizeFloats(key), input)

  /** The key of a row that has these literals in its key columns. */
  def keyOf(values: Seq[Expression]): UnsafeRow =
    UnsafeProjection.create(values.map(bound(_, Nil))).apply(InternalRow.empty).copy()
}
