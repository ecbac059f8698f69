package io.github.skewext.join.optimizer

import io.github.skewext.join.InputRole.{Excluded, Required}
import io.github.skewext.join.{InputRole, JoinOrigin, MultiFullJoin}
import io.github.skewext.platform.{RunsIfDisabled, SkewConf}

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.optimizer.NormalizeFloatingNumbers
import org.apache.spark.sql.catalyst.plans.FullOuter
import org.apache.spark.sql.catalyst.plans.logical.{Filter, HintInfo, Join, JoinHint, LogicalPlan, Project}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.types.{ArrayType, BooleanType, IntegerType}

/**
 * Replaces a [[MultiFullJoin]] by its definition if `spark.skewext.enabled` is false: Spark's chain
 * of two-way full outer joins on the coalesced key. Inputs have a marker of presence if roles or
 * the indicator depend on which inputs have the key. The tests use this chain as their oracle.
 */
object LowerMultiFullJoin extends Rule[LogicalPlan] with RunsIfDisabled {

  override def apply(plan: LogicalPlan): LogicalPlan =
    if (SkewConf.enabled(conf) || !plan.exists(_.isInstanceOf[MultiFullJoin])) {
      plan
    } else {
      normalized(plan)
    }

  /**
   * Replaces the multi-way joins of a plan. It normalizes floating-point keys, because Spark's
   * batch for that may have run already.
   */
  def normalized(plan: LogicalPlan): LogicalPlan =
    NormalizeFloatingNumbers(plan.transformUp { case j: MultiFullJoin => lower(j) })

  def lower(join: MultiFullJoin): LogicalPlan = {
    val needPresence = join.indicator.isDefined || join.roles.exists(_ != InputRole.Optional)
    val inputs = join.children.indices.map(i => Input(join, i, needPresence))
    val description =
      MultiFullJoin.describe(join.keyOutput.map(_.name), join.roles, join.indicator)
    val chain =
      inputs.tail.foldLeft(
        Chain(inputs.head.plan, inputs.head.keys, inputs.head.values, join.hint(0))) {
        (chain, input) => chain.fullJoin(input, description)
      }
    val filtered = if (needPresence) {
      val conditions = inputs.flatMap { input =>
        input.role match {
          case Required => Some(IsNotNull(input.presence))
          case Excluded => Some(IsNull(input.presence))
          case _ => None
        }
      }
      val some = inputs.filter(_.role != Excluded).map(i => IsNotNull(i.presence): Expression)
      Filter((conditions :+ some.reduce(Or)).reduce(And), chain.plan)
    } else {
      chain.plan
    }
    val keyOutput = join.keyOutput.zip(chain.values).map { case (out, value) =>
      Alias(value, out.name)(exprId = out.exprId, qualifier = out.qualifier)
    }
    val indicator = join.indicator.map { out =>
      Alias(presentPositions(inputs), out.name)(exprId = out.exprId, qualifier = out.qualifier)
    }
    val others = join.output.slice(keyOutput.size, join.output.size - indicator.size)
    Project(keyOutput ++ others ++ indicator, filtered)
  }

  private def presentPositions(inputs: Seq[Input]): Expression = {
    val none = Literal.create(Array.empty[Int], ArrayType(IntegerType, containsNull = false))
    Flatten(CreateArray(inputs.zipWithIndex.map { case (input, i) =>
      if (input.role == Excluded) none
      else If(IsNotNull(input.presence), CreateArray(Seq(Literal(i))), none)
    }))
  }

  /**
   * The expression above a full outer join, where any column can be null. Without this, Spark's
   * optimizer would treat a column that is not nullable below the join as not nullable above it.
   */
  private def padded(e: Expression): Expression = e.transform { case a: Attribute =>
    a.withNullability(true)
  }

  /** One input, with a column that is never null if `needPresence` is set. */
  private case class Input(
      plan: LogicalPlan,
      keys: Seq[Expression],
      values: Seq[Expression],
      presence: Expression,
      role: InputRole,
      hint: Option[HintInfo])

  private object Input {
    def apply(join: MultiFullJoin, i: Int, needPresence: Boolean): Input = {
      val child = join.children(i)
      val marker = Alias(Literal(true, BooleanType), s"present_$i")()
      val plan = if (needPresence) Project(child.output :+ marker, child) else child
      Input(
        plan,
        join.keys(i),
        join.keyColumns(i),
        padded(marker.toAttribute),
        join.roles(i),
        join.hint(i))
    }
  }

  /** The joins so far: the keys to compare with the next input, and the values of the key. */
  private case class Chain(
      plan: LogicalPlan,
      keys: Seq[Expression],
      values: Seq[Expression],
      hint: Option[HintInfo]) {
    def fullJoin(input: Input, madeFrom: String): Chain = {
      val condition = keys.zip(input.keys).map { case (l, r) => EqualTo(l, r): Expression }
      val hints = JoinHint(hint, input.hint)
      val join = Join(plan, input.plan, FullOuter, Some(condition.reduce(And)), hints)
      JoinOrigin.set(join, JoinOrigin.Lowered(madeFrom))
      def coalesced(left: Seq[Expression], right: Seq[Expression], name: String) =
        left.zip(right).zipWithIndex.map { case ((l, r), j) =>
          Alias(Coalesce(Seq(padded(l), padded(r))), s"${name}_$j")()
        }
      val newValues = coalesced(values, input.values, "value")
      val newKeys =
        if (keys == values && input.keys == input.values) newValues
        else coalesced(keys, input.keys, "key")
      Chain(
        Project(join.output ++ newValues ++ (if (newKeys eq newValues) Nil else newKeys), join),
        newKeys.map(_.toAttribute),
        newValues.map(_.toAttribute),
        None)
    }
  }
}
