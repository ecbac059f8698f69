package io.github.skewext.technique

import io.github.skewext.facts.{ComparedByBytes, KeepsStableRows, StableRows}
import io.github.skewext.rows.UnsafeInputs

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLMetrics}
import org.apache.spark.sql.execution.{SparkPlan, UnaryExecNode}
import org.apache.spark.sql.skewext.SqlInternals

/**
 * Adds to each row its cells in a salted join, see [[SaltKeys]]. It hides the partitioning of its
 * input. If all rows of a key were in one partition, that would satisfy a join on the key and the
 * cell, and the rows of a hot key would stay together.
 */
case class SaltKeysExec(
    keys: Seq[Expression],
    added: Seq[Attribute],
    salted: SaltedSide,
    child: SparkPlan)
    extends UnaryExecNode
    with KeepsStableRows {

  override lazy val metrics: Map[String, SQLMetric] = Map(
    "numOutputRows" -> SQLMetrics.createMetric(sparkContext, "number of output rows"),
    "numCopies" -> SQLMetrics.createMetric(sparkContext, "number of copies of rows"),
    "numMarkers" -> SQLMetrics.createMetric(sparkContext, "number of markers"))

  override def output: Seq[Attribute] = child.output ++ added

  override def producedAttributes: AttributeSet = AttributeSet(added)

  override protected def doExecute(): RDD[InternalRow] = {
    val (keysOfRow, input) = (keys.map(SqlInternals.normalizeFloats), child.output)
    val cellsOf = new SaltedCells(
      salted,
      conf.numShufflePartitions,
      stable = StableRows.areIn(child),
      alike = input.forall(a => ComparedByBytes(a) && keys.exists(_.semanticEquals(a))))
    val (types, outputTypes) = (child.schema.map(_.dataType), schema.map(_.dataType).toArray)
    val Seq(out, copies, markers) = Seq("numOutputRows", "numCopies", "numMarkers").map(longMetric)
    child.execute().mapPartitionsWithIndex { (task, rows) =>
      val keyOf = UnsafeProjection.create(keysOfRow, input)
      val asUnsafe = new UnsafeInputs(Seq(types))
      val cells = cellsOf.ofTask(task)
      val result = UnsafeProjection.create(outputTypes)
      val joined = new JoinedRow
      rows.flatMap { row =>
        cells(keyOf(row), asUnsafe(0, row)).iterator.map { case (cell, kind) =>
          out += 1
          if (kind == SaltKeys.Further) copies += 1 else if (kind == SaltKeys.Marker) markers += 1
          result(joined(row, InternalRow(cell, kind)))
        }
      }
    }
  }

  override protected def withNewChildInternal(newChild: SparkPlan): SaltKeysExec =
    copy(child = newChild)
}
