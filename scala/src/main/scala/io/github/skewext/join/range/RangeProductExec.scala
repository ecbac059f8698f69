package io.github.skewext.join.range

import scala.reflect.ClassTag

import io.github.skewext.facts.KeepsStableRows
import io.github.skewext.platform.SkewConf
import io.github.skewext.rows.{KillCheck, UnsafeInputs}

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.{Inner, JoinType}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.skewext.TaskInternals
import org.apache.spark.{Dependency, NarrowDependency, Partition, SparkContext, TaskContext}

/**
 * Spark's Cartesian product, except that each row of a partition of the left side is tested only with
 * the rows of a partition of the right side whose intervals touch its own ([[RangeMatch]]). Each task
 * makes an index of its partition of the right side, or of one part of it after the other.
 */
case class RangeProductExec(left: SparkPlan, right: SparkPlan, condition: Option[Expression])
    extends RangeJoinOperator
    with KeepsStableRows {

  override def nodeName: String = RangeProductExec.Name

  override def joinType: JoinType = Inner

  override def leftKeys: Seq[Expression] = Nil

  override def rightKeys: Seq[Expression] = Nil

  override def output: Seq[Attribute] = left.output ++ right.output

  override lazy val metrics: Map[String, SQLMetric] = pairMetrics

  override protected def joined(makesRows: Boolean): RDD[InternalRow] = {
    val work = task(build = 1, makesRows)
    val ofRight = boundEnds(1)
    val maxRows = conf.getConf(SkewConf.MULTI_JOIN_MAX_ROWS_IN_MEMORY)
    new PairedPartitions[InternalRow, InternalRow](
      sparkContext,
      left.execute(),
      right.execute(),
      (ofLeft, rows) => new RangeParts(work, ofRight, maxRows, ofLeft, rows))
  }

  override protected def withNewChildrenInternal(
      newLeft: SparkPlan,
      newRight: SparkPlan): RangeProductExec = copy(left = newLeft, right = newRight)
}

object RangeProductExec {

  /** The name in plans. */
  val Name = "RangeProduct"
}

/**
 * Computes each pair of a partition of `left` and a partition of `right`, as Spark's Cartesian product
 * does.
 *
 * @param join gets the rows of a partition of `left`, which it may read several times, and those of a
 *             partition of `right`.
 */
private[range] final class PairedPartitions[T, U: ClassTag](
    sc: SparkContext,
    private[this] var left: RDD[T],
    private[this] var right: RDD[T],
    join: (() => Iterator[T], Iterator[T]) => Iterator[U])
    extends RDD[U](sc, Nil) {

  private val numRight = right.partitions.length

  override protected def getPartitions: Array[Partition] = (for {
    l <- left.partitions
    r <- right.partitions
  } yield PairedPartition(l.index * numRight + r.index, l, r): Partition)

  override protected def getPreferredLocations(split: Partition): Seq[String] = {
    val pair = split.asInstanceOf[PairedPartition]
    (left.preferredLocations(pair.left) ++ right.preferredLocations(pair.right)).distinct
  }

  override protected def getDependencies: Seq[Dependency[_]] = Seq(
    new NarrowDependency(left) {
      override def getParents(id: Int): Seq[Int] = Seq(id / numRight)
    },
    new NarrowDependency(right) {
      override def getParents(id: Int): Seq[Int] = Seq(id % numRight)
    })

  override def compute(split: Partition, context: TaskContext): Iterator[U] = {
    val pair = split.asInstanceOf[PairedPartition]
    val (ofLeft, ofRight) = (left, right)
    join(() => ofLeft.iterator(pair.left, context), ofRight.iterator(pair.right, context))
  }

  override def clearDependencies(): Unit = {
    super.clearDependencies()
    left = null
    right = null
  }
}

private[range] case class PairedPartition(index: Int, left: Partition, right: Partition)
    extends Partition

/**
 * Joins the rows of the left side with those of the right side, in parts of the right side for which
 * there is memory. For each part, the rows of the left side are read again.
 *
 * @param maxRows of a part.
 */
private[range] final class RangeParts(
    task: RangeJoinTask,
    endsOfRight: RangeEnds,
    maxRows: Long,
    left: () => Iterator[InternalRow],
    right: Iterator[InternalRow])
    extends Iterator[InternalRow] {
  import RangeParts._

  private[this] val context = TaskContext.get()
  private[this] val memory = new TaskInternals.HeapMemory(context)
  private[this] val killed = new KillCheck(context)
  private[this] val asUnsafe = new UnsafeInputs(task.output.inputTypes)
  private[this] var pairs: Iterator[InternalRow] = Iterator.empty
  private[this] val end = TaskInternals.atEnd(context)(memory.release())

  override def hasNext: Boolean = {
    while (!pairs.hasNext && right.hasNext) pairs = task.pairs(left(), nextPart(), context)
    val has = pairs.hasNext
    if (!has) end.run()
    has
  }

  override def next(): InternalRow = pairs.next()

  private def nextPart(): Array[InternalRow] = {
    memory.release()
    val builder = new RangeRelationBuilder(endsOfRight, task.output.inputTypes(1))
    var reserved = 0L
    var used = 0L
    var rows = 0L
    // A part has at least one row, whatever memory there is.
    do {
      killed.check()
      val row = asUnsafe(1, right.next())
      builder.insert(row)
      rows += 1
      used += Copies * row.getSizeInBytes + BytesOfRow
      if (used > reserved && memory.reserve(used + Step)) reserved = used + Step
    } while (right.hasNext && rows < maxRows && used <= reserved && used < MaxPart)
    builder.result()
  }
}

private object RangeParts {

  /** Memory is reserved in steps. */
  private final val Step = 1L << 20

  /** While blocks grow, there are two copies. The sort takes 32 bytes for each row. */
  private final val Copies = 2
  private final val BytesOfRow = 80
  private final val MaxPart = 1L << 30
}
