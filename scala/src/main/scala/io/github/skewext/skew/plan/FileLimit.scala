package io.github.skewext.skew.plan

/**
 * Limits the tasks of a partition for the files that they write.
 *
 * Where each task writes files, a partition has as many tasks as leave a file of the advisory size to
 * each, and two slices in any case: half a straggler is worth a small file. Where a task writes a file for
 * each value of the table's partition columns, there are no more tasks than Spark's own rule would make:
 * slices of whole map blocks, of inputs that are skewed by their bytes.
 */
private[skew] object FileLimit {

  /** How many tasks a partition may have for the files that they write. */
  def mostTasks(
      inputs: Seq[SkewInput],
      settings: SkewSettings,
      output: IndexedSeq[PartitionOutput])(partition: Int): Int = settings.files match {
    case None => Int.MaxValue
    case Some(TaskFiles.One) =>
      val read = inputs.filter(_.role.isShown).map(_.bytes(partition)).sum
      val written = read + output.lift(partition).map(_.bytes).getOrElse(0.0)
      (written / settings.advisoryBytes).toInt
    case Some(TaskFiles.OneForEachValue) => inputs.map(tasksOfSpark(_, settings, partition)).max
  }

  /** How many tasks Spark would make of a partition, in a join in which it may slice the input. */
  private def tasksOfSpark(input: SkewInput, settings: SkewSettings, partition: Int): Int = {
    val threshold = settings.skewThreshold(input.bytes)
    if (input.bytes(partition) <= threshold) {
      1
    } else {
      val target = settings.targetBytes(input.bytes, threshold).toDouble
      Slice.cut(input.sizes.blocks(partition), target, cuttable = false).size
    }
  }
}

/** Which files each task of a write makes of its rows. */
sealed abstract class TaskFiles extends Product with Serializable

object TaskFiles {

  /** One. */
  case object One extends TaskFiles

  /** One for each value that its rows have in the columns by which the table is partitioned or bucketed. */
  case object OneForEachValue extends TaskFiles
}
