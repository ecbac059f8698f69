package io.github.skewext.technique

import io.github.skewext.platform.HasOperator

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan, UnaryNode}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern.FILTER
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.types.IntegerType

/**
 * Adds to each row of one side its cells in a salted join, see [[SaltedKey]]. A join on the keys
 * and the cell brings every pair of rows with equal keys together once.
 *
 * @param added the cell of a row, and its kind.
 */
case class SaltKeys(
    keys: Seq[Expression],
    added: Seq[Attribute],
    salted: SaltedSide,
    child: LogicalPlan)
    extends UnaryNode
    with HasOperator {

  override def output: Seq[Attribute] = child.output ++ added

  override def producedAttributes: AttributeSet = AttributeSet(added)

  override def operator(inputs: Seq[SparkPlan]): SparkPlan =
    SaltKeysExec(keys, added, salted, inputs.head)

  override protected def withNewChildInternal(newChild: LogicalPlan): SaltKeys =
    copy(child = newChild)
}

object SaltKeys {

  /** The kinds: a row or its first copy, another copy, and one that only shows that the key exists. */
  val First = 0
  val Further = 1
  val Marker = -1

  def newColumns(): Seq[Attribute] =
    Seq("cell", "kind").map(AttributeReference(_, IntegerType, nullable = false)())
}

/**
 * Pushes predicates on one side of a salted join below its salts, towards the scan. All copies of a
 * row are equal to it, also those that are markers.
 */
object PushThroughSaltKeys extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan =
    plan.transformDownWithPruning(_.containsPattern(FILTER)) {
      case Filter(condition, salts: SaltKeys)
          if condition.deterministic && condition.references.subsetOf(salts.child.outputSet) =>
        salts.copy(child = Filter(condition, salts.child))
    }
}
