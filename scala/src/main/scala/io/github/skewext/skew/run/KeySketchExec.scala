package io.github.skewext.skew.run

import io.github.skewext.facts.KeepsStableRows
import io.github.skewext.join.exec.MultiJoinExec
import io.github.skewext.shuffle.{ColumnarFilterProjectExec, ZeroWithoutNulls}
import io.github.skewext.skew.plan.{KeySketch, SketchLayout}

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.codegen.{CodeGenerator, CodegenContext, ExprCode}
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet, BindReferences, Expression, Literal, SortOrder}
import org.apache.spark.sql.catalyst.plans.physical.Partitioning
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLMetrics}
import org.apache.spark.sql.execution.{CodegenSupport, SparkPlan, UnaryExecNode}
import org.apache.spark.sql.vectorized.ColumnarBatch

/**
 * Passes rows to a shuffle and counts the keys of a sample of them, see [[KeySketch]]. Generated
 * code decrements one counter for each row. An iterator would cost more than the counting.
 *
 * @param keys the expressions by which the shuffle partitions the rows
 * @param every one row of this many is sampled
 */
case class KeySketchExec(keys: Seq[Expression], numPartitions: Int, every: Int, child: SparkPlan)
    extends UnaryExecNode
    with CodegenSupport
    with KeepsStableRows {

  override def output: Seq[Attribute] = child.output

  override def passesColumns: Boolean = true

  override def outputPartitioning: Partitioning = child.outputPartitioning

  override def outputOrdering: Seq[SortOrder] = child.outputOrdering

  override lazy val metrics: Map[String, SQLMetric] = Map(
    "numSampledRows" -> SQLMetrics.createMetric(sparkContext, "number of sampled rows"))

  /** A shuffle with sampling equals one of the same rows without it, so that Spark can reuse it. */
  override protected def doCanonicalize(): SparkPlan = child.canonicalized

  /**
   * Only keys without a null are counted, for which this expression is 0. A literal keeps the task
   * small.
   */
  private def counted(key: Expression): Expression = key match {
    case _: ZeroWithoutNulls => Literal(0L)
    case _ => BindReferences.bindReference(key, child.output)
  }

  @transient private lazy val sampling =
    new KeySampling(keys.map(counted), every, longMetric("numSampledRows"))

  /** The counts after all map tasks have ended. None if there were too many map tasks. */
  def sketch: Option[KeySketch] =
    sampling.counts.filterNot(_.isZero).map(c => KeySketch(c.layout, every, c.value))

  /** Whether nothing was sampled. Valid after the map tasks have ended. */
  def isLeftOut: Boolean = sampling.counts.isEmpty

  private def begin(mapTasks: Int): Unit =
    if (sampling.counts.isEmpty) {
      sampling.counts = SketchLayout.of(numPartitions, mapTasks).map { layout =>
        val counts = new KeyCounts(layout)
        sparkContext.register(counts)
        counts
      }
    }

  /**
   * Batches pass unchanged. Spark 4 converts no batches to rows below a node that supports both, so
   * a consumer of rows converts them above this node.
   */
  override def supportsColumnar: Boolean =
    child.supportsColumnar && !ColumnarFilterProjectExec.readNested(keys)

  override def supportsRowBased: Boolean = !supportsColumnar || child.supportsRowBased

  override protected def doExecuteColumnar(): RDD[ColumnarBatch] = {
    val batches = child.executeColumnar()
    begin(batches.getNumPartitions)
    val tasks = sampling
    batches.mapPartitionsWithIndex(
      (mapTask, iterator) => {
        val sampler = tasks.start(mapTask)
        var untilNext = sampler.first
        iterator.map { batch =>
          var row = -1
          while (untilNext <= batch.numRows - 1 - row) {
            row += untilNext
            untilNext = sampler.sample(batch.getRow(row))
          }
          untilNext -= batch.numRows - 1 - row
          batch
        }
      },
      preservesPartitioning = true)
  }

  override protected def doExecute(): RDD[InternalRow] = {
    val rows = child.execute()
    begin(rows.getNumPartitions)
    val tasks = sampling
    rows.mapPartitionsWithIndex(
      (mapTask, iterator) => tasks.start(mapTask).watch(iterator),
      preservesPartitioning = true)
  }

  /** The multi-way join builds rows in its own way if no operator reads its columns. */
  override def supportCodegen: Boolean = child match {
    case _: MultiJoinExec => false
    case _ if supportsColumnar => false
    case c: CodegenSupport => c.supportCodegen
    case _ => false
  }

  override def inputRDDs(): Seq[RDD[InternalRow]] = {
    val rdds = child.asInstanceOf[CodegenSupport].inputRDDs()
    begin(rdds.head.getNumPartitions)
    rdds
  }

  /** Reads whole rows, like the shuffle. */
  override def usedInputs: AttributeSet = AttributeSet.empty

  @transient private var sampler: String = _
  @transient private var untilNext: String = _

  /** One sampler for the task, though a union below passes the rows of each branch by itself. */
  override protected def doProduce(ctx: CodegenContext): String = {
    val tasks = ctx.addReferenceObj("sampling", sampling)
    sampler = ctx.addMutableState(
      classOf[KeySampler].getName,
      "sampler",
      variable => s"$variable = $tasks.start(partitionIndex);",
      forceInline = true)
    untilNext = ctx.addMutableState(
      CodeGenerator.JAVA_INT,
      "untilNext",
      variable => s"$variable = $sampler.first();",
      forceInline = true)
    child.asInstanceOf[CodegenSupport].produce(ctx, this)
  }

  override def doConsume(ctx: CodegenContext, input: Seq[ExprCode], row: ExprCode): String = {
    val value = ctx.freshName("row")
    s"""
       |${row.code}
       |${classOf[InternalRow].getName} $value = ${row.value};
       |$untilNext--;
       |if ($untilNext == 0) $untilNext = $sampler.sample($value);
       |${consume(ctx, null, row.value.toString)}
     """.stripMargin
  }

  override protected def withNewChildInternal(newChild: SparkPlan): KeySketchExec =
    copy(child = newChild)
}
