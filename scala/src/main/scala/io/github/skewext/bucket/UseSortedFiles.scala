package io.github.skewext.bucket

import scala.annotation.tailrec

import io.github.skewext.bucket.files.{BucketFiles, SortedFilesExec, StoredValues}
import io.github.skewext.facts.MadeOf
import io.github.skewext.join.exec.MultiFullJoinExec
import io.github.skewext.platform.{LogicalLinks, SkewConf}

import org.apache.spark.sql.catalyst.expressions.{Ascending, Attribute, SortOrder}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution._
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.skewext.SparkShims

/**
 * Uses the order of the sorted file of a bucket, where Spark would sort its rows again.
 *
 * {{{
 *   SortMergeJoin [k]                    SortMergeJoin [k]
 *     Sort [k]                             SortedFiles [k]
 *       Filter isnotnull(k)                  Filter isnotnull(k)
 *         FileScan t (bucketed, sorted)        FileScan t
 *     Sort [k]                             ...
 *       ...
 * }}}
 *
 * It applies if no bucket has a second file. The nodes between the scan and the sort must map a part
 * of the files to a part of the rows, in the same order, like projections and filters do. A
 * multi-way join requires no order, but uses one if all of its inputs have it. So the rule uses the
 * order of all its inputs or of none.
 *
 * The rule runs after exchanges are planned, and after Spark has found the scans that need their
 * buckets. Later checks of Spark succeed: the new node has the output ordering of the sort, and the
 * nodes below do not change.
 */
object UseSortedFiles extends Rule[SparkPlan] {

  override def apply(plan: SparkPlan): SparkPlan = {
    val candidates = plan.collect { case scan: FileSourceScanExec if isCandidate(scan) => scan }
    candidates.foreach(warnOfOtherBuckets)
    if (candidates.isEmpty) plan
    else {
      plan.transformUp {
        // A sort that is redundant after the inputs of a join are in order.
        case SortExec(order, false, child, _) if removesSorts && isOrdered(child, order) => child
        case sort @ SortExec(order, false, child, _) =>
          scanBelow(child).flatMap(inOrder(_, child, order)).getOrElse(sort)
        case join: MultiFullJoinExec => withSortedInputs(join)
      }
    }
  }

  private def removesSorts: Boolean = conf.getConf(SQLConf.REMOVE_REDUNDANT_SORTS_ENABLED)

  private def isOrdered(plan: SparkPlan, order: Seq[SortOrder]): Boolean =
    SortOrder.orderingSatisfies(plan.outputOrdering, order)

  /** Spark joins by the buckets that the table declares. The check of the files writes to the log. */
  private def warnOfOtherBuckets(scan: FileSourceScanExec): Unit =
    if (conf.getConf(SkewConf.BUCKET_ORDER) &&
      !BucketFiles.areSurelyMore(scan, MostChecked)) {
      BucketFiles.check(scan)
    }

  // Number of files per bucket. Listing 100,000 files takes seconds.
  private val MostChecked = 32

  private def isCandidate(plan: SparkPlan): Boolean = plan match {
    case scan: FileSourceScanExec => orderOfFiles(scan).nonEmpty
    case _ => false
  }

  /**
   * The order of each file of the scan, whose rows one task wrote and sorted: the leading sort
   * columns that the scan reads. It ends at a string whose collation ALTER TABLE can change or
   * remove, because that leaves the files. Bucket columns have no collation. It also ends at a column
   * whose values the files may change, because rows that are equal now were not sorted by the next
   * column.
   */
  private def orderOfFiles(scan: FileSourceScanExec): Seq[SortOrder] = if (scan.bucketedScan) {
    scan.relation.bucketSpec.toSeq.flatMap { buckets =>
      val columns = buckets.sortColumnNames
        .map(name => scan.output.find(_.name == name))
        .takeWhile(_.exists { column =>
          (buckets.bucketColumnNames.contains(column.name) ||
            !SparkShims.canChangeCollation(column.dataType)) &&
          StoredValues.keepOrder(scan, column.dataType)
        })
        .flatten
      val (exact, changed) = columns.span(column => StoredValues.ofType(column.dataType))
      (exact ++ changed.take(1)).map(SortOrder(_, Ascending))
    }
  } else {
    Nil
  }

