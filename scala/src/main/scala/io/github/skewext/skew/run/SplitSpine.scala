package io.github.skewext.skew.run

import io.github.skewext.join.exec.{SpineJoinExec, SplitInputs}
import io.github.skewext.platform.StageName
import io.github.skewext.skew.plan.{SkewSplits, SplitTask}

import org.apache.spark.SparkContext
import org.apache.spark.rdd.{RDD, ShuffledRDD}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.skewext.{MultiZipRDD, SqlInternals}

/**
 * Split partitions of a [[SpineJoinExec]].
 *
 * If the spine is skewed, each piece reads a slice of it. If another input is, tasks before the join
 * read its slices, and find in them the candidates for all rows of the spine. A shuffle sends these
 * to the residual, which reads them in place of the input.
 */
case class SplitSpine(splits: SkewSplits) extends SplitInputs {

  override def describe: String = splits.describe

  override def suffix: String = splits.suffix

  override def metrics(sc: SparkContext): Map[String, SQLMetric] =
    SplitMetrics.of(sc, "found candidates")

  override def rows(join: SpineJoinExec): Seq[RDD[InternalRow]] = {
    SplitMetrics.report(splits, join.session.sparkContext, join.metrics)
    val tasks = splits.tasks(join.children.map(SplitReadSpecs.readsOf))
    slicesOfSpine(join.children.head, tasks) +: join.children.indices.tail.map { i =>
      val all = join.children(i).execute()
      candidates(join, i, tasks).fold(all) { case (found, ofTasks) =>
        new MultiZipRDD[InternalRow](
          join.session.sparkContext,
          Seq(all, found),
          // One of them is opened, and at once.
          areReads = Seq(true, true),
          (task, either) => either(if (ofTasks(task)) 1 else 0)())
      }
    }
  }

  private def slicesOfSpine(spine: SparkPlan, tasks: IndexedSeq[SplitTask]): RDD[InternalRow] = {
    val share = RowShare.of(spine.output)
    spine.execute().mapPartitionsWithIndex { (task, rows) =>
      tasks(task) match {
        case SplitTask.Piece(_, slice, _) => share.filter(rows, slice)
        case _ => rows
      }
    }
  }

  /** The candidates of an input, and the tasks of the join that read them. */
  private def candidates(
      join: SpineJoinExec,
      input: Int,
      tasks: IndexedSeq[SplitTask]): Option[(RDD[InternalRow], Set[Int])] = {
    val parts = for {
      (SplitTask.Residual(`input`, Some(p), _), task) <- tasks.zipWithIndex
      slice <- splits.of(p).toSeq.flatMap(_.marking)
    } yield (task, PartialReducerPartitionSpec(p, slice.startMap, slice.endMap, slice.bytesRead))
    val ofPart = parts.map(_._1)
    val spines = join.children.head
    lazy val spine = SplitReads.execute(spines, ofPart.map(SplitReadSpecs.readsOf(spines)))
    lazy val slices = SplitReads.execute(join.children(input), parts.map(_._2))
    // If the join may read other rows than these tasks, their candidates are not valid.
    if (parts.isEmpty || Seq(spine, slices).exists(MultiZipRDD.isIndeterminate)) {
      None
    } else {
      val sc = join.session.sparkContext
      val sent = StageName.named(sc, MarkKeys.Name) {
        val found = join.candidates(input, spine, slices).mapPartitionsWithIndex { (part, rows) =>
          rows.map(row => (ofPart(part), row))
        }
        new ShuffledRDD[Int, InternalRow, InternalRow](found, SqlInternals.byNumber(tasks.size))
          .setSerializer(new UnsafeRowSerializer(join.children(input).output.size))
          .map(_._2)
      }
      Some((sent, ofPart.toSet))
    }
  }
}

/** A join with split partitions. */
private[skewext] object SplitOperator {

  def unapply(plan: SparkPlan): Option[SkewSplits] = plan match {
    case join: SplitJoinExec => Some(join.splits)
    case join: SpineJoinExec => join.split.collect { case SplitSpine(splits) => splits }
    case _ => None
  }
}
