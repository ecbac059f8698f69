package io.github.skewext.stable

import org.apache.spark.sql.catalyst.expressions.{Alias, AttributeSet}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.trees.TreePattern.PYTHON_UDF

/**
 * Whether a Python function computes one of the plan's columns. Spark pushes a filter on such a column
 * below the projection, and the task calls the function twice. Spark 4.2 can hang there.
 */
private[skewext] object ComputedByPython {

  def apply(plan: LogicalPlan, columns: AttributeSet): Boolean =
    plan.containsPattern(PYTHON_UDF) && {
      val computed = plan.expressions.collect {
        case a: Alias if columns.contains(a.toAttribute) => a
      }
      val below = columns ++ AttributeSet.fromAttributeSets(computed.map(_.references))
      computed.exists(_.containsPattern(PYTHON_UDF)) || plan.children.exists(apply(_, below))
    }
}
