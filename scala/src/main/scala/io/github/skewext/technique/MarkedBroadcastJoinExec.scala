package io.github.skewext.technique

import io.github.skewext.facts.KeepsStableRows
import io.github.skewext.join.MarkedRows
import io.github.skewext.platform.CanonicalOnce

import org.apache.spark.broadcast.Broadcast
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenFallback
import org.apache.spark.sql.catalyst.optimizer.{BuildLeft, BuildRight, BuildSide}
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.physical._
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.joins._
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLMetrics}
import org.apache.spark.sql.execution.skewext.BroadcastTable
import org.apache.spark.sql.skewext.SqlInternals
import org.apache.spark.sql.types.StructType

/**
 * Executes a [[MarkedBroadcastJoin]]. Rows of the large side look up their matches in the broadcast
 * relation, as in Spark's broadcast hash join. Additional tasks read the relation itself and return
 * the unmatched rows of the small side.
 *
 * The matched rows are known before the join. A separate job reads the keys of the large side and
 * marks the rows that they match ([[MarkedRows.ofJob]]).
 */
case class MarkedBroadcastJoinExec(
    children: Seq[SparkPlan],
    keys: Seq[Seq[Expression]],
    rowId: Attribute,
    joinType: JoinType,
    smallSide: BuildSide)
    extends KeepsStableRows
    with CanonicalOnce[SparkPlan] {

  import MarkedBroadcastJoinExec._

  private def large: SparkPlan = children(0)

  private[technique] def small: SparkPlan = children(1)

  private def largeKeys = keys(0)

  private def smallKeys = keys(1)

  override protected def stringArgs: Iterator[Any] =
    keys.iterator ++ Iterator(rowId, joinType, smallSide)

  override def output: Seq[Attribute] =
    MarkedBroadcastJoin.output(
      large.output,
      small.output,
      rowId,
      joinType,
      smallSide,
      isCanonicalizedPlan)

  override lazy val metrics: Map[String, SQLMetric] = Map(
    "numOutputRows" -> SQLMetrics.createMetric(sparkContext, "number of output rows"),
    "numUnmatchedRows" ->
      SQLMetrics.createMetric(sparkContext, "number of rows of the small side without a match"),
    "markTime" -> SQLMetrics.createTimingMetric(sparkContext, "time to mark rows"))

  /** The number of a row of the small side may be another one the next time: the output lacks it. */
  override def columnsRead: Seq[AttributeSet] =
    super.columnsRead.map(_ - rowId)

  override def requiredChildDistribution: Seq[Distribution] = Seq(
    UnspecifiedDistribution,
    BroadcastDistribution(HashedRelationBroadcastMode(bound(smallKeys, small))),
    UnspecifiedDistribution)

  /**
   * The keys as in Spark's join, because keys of the large side are looked up in the relation of
   * the small side's keys.
   */
  private def bound(keys: Seq[Expression], input: SparkPlan): Seq[Expression] =
    BindReferences.bindReferences(HashJoin.rewriteKeyExpr(keys), input.output)

  /** Whether Spark generates code for such a join. */
  private def isCompiled: Boolean = {
    val columns = StructType(large.schema ++ small.schema)
    conf.wholeStageEnabled && !WholeStageCodegenExec.isTooManyFields(conf, columns) &&
    !largeKeys.exists(_.exists {
      case e: CodegenFallback => !e.isInstanceOf[LeafExpression]
      case _ => false
    })
  }

  /** Spark's own join, which returns the matches and the unmatched rows of the large side. */
  private def matched: SparkPlan = {
    def input(plan: SparkPlan) = if (isCompiled) InputAdapter(plan) else plan
    val ofLarge = (joinType, smallSide) match {
      case (FullOuter, BuildRight) => LeftOuter
      case (FullOuter, BuildLeft) => RightOuter
      case _ => Inner
    }
    val ((left, leftKeys), (right, rightKeys)) = smallSide match {
      case BuildLeft => (small -> smallKeys, large -> largeKeys)
      case BuildRight => (large -> largeKeys, small -> smallKeys)
    }
    val join = BroadcastHashJoinExec(
      leftKeys,
      rightKeys,
      ofLarge,
      smallSide,
      None,
      input(left),
      input(right))
    val shown = ProjectExec(join.output.filter(_.exprId != rowId.exprId), join)
    if (isCompiled) WholeStageCodegenExec(shown)(codegenStageId = 0) else shown
  }

  override protected def doExecute(): RDD[InternalRow] = rows

  // It runs a job, once for all executions of the plan.
  @transient private lazy val rows: RDD[InternalRow] = {
    val relation = small.executeBroadcast[Any]()
    // Checks plans without adaptive execution. With it, `CheckBroadcasts` has checked this before.
    BroadcastLimit.check(this, small)
    val marked = sparkContext.broadcast(mark(relation))
    val ofLarge = SqlInternals.withActive(session)(counted(matched.execute()))
    sparkContext.union(ofLarge, unmatched(relation, marked))
  }

  private def counted(of: RDD[InternalRow]): RDD[InternalRow] = {
    val outputRows = longMetric("numOutputRows")
    of.mapPartitions { rows =>
      rows.map { row =>
        outputRows += 1
        row
      }
    }
  }

  /** Marks the rows of the small side whose keys the large side has. */
  private def mark(relation: Broadcast[Any]): Array[Byte] = {
    val (keys, rowIdAt) = (bound(this.keys(2), children(2)), ordinalOfRowId)
    MarkedRows.ofJob(children(2).execute(), longMetric("markTime")) { rows =>
      val table = BroadcastTable.forTask(relation.value)
      val keyOf = UnsafeProjection.create(keys)
      val marks = new MarkedRows
      rows.foreach { row =>
        val key = keyOf(row)
        val first = if (key.anyNull()) null else table.firstRow(key)
        if (first != null) marks.add(first.getLong(rowIdAt))
      }
      marks
    }
  }

  private def unmatched(
      relation: Broadcast[Any],
      marked: Broadcast[Array[Byte]]): RDD[InternalRow] = {
    val rowIdAt = ordinalOfRowId
    // The output's columns, over the relation's rows.
    val columns = output.map { a =>
      small.output.indexWhere(_.exprId == a.exprId) match {
        case -1 => Literal(null, a.dataType)
        case i => BoundReference(i, a.dataType, small.output(i).nullable)
      }
    }
    val (outputRows, unmatchedRows) = (longMetric("numOutputRows"), longMetric("numUnmatchedRows"))
    val tasks = math.min(sparkContext.defaultParallelism, MaxUnmatchedTasks)
    sparkContext.parallelize(0 until tasks, tasks).mapPartitions { slices =>
      val project = UnsafeProjection.create(columns)
      slices.flatMap { slice =>
        val marks = MarkedRows.fromBytes(marked.value)
        val isMine = (key: InternalRow) => Math.floorMod(key.hashCode, tasks) == slice
        unmatchedIn(BroadcastTable.forTask(relation.value), marks, rowIdAt, isMine).map { row =>
          outputRows += 1
          unmatchedRows += 1
          project(row)
        }
      }
    }
  }

  private def ordinalOfRowId: Int = small.output.indexWhere(_.exprId == rowId.exprId)

  override protected def withNewChildrenInternal(
      newChildren: IndexedSeq[SparkPlan]): MarkedBroadcastJoinExec =
    copy(children = newChildren)
}

object MarkedBroadcastJoinExec {

  /** Each of these tasks iterates over all keys. */
  private val MaxUnmatchedTasks = 32

  /**
   * The rows of keys whose first row is not marked. The relation may return a key once for each of
   * its rows.
   *
   * @param isMine whether this task returns the rows of a key
   */
  private def unmatchedIn(
      table: BroadcastTable,
      marks: MarkedRows,
      rowIdAt: Int,
      isMine: InternalRow => Boolean): Iterator[InternalRow] = {
    val isUnique = table.keyIsUnique
    val given = new MarkedRows
    table.keys.filter(isMine).flatMap { key =>
      val first = table.firstRow(key).getLong(rowIdAt)
      if (!marks.contains(first) && (isUnique || given.add(first))) table.rows(key)
      else Iterator.empty
    }
  }
}
