package io.github.skewext.skew.split

import scala.util.Try

import io.github.skewext.facts.MadeOf
import io.github.skewext.join.exec.AlignPartitionsExec
import io.github.skewext.platform.LogicalLinks
import io.github.skewext.skew.plan.MapBlocks

import org.apache.spark.sql.connector.read.{InputPartition, SupportsReportStatistics}
import org.apache.spark.sql.execution.datasources.v2.BatchScanExec
import org.apache.spark.sql.execution.{ShufflePartitionSpec, SparkPlan}
import org.apache.spark.sql.skewext.{KeyedPartitions, PartitionValues}

/**
 * The partitions that a table has in its storage as a source that a join can read in slices. A
 * split of the scan, which is some files or a part of one, corresponds to the block of a map task
 * in a shuffle.
 *
 * @param node the scan, or the node with its partitions that is replaced for other reads.
 * @param aligned the node with the partitions that each task reads.
 * @param splits the bytes of the splits of each partition value.
 */
private[skewext] case class StorageSource(
    node: SparkPlan,
    aligned: AlignPartitionsExec,
    splits: IndexedSeq[IndexedSeq[Long]],
    sliceable: Boolean)
    extends FilesSource {

  override def bytes: IndexedSeq[Long] = splits.map(_.sum)

  override def blocks(partition: Int): Seq[MapBlocks] =
    splits(partition).zipWithIndex.map { case (bytes, i) => MapBlocks(i, i + 1, bytes) }

  override def reading(specs: Seq[ShufflePartitionSpec]): SparkPlan =
    aligned.reading(specs, sliceable)

  override def below(node: SparkPlan): PartitionSource = this
}

private[skewext] object StorageSource {

  /** The source of a multi-way join. None if the splits or their size are unknown. */
  def of(aligned: AlignPartitionsExec, sliceable: Boolean): Option[StorageSource] =
    scanOf(aligned.child).flatMap { case (scan, linear) =>
      of(aligned, aligned, scan, sliceable && linear)
    }

  /** The source of a join of Spark's, which gives scans the partition values of both sides. */
  def of(scan: BatchScanExec, sliceable: Boolean): Option[StorageSource] = for {
    found <- PartitionValues.of(scan)
    // Spark may already have divided the files of a value.
    if found.values.distinct.size == scan.outputPartitioning.numPartitions
    by = found.by.map(_.sql).mkString(", ")
    aligned = LogicalLinks.wrapping(scan)(AlignPartitionsExec(found.values, Nil, Nil, by, scan))
    source <- of(scan, aligned, scan, sliceable)
  } yield source

  private def of(
      node: SparkPlan,
      aligned: AlignPartitionsExec,
      scan: BatchScanExec,
      sliceable: Boolean): Option[StorageSource] = for {
    bytes <- bytesOf(scan)
    bySplit <- KeyedPartitions.bySplit(aligned.child)
    found = KeyedPartitions.ofSplits(bySplit, aligned.types)
    if found.nonEmpty && found.size == scan.inputPartitions.size
    if found.forall(aligned.values.toSet)
  } yield {
    val ofSplits = SplitBytes.of(scan.inputPartitions, bytes)
    val byValue = found.zip(ofSplits).groupBy(_._1).map { case (value, all) =>
      value -> all.map(_._2).toIndexedSeq
    }
    val splits = aligned.values.map(byValue.getOrElse(_, IndexedSeq.empty)).toIndexedSeq
    StorageSource(node, aligned, splits, sliceable)
  }

  /** The scan, and whether a part of its rows yields a part of the node's rows. */
  private def scanOf(node: SparkPlan): Option[(BatchScanExec, Boolean)] = node match {
    case scan: BatchScanExec => Some((scan, true))
    case MadeOf(Seq(part)) if PartitionedInput.mayRunAgain(node) =>
      scanOf(part.child).map { case (scan, linear) => (scan, linear && part.linear) }
    case _ => None
  }

  private def bytesOf(scan: BatchScanExec): Option[Long] = scan.scan match {
    case reports: SupportsReportStatistics =>
      val bytes = reports.estimateStatistics().sizeInBytes
      if (bytes.isPresent) Some(bytes.getAsLong) else None
    case _ => None
  }
}

/**
 * The sizes of the splits of a scan. DataSource V2 has no interface for them, and Iceberg's class
 * for them is not public. Splits of other sources count as the average one.
 */
private[split] object SplitBytes {

  private final val Iceberg = "org.apache.iceberg."

  /**
   * The bytes of each split: not 0, which would mean that it has no rows.
   *
   * @param total the bytes of all splits, in the columns that are read, as the table reports.
   */
  def of(splits: Seq[InputPartition], total: Long): Seq[Long] = {
    val inFiles = splits.flatMap(inFilesOf)
    val sum = inFiles.map(_.toDouble).sum
    val bytes =
      if (inFiles.size == splits.size && sum > 0) inFiles.map(bytes => total * (bytes / sum))
      else splits.map(_ => total.toDouble / splits.size)
    bytes.map(each => math.max(1L, each.toLong))
  }

  /** Of Iceberg: the bytes of the parts of files, with their files of deletes. */
  private def inFilesOf(split: InputPartition): Option[Long] =
    if (split.getClass.getName.startsWith(Iceberg)) {
      Try(called(called(split, "taskGroup"), "sizeBytes")).toOption.collect {
        case bytes: java.lang.Long => bytes.longValue
      }
    } else None

  private def called(on: AnyRef, name: String): AnyRef = {
    val method = on.getClass.getMethod(name)
    method.setAccessible(true)
    method.invoke(on)
  }
}
