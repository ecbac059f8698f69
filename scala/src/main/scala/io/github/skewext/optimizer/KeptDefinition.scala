package io.github.skewext.optimizer

import io.github.skewext.plan.{RewriteReason, TechniqueHint, TechniqueReason}

import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.{CTERelationDef, Join, LeafNode, LogicalPlan, Statistics}
import org.apache.spark.sql.catalyst.trees.TreePattern.{CTE, JOIN}

/**
 * What a common table expression is defined as, hidden from our rules. Spark has put the others where they
 * are read; what is left is read several times, and not deterministic. Spark pushes into it what is asked
 * of it wherever it is read, and knows its columns by the ids that they had at first. Our rules keep ids,
 * but by aliases that Spark takes away as redundant, and then it has one column for another.
 */
private[skewext] case class KeptDefinition(plan: LogicalPlan) extends LeafNode {
  override def output: Seq[Attribute] = plan.output
  override def computeStats(): Statistics = plan.stats
}

private[skewext] object KeptDefinition {

  def hideIn(plan: LogicalPlan): LogicalPlan =
    plan.transformDownWithPruning(_.containsPattern(CTE)) { case definition: CTERelationDef =>
      definition.copy(child = KeptDefinition(explained(definition.child)))
    }

  def showIn(plan: LogicalPlan): LogicalPlan = plan.transformDown { case KeptDefinition(hidden) =>
    hidden
  }

  /** Its joins say why they are as they are. */
  private def explained(plan: LogicalPlan): LogicalPlan =
    plan.transformDownWithPruning(_.containsPattern(JOIN)) { case join: Join =>
      RewriteReason.set(join, RewriteReason.Detailed(RewriteReason.CommonTable, None))
      TechniqueHint.of(join) match {
        case Some(wanted: TechniqueHint.Wanted) =>
          val why = TechniqueReason.CommonTable.given
          TechniqueHint.on(join, TechniqueHint.Refused(wanted.technique, why))
        case _ => join
      }
    }
}
