package io.github.skewext.planner

import io.github.skewext.execution.{MultiFullJoinExec, MultiJoinExec}
import io.github.skewext.internal.{SkewConf, ZeroWithoutNulls}
import io.github.skewext.plan.{InputRole, KeyTypes, StableRows}

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen.Block._
import org.apache.spark.sql.catalyst.expressions.codegen.{CodeGenerator, CodegenContext, ExprCode, FalseLiteral}
import org.apache.spark.sql.catalyst.plans.QueryPlan
import org.apache.spark.sql.catalyst.plans.physical.{AllTuples, BroadcastDistribution, ClusteredDistribution, HashPartitioning, UnspecifiedDistribution}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.exchange.ShuffleExchangeLike
import org.apache.spark.sql.types.{DataType, IntegerType}

/**
 * Tells a join to spread its rows with a null key over all tasks, where that costs nobody anything.
 * Such rows match nothing, so they may be in any partition; but then the output is no longer
 * partitioned by the key, nulls included. So a join stays as it is
 *
 *  - below a node that needs a distribution (a group-by, a window, another join) or a shuffle that
 *    the user asked for: what is there may be without a shuffle of its own thanks to this join;
 *  - where an input has the distribution already (a bucketed table, storage partitions), or may get it
 *    from a shuffle of its own (an input that is grouped by the key): it would need one more;
 *  - where no key can be null, or no row with a null key comes out;
 *  - where another join of the query has an input shuffled by the same key: one shuffle does for both.
 */
object SpreadNullKeys extends Rule[SparkPlan] {

  override def apply(plan: SparkPlan): SparkPlan =
    if (SkewConf.enabled(conf) && conf.getConf(SkewConf.MULTI_JOIN_SPREAD_NULL_KEYS)) {
      spread(plan, plan)
    } else {
      plan
    }

  private def spread(plan: SparkPlan, whole: SparkPlan): SparkPlan = plan match {
    case join: MultiFullJoinExec if canSpread(join) && !sharesShuffle(join, whole) =>
      val told = join.copy(spreadBy = join.children.zip(join.keys).map((spreadBy _).tupled))
      // Adaptive execution finds the logical node of an operator by its tags.
      told.copyTagsFrom(join)
      told
    // Joins further below are left alone: this one, or whatever the node is, may build on them.
    case _: ShuffleExchangeLike => plan
    case node if node.requiredChildDistribution.forall(ignoresPartitioning(_)) =>
      node.mapChildren(spread(_, whole))
    case node => node
  }

  /** Whether a row with a null key can come out of the join. */
  private[skewext] def canComeOut(join: MultiJoinExec): Boolean =
    join.children.indices.exists { i =>
      InputRole.emitsNullKeys(join.roles, i) &&
      nullableKeys(join.keys(i), join.children(i).output).nonEmpty
    }

  private def ignoresPartitioning(distribution: Any): Boolean = distribution match {
    case UnspecifiedDistribution | AllTuples | _: BroadcastDistribution => true
    case _ => false
  }

  private def canSpread(join: MultiFullJoinExec): Boolean =
    !join.storagePartitioned && canComeOut(join) && join.children.zip(join.keys).forall {
      case (child, keys) =>
        !child.outputPartitioning.satisfies(ClusteredDistribution(keys)) &&
        // Exchanges are not planned yet, so such a child does not know its partitioning.
        !child.exists(!_.requiredChildDistribution.forall(ignoresPartitioning(_)))
    }

  /** Whether Spark will use the shuffle of an input again, if it goes by the key alone. */
  private def sharesShuffle(join: MultiFullJoinExec, whole: SparkPlan): Boolean = {
    def shuffles(node: SparkPlan): Seq[(SparkPlan, Seq[Expression])] =
      node.children.zip(node.requiredChildDistribution).collect {
        case (child, by: ClusteredDistribution) =>
          (child.canonicalized, by.clustering.map(QueryPlan.normalizeExpressions(_, child.output)))
      }
    lazy val own = shuffles(join).toSet
    conf.exchangeReuseEnabled && whole.exists {
      case other: MultiFullJoinExec if (other eq join) || canSpread(other) => false
      case other => shuffles(other).exists(own.contains)
    }
  }

  /**
   * What to partition an input by besides its key: constant for keys without a null, so that equal
   * keys stay together. Of the others each must go where it went before when its task runs again, or
   * rows are lost and doubled. So their place depends on the task alone, and on what is in the row if
   * that is sure to be there again.
   */
  private def spreadBy(input: SparkPlan, keys: Seq[Expression]): Expression = {
    val nullable = nullableKeys(keys, input.output)
    input.outputPartitioning match {
      // It has been shuffled so, and the plan is made anew.
      case HashPartitioning(by :+ (spread: SpreadNulls), _) if by == keys => spread
      case _ if nullable.isEmpty => Literal(0L)
      case _ =>
        val values =
          if (StableRows.areIn(input)) {
            input.output.filter(KeyTypes.comparedByBytes(_)).take(MaxColumns)
          } else {
            Nil
          }
        SpreadNulls(
          If(
            nullable.map(k => IsNull(k): Expression).reduce(Or),
            new XxHash64(values :+ MapTaskId()),
            Literal(0L)))
    }
  }

  /** By what the input says today: a filter may have come between since the keys were resolved. */
  private def nullableKeys(keys: Seq[Expression], input: Seq[Attribute]): Seq[Expression] = {
    val known = AttributeMap(input.map(a => a -> a))
    keys.filter(_.transform { case a: Attribute => known.getOrElse(a, a) }.nullable)
  }

  private val MaxColumns = 8
}

/** Only a name, to keep plans readable: `hashpartitioning(k, spreadnulls(k), 200)`. */
case class SpreadNulls(child: Expression) extends UnaryExpression with ZeroWithoutNulls {
  override def nullable: Boolean = child.nullable
  override def dataType: DataType = child.dataType
  override def eval(row: InternalRow): Any = child.eval(row)
  override def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = child.genCode(ctx)
  override def toString: String =
    child.collect { case IsNull(key) => key.toString }.mkString("spreadnulls(", ", ", ")")
  override protected def withNewChildInternal(newChild: Expression): SpreadNulls =
    copy(child = newChild)
}

/** The number of the map task that writes the row; the same when the task runs again. */
case class MapTaskId() extends LeafExpression {
  override def nullable: Boolean = false
  override def dataType: DataType = IntegerType
  override def eval(row: InternalRow): Any = TaskContext.getPartitionId()
  override def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = ev.copy(
    code = code"""
      ${CodeGenerator.javaType(dataType)} ${ev.value} =
        ${classOf[TaskContext].getName}.getPartitionId();
      """,
    isNull = FalseLiteral)
}
