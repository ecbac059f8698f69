package io.github.skewext.bucket

import scala.annotation.tailrec

import io.github.skewext.bucket.files.{BucketFiles, MergeSortedFilesExec, SortedFiles, StoredValues}
import io.github.skewext.facts.MadeOf
import io.github.skewext.join.exec.MultiFullJoinExec
import io.github.skewext.platform.{LogicalLinks, SkewConf}

import org.apache.spark.sql.catalyst.expressions.{Ascending, Attribute, SortOrder}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution._
import org.apache.spark.sql.internal.SQLConf

/**
 * Merges the sorted files of a bucket, instead of sorting all of their rows as Spark does.
 *
 * {{{
 *   SortMergeJoin [k]                    SortMergeJoin [k]
 *     Sort [k]                             MergeSortedFiles [k], up to 4 files
 *       Filter isnotnull(k)                  Filter isnotnull(k)
 *         FileScan t (bucketed, sorted)        FileScan t
 *     Sort [k]                             ...
 *       ...
 * }}}
 *
 * The nodes between the scan and the sort must map a part of the files to a part of the rows, in
 * the same order, like projections and filters do. A multi-way join requires no order, but uses one
 * if all of its inputs have it. So the rule merges the files of all its inputs or of none.
 *
 * The rule runs after exchanges are planned, and after Spark has found the scans that need their
 * buckets. Later checks of Spark succeed: the new node has the output ordering of the sort, and the
 * nodes below do not change.
 */
object MergeSortedFiles extends Rule[SparkPlan] {

  override def apply(plan: SparkPlan): SparkPlan =
    if (plan.exists(isCandidate)) {
      plan.transformUp {
        // A sort that is redundant after the inputs of a join are merged.
        case SortExec(order, false, child, _) if removesSorts && isOrdered(child, order) => child
        case sort @ SortExec(order, false, child, _) =>
          scanBelow(child).flatMap(merged(_, child, order, sortedElse)).getOrElse(sort)
        case join: MultiFullJoinExec if join.order == MultiFullJoinExec.AutoOrder =>
          mergedInputs(join)
      }
    } else {
      plan
    }

  private def removesSorts: Boolean = conf.getConf(SQLConf.REMOVE_REDUNDANT_SORTS_ENABLED)

  private def isOrdered(plan: SparkPlan, order: Seq[SortOrder]): Boolean =
    SortOrder.orderingSatisfies(plan.outputOrdering, order)

  private def isCandidate(plan: SparkPlan): Boolean = plan match {
    case scan: FileSourceScanExec => SortedFiles.order(scan).nonEmpty
    case _ => false
  }

  /** The scan of sorted files whose rows the plan returns one by one. */
  @tailrec
  private def scanBelow(plan: SparkPlan): Option[FileSourceScanExec] = plan match {
    case scan: FileSourceScanExec if isCandidate(scan) => Some(scan)
    case MadeOf(Seq(part)) if part.inOrder => scanBelow(part.child)
    case _ => None
  }

  private def mergedInputs(join: MultiFullJoinExec): SparkPlan = {
    val orders = join.keys.map(_.map(SortOrder(_, Ascending)))
    val inputs = join.children.zip(orders)
    val scans = inputs.map {
      case (child, order) if isOrdered(child, order) => None
      case (child, _) => scanBelow(child)
    }
    val needed = inputs.zip(scans).filterNot { case ((child, order), _) => isOrdered(child, order) }
    if (needed.nonEmpty && !join.comesOrdered) {
      if (needed.forall(_._2.isDefined)) {
        val children = inputs.zip(scans).map {
          case ((child, order), Some(scan)) =>
            merged(scan, child, order, hashedElse).map(LogicalLinks.wrapping(child)(_))
          case ((child, _), None) => Some(child)
        }
        if (children.forall(_.isDefined)) {
          return join.withNewChildren(children.flatten)
        }
      }
      // Merging some inputs does not help unless all inputs are in order.
      scans.flatten.filter(SortedFileMergeReason.of(_).isEmpty).foreach { scan =>
        SortedFileMergeReason.set(scan, SortedFileMergeReason.OtherInputs.given)
      }
    }
    join
  }

  /** Returns the rows of the chain of nodes above a scan in order, without a sort. */
  private def merged(
      scan: FileSourceScanExec,
      chain: SparkPlan,
      order: Seq[SortOrder],
      limit: MaxFiles): Option[SparkPlan] = {
    val found = for {
      _ <- check(conf.getConf(SkewConf.BUCKET_MERGE), SortedFileMergeReason.SwitchedOff)
      _ <- check(isOrdered(withOrder(chain), order), SortedFileMergeReason.OtherOrder)
      _ <- check(StoredValues.ofFormat(scan), SortedFileMergeReason.Format)
      _ <- check(isDeterministic(chain), SortedFileMergeReason.NonDeterministic)
      // The number of files is known before their names are read, which takes seconds for 100,000
      // files.
      _ <- check(!BucketFiles.areSurelyMore(scan, limit.files), limit.otherwise)
      files <- BucketFiles.of(scan).map(_.sorted).toRight(SortedFileMergeReason.FileNames)
      _ <- check(files.most <= limit.files, limit.otherwise)
      _ <- check(
        files.most <= 1 || files.bytes <= conf.getConf(SkewConf.BUCKET_MERGE_MAX_BYTES),
        SortedFileMergeReason.LargeFiles)
    } yield MergeSortedFilesExec(order, files.most, chain)
    found match {
      case Right(_) =>
        // The rows are those of Spark's own partition, whatever their hashes, and their order is
        // checked. The check writes to the log.
        BucketFiles.check(scan)
        SortedFileMergeReason.clear(scan)
      case Left(reason) => SortedFileMergeReason.set(scan, reason.given)
    }
    found.toOption
  }

  /** The most files of a bucket that are merged, and the reason for more. */
  private case class MaxFiles(files: Int, otherwise: SortedFileMergeReason)

  private def sortedElse: MaxFiles =
    MaxFiles(conf.getConf(SkewConf.BUCKET_MERGE_MAX_FILES), SortedFileMergeReason.ManyFiles)

  private def hashedElse: MaxFiles = MaxFiles(
    conf.getConf(SkewConf.BUCKET_MERGE_MULTI_JOIN_MAX_FILES),
    SortedFileMergeReason.ManyFilesOfMultiJoin)

  private def check(
      condition: Boolean,
      otherwise: SortedFileMergeReason): Either[SortedFileMergeReason, Unit] =
    if (condition) Right(()) else Left(otherwise)

  /**
   * The chain above a single file. Its output ordering shows how the nodes change the order of the
   * file.
   */
  private def withOrder(chain: SparkPlan): SparkPlan = chain.transformUp {
    case scan: FileSourceScanExec => OneFile(scan.output, SortedFiles.order(scan))
  }

  /**
   * Whether the expressions of the chain are deterministic. Expressions that number rows, or return
   * the current file, depend on reading files one after the other.
   */
  private def isDeterministic(chain: SparkPlan): Boolean =
    !chain.exists(_.expressions.exists(!_.deterministic))

  private case class OneFile(output: Seq[Attribute], override val outputOrdering: Seq[SortOrder])
      extends LeafExecNode {
    override protected def doExecute(): Nothing = throw new UnsupportedOperationException(nodeName)
  }
}
