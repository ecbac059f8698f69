package io.github.skewext.join.probe

import io.github.skewext.join.exec.CombinationCodegen
import io.github.skewext.platform.LogicalLinks
import io.github.skewext.rows.{ExistsColumn, InputColumn, InputRows, TaskOutput}

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.ExistenceJoin
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.joins.BaseJoinExec
import org.apache.spark.sql.execution.{CodegenSupport, InputAdapter, ScalarSubquery, SparkPlan}
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

/**
 * Separates the generated code of a join's inputs from that of the operators above it, as Spark does
 * for its own joins by their classes. Without it, a join above a join would take no part in code
 * generation ([[io.github.skewext.join.exec.CombinationCodegen]]).
 *
 * It runs before Spark collapses operators to generated code, which keeps the adapter.
 */
object SeparateInputs extends Rule[SparkPlan] {

  override def apply(plan: SparkPlan): SparkPlan =
    if (conf.wholeStageEnabled) {
      plan.transformUp { case join: PairCodegen =>
        join.mapChildren {
          case input: InputAdapter => input
          case input: CodegenSupport if input.supportCodegen =>
            LogicalLinks.wrapping(input)(new SeparateInput(input))
          case other => other
        }
      }
    } else {
      plan
    }
}

/**
 * Spark's adapter between generated code and an input, that generates no code itself. So Spark also
 * collapses the operators below it.
 */
private[probe] final class SeparateInput(input: SparkPlan) extends InputAdapter(input) {
  override def supportCodegen: Boolean = false

  override protected def withNewChildInternal(newChild: SparkPlan): InputAdapter =
    new SeparateInput(newChild)
}
