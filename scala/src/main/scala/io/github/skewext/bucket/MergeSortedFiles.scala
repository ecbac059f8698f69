package io.github.skewext.bucket

import scala.annotation.tailrec

import io.github.skewext.execution.files.{BucketFiles, MergeSortedFilesExec, SortedFiles}
import io.github.skewext.execution.{MadeOf, MultiFullJoinExec}
import io.github.skewext.internal.{LogicalLinks, SkewConf}
import io.github.skewext.plan.MergeReason

import org.apache.spark.sql.catalyst.expressions.{Ascending, Attribute, SortOrder}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution._
import org.apache.spark.sql.internal.SQLConf

/**
 * Merges the files of a bucket, which are sorted one by one, where Spark sorts all of their rows.
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
 * Only what stands between the scan and the sort must be such that a part of the files gives a part
 * of the rows, in their order: projections and filters. A multi-way join asks for no order, but
 * makes use of one that is there, if all its inputs have it: there it is all of them or none.
 *
 * It is to run after exchanges are planned, and after Spark has seen which scans need their buckets.
 * All that Spark looks at later is in order: the node says of its rows what the sort did, and what is
 * below stays as it was.
 */
object MergeSortedFiles extends Rule[SparkPlan] {

  override def apply(plan: SparkPlan): SparkPlan =
    if (SkewConf.enabled(conf) && plan.exists(isCandidate)) {
      plan.transformUp {
        // What the merging of a join's inputs has made needless.
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

  /** The scan of sorted files that the rows come from, one by one. */
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
      // Those that could be merged are not, as long as the others are not in order.
      scans.flatten.filter(MergeReason.of(_).isEmpty).foreach { scan =>
        MergeReason.set(scan, MergeReason.OtherInputs)
      }
    }
    join
  }

  /** The rows of a chain of nodes above a scan in order, without a sort. */
  private def merged(
      scan: FileSourceScanExec,
      chain: SparkPlan,
      order: Seq[SortOrder],
      limit: MaxFiles): Option[SparkPlan] = {
    val found = for {
      _ <- check(conf.getConf(SkewConf.BUCKET_MERGE), MergeReason.SwitchedOff)
      _ <- check(isOrdered(withOrder(chain), order), MergeReason.OtherOrder)
      _ <- check(SortedFiles.keepsValues(scan), MergeReason.Format)
      _ <- check(isDeterministic(chain), MergeReason.NonDeterministic)
      // Their number is known before a name is looked at, which takes seconds for a hundred thousand.
      _ <- check(!BucketFiles.areSurelyMore(scan, limit.files), limit.otherwise)
      files <- BucketFiles.of(scan).map(_.sorted).toRight(MergeReason.FileNames)
      _ <- check(files.most <= limit.files, limit.otherwise)
      _ <- check(
        files.most <= 1 || files.bytes <= conf.getConf(SkewConf.BUCKET_MERGE_MAX_BYTES),
        MergeReason.LargeFiles)
    } yield MergeSortedFilesExec(order, files.most, chain)
    found match {
      case Right(_) => MergeReason.clear(scan)
      case Left(reason) => MergeReason.set(scan, reason)
    }
    found.toOption
  }

  /** How many files of a bucket are merged, and why not more. */
  private case class MaxFiles(files: Int, otherwise: MergeReason)

  private def sortedElse: MaxFiles =
    MaxFiles(conf.getConf(SkewConf.BUCKET_MERGE_MAX_FILES), MergeReason.ManyFiles)

  private def hashedElse: MaxFiles = MaxFiles(
    conf.getConf(SkewConf.BUCKET_MERGE_MULTI_JOIN_MAX_FILES),
    MergeReason.ManyFilesOfMultiJoin)

  private def check(condition: Boolean, otherwise: MergeReason): Either[MergeReason, Unit] =
    if (condition) Right(()) else Left(otherwise)

  /** The chain as it would be above one file, for what its nodes make of the file's order. */
  private def withOrder(chain: SparkPlan): SparkPlan = chain.transformUp {
    case scan: FileSourceScanExec => OneFile(scan.output, SortedFiles.order(scan))
  }

  /** Expressions that number rows, or tell the file that is read, see files one after the other. */
  private def isDeterministic(chain: SparkPlan): Boolean =
    !chain.exists(_.expressions.exists(!_.deterministic))

  private case class OneFile(output: Seq[Attribute], override val outputOrdering: Seq[SortOrder])
      extends LeafExecNode {
    override protected def doExecute(): Nothing = throw new UnsupportedOperationException(nodeName)
  }
}
