package io.github.skewext.facts

import io.github.skewext.bucket.files.SortedFilesExec
import io.github.skewext.facts.MadeOf.{Part, Wrapped}
import io.github.skewext.join.InputRole.{Excluded, Optional, Present, Required}
import io.github.skewext.join.exec.MultiFullJoinExec
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.catalyst.dsl.expressions._
import org.apache.spark.sql.catalyst.expressions.{Explode, Literal, Rank}
import org.apache.spark.sql.catalyst.optimizer.{BuildLeft, BuildRight, BuildSide}
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical.{HintInfo, Join, JoinHint, LocalRelation, NO_BROADCAST_AND_REPLICATION}
import org.apache.spark.sql.catalyst.plans.physical.SinglePartition
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive.{AQEShuffleReadExec, ShuffleQueryStageExec}
import org.apache.spark.sql.execution.aggregate.{HashAggregateExec, SortAggregateExec}
import org.apache.spark.sql.execution.exchange.{ReusedExchangeExec, ShuffleExchangeExec}
import org.apache.spark.sql.execution.joins._
import org.apache.spark.sql.execution.window.{Partial, WindowExec, WindowGroupLimitExec}
import org.apache.spark.sql.skewext.TestShims
import org.apache.spark.sql.types.LongType

/** What each kind of node does with the rows of its children. */
class MadeOfSuite extends AnyFunSuite {

  private val (k, v) = (Symbol("k").long, Symbol("v").array(LongType))
  private val a: SparkPlan = TestShims.noRows(Seq(k, v))
  private val b: SparkPlan = TestShims.noRows(Seq(k.newInstance(), v.newInstance()))

  /** The parts, of which the list has all that a node is made of. */
  private def parts(plan: SparkPlan): Seq[Part] = plan match {
    case MadeOf(parts) => parts
    case _ => Nil
  }

  private def keys(plan: SparkPlan) = Seq(plan.output.head)

  private def merge(how: JoinType) = SortMergeJoinExec(keys(a), keys(b), how, None, a, b)

  private def linear(plan: SparkPlan): Seq[Boolean] = parts(plan).map(_.linear)

  test("rows of single rows, in their order") {
    for (node <- Seq(ProjectExec(keys(a), a), FilterExec(Literal(true), a))) {
      assert(parts(node) === Seq(Part(a, linear = true, inOrder = true)))
    }
  }

  test("rows of single rows, in another order or several of one") {
    for (node <- Seq(
        GenerateExec(Explode(v), Nil, outer = false, Nil, a),
        SortExec(Nil, global = false, a),
        SortedFilesExec(Nil, a))) {
      assert(parts(node) === Seq(Part(a, linear = true)))
    }
    def join(build: BuildSide) =
      BroadcastHashJoinExec(keys(a), keys(b), Inner, build, None, a, b)
    assert(parts(join(BuildRight)) === Seq(Part(a, linear = true)))
    assert(parts(join(BuildLeft)) === Seq(Part(b, linear = true)))
  }

  test("rows of all rows that a partition has") {
    for (node <- Seq(
        HashAggregateExec(None, false, None, keys(a), Nil, Nil, 0, keys(a), a),
        SortAggregateExec(None, false, None, keys(a), Nil, Nil, 0, keys(a), a),
        WindowExec(Nil, keys(a), Nil, a),
        WindowGroupLimitExec(keys(a), Nil, Rank(Nil), 1, Partial, a))) {
      assert(parts(node) === Seq(Part(a, linear = false)))
    }
  }

  test("joins: a part of the rows of a side that has to be there gives a part of the join") {
    for ((how, expected) <- Seq(
        Inner -> Seq(true, true),
        LeftOuter -> Seq(true, false),
        LeftSemi -> Seq(true, false),
        LeftAnti -> Seq(true, false),
        ExistenceJoin(k) -> Seq(true, false),
        RightOuter -> Seq(false, true),
        FullOuter -> Seq(false, false))) {
      assert(parts(merge(how)).map(_.child) === Seq(a, b))
      assert(linear(merge(how)) === expected)
      val hashed = ShuffledHashJoinExec(keys(a), keys(b), how, BuildRight, None, a, b)
      assert(linear(hashed) === expected)
    }
    val roles = Seq(Required, Optional, Present, Excluded)
    val children = roles.map(_ => a)
    val multi =
      MultiFullJoinExec(children, children.map(keys), children.map(_ => Nil), Nil, roles, None)
    assert(linear(multi) === Seq(true, false, false, false))
  }

  test("a join whose rows must not be read by several tasks is not looked into") {
    val relation = LocalRelation(k)
    val hint = JoinHint(Some(HintInfo(strategy = Some(NO_BROADCAST_AND_REPLICATION))), None)
    val join = merge(Inner)
    join.setLogicalLink(Join(relation, relation, Inner, None, hint))
    assert(parts(join).isEmpty)
  }

  test("expressions that are not in the list") {
    for (node <- Seq(
        a,
        SortExec(Nil, global = true, a),
        UnionExec(Seq(a, b)),
        CoalesceExec(1, a),
        LocalLimitExec(1, a),
        ExpandExec(Nil, Nil, a),
        ShuffleExchangeExec(SinglePartition, a),
        BroadcastNestedLoopJoinExec(a, b, BuildRight, Inner, None))) {
      assert(parts(node).isEmpty && Wrapped.unapply(node).isEmpty, node)
    }
  }

  test("nodes that stand for others") {
    val compiled = WholeStageCodegenExec(ProjectExec(keys(a), InputAdapter(a)))(codegenStageId = 1)
    assert(Wrapped.unapply(compiled).contains(compiled.child))
    assert(Wrapped.unapply(InputAdapter(a)).contains(a))
    val exchange = ShuffleExchangeExec(SinglePartition, a)
    val stage = ShuffleQueryStageExec(0, exchange, exchange.canonicalized)
    assert(Wrapped.unapply(stage).contains(exchange))
    assert(
      Wrapped.unapply(AQEShuffleReadExec(stage, Seq(CoalescedPartitionSpec(0, 1)))).contains(stage))
    assert(Wrapped.unapply(ReusedExchangeExec(a.output, exchange)).contains(exchange))
    assert(parts(compiled).isEmpty)
  }
}
