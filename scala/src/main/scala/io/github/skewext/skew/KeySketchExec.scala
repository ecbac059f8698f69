package io.github.skewext.skew

import org.apache.spark.TaskContext
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, BindReferences, Expression, SortOrder}
import org.apache.spark.sql.catalyst.plans.physical.Partitioning
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLMetrics}
import org.apache.spark.sql.execution.{SparkPlan, UnaryExecNode}

/**
 * Passes rows on to a shuffle and counts the keys of a sample of them, see [[KeySketch]]. Not a part
 * of the code that is generated for what is below: one more branch there could make a method too
 * large for the JVM to compile.
 *
 * @param keys what the shuffle partitions the rows by
 * @param every of how many rows one is sampled
 */
case class KeySketchExec(keys: Seq[Expression], numPartitions: Int, every: Int, child: SparkPlan)
    extends UnaryExecNode {

  override def nodeName: String = "KeySketch"

  override def output: Seq[Attribute] = child.output

  override def outputPartitioning: Partitioning = child.outputPartitioning

  override def outputOrdering: Seq[SortOrder] = child.outputOrdering

  override lazy val metrics: Map[String, SQLMetric] = Map(
    "numSampledRows" -> SQLMetrics.createMetric(sparkContext, "number of sampled rows"))

  /** A shuffle of the same rows is the same shuffle, whether they were sampled or not. */
  override protected def doCanonicalize(): SparkPlan = child.canonicalized

  @transient @volatile private var counts: Option[KeyCounts] = None

  /** What was counted, when all map tasks are done; nothing if there are too many of them. */
  def sketch: Option[KeySketch] =
    counts.filterNot(_.isZero).map(c => KeySketch(c.layout, every, c.value))

  override protected def doExecute(): RDD[InternalRow] = {
    val rows = child.execute()
    SketchLayout.of(numPartitions, rows.getNumPartitions).map(sampled(rows, _)).getOrElse(rows)
  }

  private def sampled(rows: RDD[InternalRow], layout: SketchLayout): RDD[InternalRow] = {
    val sums = new KeyCounts(layout)
    sparkContext.register(sums)
    counts = Some(sums)
    val bound = keys.map(BindReferences.bindReference(_, child.output))
    val (sampleEvery, numSampled) = (every, longMetric("numSampledRows"))
    rows.mapPartitionsWithIndex(
      (mapTask, iterator) => {
        val sampler = new KeySampler(iterator, bound, layout, sampleEvery, mapTask)
        TaskContext.get().addTaskCompletionListener[Unit] { _ =>
          numSampled.add(sampler.numSampled)
          sums.add(sampler.result)
        }
        sampler
      },
      preservesPartitioning = true)
  }

  override protected def withNewChildInternal(newChild: SparkPlan): KeySketchExec =
    copy(child = newChild)
}
