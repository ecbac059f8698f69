package io.github.skewext.join.range

import scala.reflect.ClassTag

import org.apache.spark.rdd.RDD
import org.apache.spark.{Dependency, NarrowDependency, Partition, SparkContext, TaskContext}

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