  /** The scan of sorted files whose rows the plan returns one by one. */
  @tailrec
  private def scanBelow(plan: SparkPlan): Option[FileSourceScanExec] = plan match {
    case scan: FileSourceScanExec if isCandidate(scan) => Some(scan)
    case MadeOf(Seq(part)) if part.inOrder => scanBelow(part.child)
    case _ => None
  }

  private def withSortedInputs(join: MultiFullJoinExec): SparkPlan = {
    val inputs = join.children.zip(join.keys.map(_.map(SortOrder(_, Ascending))))
    val scans = inputs.collect {
      case (child, order) if !isOrdered(child, order) => scanBelow(child)
    }
    lazy val sorted = inputs.map {
      case (child, order) if isOrdered(child, order) => Some(child)
      case (child, order) =>
        scanBelow(child)
          .flatMap(inOrder(_, child, order))
          .map(LogicalLinks.wrapping(child)(_))
    }
    if (scans.forall(_.isDefined) && sorted.forall(_.isDefined)) {
      join.withNewChildren(sorted.flatten)
    } else {
      // The order of some inputs does not help.
      scans.flatten.filter(FileOrderReason.of(_).isEmpty).foreach { scan =>
        FileOrderReason.set(scan, FileOrderReason.OtherInputs.given)
      }
      join
    }
  }

  /** Returns the rows of the chain of nodes above a scan in order, without a sort. */
  private def inOrder(
      scan: FileSourceScanExec,
      chain: SparkPlan,
      order: Seq[SortOrder]): Option[SparkPlan] = {
    val found = for {
      _ <- check(conf.getConf(SkewConf.BUCKET_ORDER), FileOrderReason.SwitchedOff)
      _ <- check(isOrdered(withOrder(chain), order), FileOrderReason.OtherOrder)
      _ <- check(StoredValues.ofFormat(scan), FileOrderReason.Format)
      _ <- check(isDeterministic(chain), FileOrderReason.NonDeterministic)
      // The number of files is known before their names are read, which takes seconds for 100,000
      // files.
      _ <- check(!BucketFiles.areSurelyMore(scan, 1), FileOrderReason.SeveralFiles)
      files <- BucketFiles.of(scan).toRight(FileOrderReason.FileNames)
      _ <- check(files.mostFiles <= 1, FileOrderReason.SeveralFiles)
    } yield SortedFilesExec(order, chain)
    found match {
      case Right(_) =>
        // The rows are those of Spark's own partition, whatever their hashes, and their order is
        // checked.
        FileOrderReason.clear(scan)
      case Left(reason) => FileOrderReason.set(scan, reason.given)
    }
    found.toOption
  }

  private def check(condition: Boolean, otherwise: FileOrderReason): Either[FileOrderReason, Unit] =
    if (condition) Right(()) else Left(otherwise)

  /**
   * The chain above a single file. Its output ordering shows how the nodes change the order of the
   * file.
   */
  private def withOrder(chain: SparkPlan): SparkPlan = chain.transformUp {
    case scan: FileSourceScanExec => OneFile(scan.output, orderOfFiles(scan))
  }

  /**
   * Whether the expressions of the chain are deterministic. A sort reads all rows of its input before
   * another input is opened, and without it both are read in turns. So an expression that returns the
   * current file would return one of the other input.
   */
  private def isDeterministic(chain: SparkPlan): Boolean =
    !chain.exists(_.expressions.exists(!_.deterministic))

  private case class OneFile(output: Seq[Attribute], override val outputOrdering: Seq[SortOrder])
      extends LeafExecNode {
    override protected def doExecute(): Nothing = throw new UnsupportedOperationException(nodeName)
  }
}
