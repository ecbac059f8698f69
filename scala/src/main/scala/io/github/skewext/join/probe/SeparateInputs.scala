package io.github.skewext.join.probe

import io.github.skewext.platform.LogicalLinks

import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.{CodegenSupport, InputAdapter, SparkPlan}

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
