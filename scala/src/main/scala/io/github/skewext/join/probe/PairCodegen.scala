package io.github.skewext.join.probe

import io.github.skewext.join.exec.CombinationCodegen
import io.github.skewext.rows.{ExistsColumn, InputColumn, InputRows, TaskOutput}

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.ExistenceJoin
import org.apache.spark.sql.execution.joins.BaseJoinExec
import org.apache.spark.sql.execution.{ScalarSubquery, SparkPlan}
import org.apache.spark.sql.types.DataType

/** A join of two sides whose output is read from [[PairRows]]. */
private[join] trait PairCodegen extends BaseJoinExec with CombinationCodegen {

  protected def kind: PairKind = PairKind.of(joinType).get

  protected def sides: Seq[SparkPlan] = Seq(left, right)

  override protected def combinationClass: Class[_ <: InputRows] = classOf[PairRows]

  /** The condition over [[PairRows]]. */
  protected def boundCondition: Option[Expression] = condition.map { condition =>
    // A subquery has its plan, and its value by now.
    overPairs(condition.transform { case s: ScalarSubquery => Literal(s.eval(), s.dataType) })
  }

  /** An expression over the columns of both sides, over [[PairRows]]. */
  protected def overPairs(e: Expression): Expression =
    PairColumn.in(BindReferences.bindReference(e, left.output ++ right.output), left.output.size)

  override protected def outputColumns: Seq[Expression] = columns(PairColumn(_, _, _, _))

  protected def taskOutput(makesRows: Boolean): TaskOutput =
    TaskOutput(sides.map(_.output.map(_.dataType)), columns(InputColumn(_, _, _, _)), makesRows)

  private def columns(column: (Int, Int, DataType, Boolean) => Expression): Seq[Expression] = {
    val shown = if (kind.onlyLeft) sides.take(1) else sides
    val ofSides = shown.zipWithIndex.flatMap { case (side, i) =>
      side.output.zipWithIndex.map { case (a, ordinal) =>
        column(i, ordinal, a.dataType, true)
      }
    }
    joinType match {
      case _: ExistenceJoin => ofSides :+ ExistsColumn
      case _ => ofSides
    }
  }
}
