package io.github.skewext.technique

import io.github.skewext.skew.JoinedInputs

import org.apache.spark.sql.Strategy
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys
import org.apache.spark.sql.catalyst.plans.logical.{Join, LogicalPlan}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.joins.SortMergeJoinExec

/**
 * Plans salts, and the join on them as our operator. Spark's sort-merge join would sort rows by the
 * key and the cell: by two columns, for which Spark compares rows one by one, and the rows of a hot key
 * are the many that are equal in the first. Ours brings them together by hash.
 */
object SaltedJoinStrategy extends Strategy {
  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case SaltKeys(keys, side, hot, hotRows, nullCells, cell, kind, child) =>
      SaltKeysExec(keys, side, hot, hotRows, nullCells, cell, kind, planLater(child)) :: Nil
    case join: Join if TechniqueHint.of(join).isDefined =>
      join match {
        case ExtractEquiJoinKeys(joinType, leftKeys, rightKeys, condition, _, left, right, _)
            if leftKeys.exists(SaltKeys.isCell) =>
          val sparks = SortMergeJoinExec(
            leftKeys,
            rightKeys,
            joinType,
            condition,
            planLater(left),
            planLater(right))
          JoinedInputs.of(sparks).right.toOption.map(_.wholePlan).toList
        case _ => Nil
      }
    case _ => Nil
  }
}
