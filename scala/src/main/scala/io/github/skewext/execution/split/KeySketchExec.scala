package io.github.skewext.execution.split

import io.github.skewext.execution.MultiJoinExec
import io.github.skewext.internal.ZeroWithoutNulls
import io.github.skewext.plan.KeepsStableRows
import io.github.skewext.sketch.{KeyCounts, KeySampler, KeySampling, KeySketch, SketchLayout}

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.codegen.{CodeGenerator, CodegenContext, ExprCode}
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet, BindReferences, Expression, Literal, SortOrder}
import org.apache.spark.sql.catalyst.plans.physical.Partitioning
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLMetrics}
import org.apache.spark.sql.execution.{CodegenSupport, SparkPlan, UnaryExecNode}
import org.apache.spark.sql.vectorized.ColumnarBatch

/**
 * Passes rows on to a shuffle and counts the keys of a sample of them, see [[KeySketch]]. In generated
 * code that is a number to count down for each row: an iterator of its own would cost more than the
 * counting.
 *
 * @param keys what the shuffle partitions the rows by
 * @param every of how many rows one is sampled
 */
case class KeySketchExec(keys: Seq[Expression], numPartitions: Int, every: Int, child: SparkPlan)
    extends UnaryExecNode
    with CodegenSupport
    with KeepsStableRows {

  override def nodeName: String = "KeySketch"

  override def output: Seq[Attribute] = child.output

  override def passesColumns: Boolean = true

  override def outputPartitioning: Partitioning = child.outputPartitioning

  override def outputOrdering: Seq[SortOrder] = child.outputOrdering

  override lazy val metrics: Map[String, SQLMetric] = Map(
    "numSampledRows" -> SQLMetrics.createMetric(sparkContext, "number of sampled rows"))

  /** A shuffle of the same rows is the same shuffle, whether they were sampled or not. */
  override protected def doCanonicalize(): SparkPlan = child.canonicalized

  /** Only keys without a null are counted; and what each task is sent should be little. */
  private def counted(key: Expression): Expression = key match {
    case _: ZeroWithoutNulls => Literal(0L)
    case _ => BindReferences.bindReference(key, child.output)
  }

  @transient private lazy val sampling =
    new KeySampling(keys.map(counted), every, longMetric("numSampledRows"))

  /** What was counted, when all map tasks are done; nothing if there are too many of them. */
  def sketch: Option[KeySketch] =
    sampling.counts.filterNot(_.isZero).map(c => KeySketch(c.layout, every, c.value))

  /** Said when the map tasks are done. */
  def isLeftOut: Boolean = sampling.counts.isEmpty

  private def begin(mapTasks: Int): Unit =
    if (sampling.counts.isEmpty) {
      sampling.counts = SketchLayout.of(numPartitions, mapTasks).map { layout =>
        val counts = new KeyCounts(layout)
        sparkContext.register(counts)
        counts
      }
    }

  /** Batches are counted as such. Who wants rows makes them above: Spark 4 makes none below both. */
  override def supportsColumnar: Boolean = child.supportsColumnar

  override def supportsRowBased: Boolean = child.supportsRowBased

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

  /** Our join makes rows in a way of its own where nobody reads its columns. */
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

  /** Takes whole rows, as the shuffle does. */
  override def usedInputs: AttributeSet = AttributeSet.empty

  override protected def doProduce(ctx: CodegenContext): String =
    child.asInstanceOf[CodegenSupport].produce(ctx, this)

  override def doConsume(ctx: CodegenContext, input: Seq[ExprCode], row: ExprCode): String = {
    val tasks = ctx.addReferenceObj("sampling", sampling)
    val sampler = ctx.addMutableState(
      classOf[KeySampler].getName,
      "sampler",
      variable => s"$variable = $tasks.start(partitionIndex);",
      forceInline = true)
    val untilNext = ctx.addMutableState(
      CodeGenerator.JAVA_INT,
      "untilNext",
      variable => s"$variable = $sampler.first();",
      forceInline = true)
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
