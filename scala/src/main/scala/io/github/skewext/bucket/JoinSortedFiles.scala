package io.github.skewext.bucket

import io.github.skewext.SkewConf
import io.github.skewext.multijoin.MultiFullJoinExec
import io.github.skewext.skew.JoinedInputs

import org.apache.spark.sql.catalyst.expressions.SortOrder
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.joins.SortMergeJoinExec

/**
 * Does Spark's sort-merge joins by our operator where all that is joined are sorted files.
 *
 * {{{
 *   SortMergeJoin [k]                      MultiFullJoin [k], required, required
 *     MergeSortedFiles [k], up to 4 files    MergeSortedFiles [k], up to 4 files
 *       ...                                    ...
 *     MergeSortedFiles [k], up to 1 file     MergeSortedFiles [k], up to 1 file
 * }}}
 *
 * The operator compares keys where they stand in the files' columns, and asks only for the rows that it
 * shows. Spark's join wants every row to be made first. What comes out is in the same order, and in the
 * same partitions.
 */
object JoinSortedFiles extends Rule[SparkPlan] {

  override def apply(plan: SparkPlan): SparkPlan =
    if (SkewConf.enabled(conf) && conf.getConf(SkewConf.BUCKET_MERGE_JOINS) &&
      plan.exists(_.isInstanceOf[MergeSortedFilesExec])) {
      // From above: joins of joins on one key become one.
      plan.transformDown { case join: SortMergeJoinExec => ours(join).getOrElse(join) }
    } else {
      plan
    }

  private def ours(join: SortMergeJoinExec): Option[SparkPlan] =
    JoinedInputs.of(join).right.toOption.filter(_.inputs.forall(isMerged)).flatMap { joined =>
      val operator =
        joined.operator(joined.inputs.map(_.plan)).copy(order = MultiFullJoinExec.AutoOrder)
      Some(joined.planOf(operator)).filter { plan =>
        operator.comesOrdered &&
        SortOrder.orderingSatisfies(plan.outputOrdering, join.outputOrdering)
      }
    }

  private def isMerged(input: JoinedInputs.Input): Boolean =
    input.plan.isInstanceOf[MergeSortedFilesExec] && input.replicable
}
