package io.github.skewext.function

import io.github.skewext.platform.{HasOperator, RunsIfDisabled}

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.analysis.MultiInstanceRelation
import org.apache.spark.sql.catalyst.expressions.{Attribute, SubqueryExpression, UnsafeProjection}
import org.apache.spark.sql.catalyst.plans.QueryPlan
import org.apache.spark.sql.catalyst.plans.logical.{CTERelationDef, CTERelationRef, LeafNode, LocalRelation, LogicalPlan, Statistics, WithCTE}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern.{CTE, PLAN_EXPRESSION, TreePattern}
import org.apache.spark.sql.execution.{LeafExecNode, SparkPlan}
import org.apache.spark.sql.skewext.SqlInternals
import org.apache.spark.sql.types.{StringType, StructType}
import org.apache.spark.sql.{DataFrame, SparkSession}
import org.apache.spark.unsafe.types.UTF8String

/**
 * The result of a table function, as a relation. It is not a command: Spark runs a command as soon
 * as a DataFrame is created from it, but this must run when its rows are read, like any query.
 *
 * @param inputs analyzed plans. They are not children: the result is about these queries
 *               themselves, not about plans that the optimizer makes of them inside another query.
 */
private[skewext] case class FindingRelation(
    finding: Finding,
    @transient inputs: Seq[LogicalPlan],
    override val output: Seq[Attribute])
    extends LeafNode
    with MultiInstanceRelation
    with HasOperator {

  override def newInstance(): LogicalPlan = copy(output = output.map(_.newInstance()))

  override def innerChildren: Seq[QueryPlan[_]] = inputs

  // Lets KeepCommonTables skip plans without a common table expression.
  override protected val nodePatterns: Seq[TreePattern] =
    if (inputs.exists(_.containsPattern(CTE))) Seq(CTE) else Nil

  def withInputs(newInputs: Seq[LogicalPlan]): FindingRelation =
    if (newInputs.corresponds(inputs)(_ eq _)) {
      this
    } else {
      val changed = copy(inputs = newInputs)
      changed.copyTagsFrom(this)
      changed
    }

  /** False, so that a common table expression is not copied to each place that reads it. */
  override lazy val deterministic: Boolean = false

  /** The same with its rows, which it computes at once from these DataFrames. */
  def found(session: SparkSession, frames: Seq[DataFrame]): LogicalPlan =
    LocalRelation(output, finding.rows(session, frames))

  override def operator(none: Seq[SparkPlan]): SparkPlan = FindingExec(finding, inputs, output)

  override def computeStats(): Statistics = Statistics(sizeInBytes = conf.defaultSizeInBytes)

  override protected def stringArgs: Iterator[Any] = Iterator(finding, output)
}

/**
 * Computes the result once, on the driver. The plans are transient, because tasks do not need them.
 */
private[skewext] case class FindingExec(
    @transient finding: Finding,
    @transient inputs: Seq[LogicalPlan],
    override val output: Seq[Attribute])
    extends LeafExecNode {

  @transient private lazy val found: Array[InternalRow] = SqlInternals.withActive(session) {
    val projection = UnsafeProjection.create(output.map(_.dataType).toArray)
    val frames = inputs.map(SqlInternals.dataFrame(session, _))
    finding.rows(session, frames).map(projection(_).copy(): InternalRow).toArray
  }

  override protected def doExecute(): RDD[InternalRow] =
    sparkContext.parallelize(found.toSeq, numSlices = 1)

  override def executeCollect(): Array[InternalRow] = found

  override def executeTake(n: Int): Array[InternalRow] = found.take(n)

  override protected def stringArgs: Iterator[Any] = Iterator(finding, output)
}

/**
 * Adds the common table expressions that the inputs of a [[FindingRelation]] reference to these
 * inputs, since each input is analyzed and run as a query of its own.
 */
private[skewext] object KeepCommonTables extends Rule[LogicalPlan] with RunsIfDisabled {
  override def apply(plan: LogicalPlan): LogicalPlan = keep(plan, Nil)

  /** @param known the definitions that the plan may reference. */
  private def keep(plan: LogicalPlan, known: Seq[CTERelationDef]): LogicalPlan = plan match {
    case _ if !plan.containsPattern(CTE) => plan
    case tables: WithCTE if !tables.cteDefs.forall(_.resolved) => tables
    case tables: WithCTE =>
      val all = tables.cteDefs.foldLeft(known) { (before, table) =>
        before :+ table.mapChildren(keep(_, before)).asInstanceOf[CTERelationDef]
      }
      tables.withNewChildren(all.drop(known.size) :+ keep(tables.plan, all))
    case f: FindingRelation => f.withInputs(f.inputs.map(withTables(_, known)))
    case other =>
      other
        .mapChildren(keep(_, known))
        .transformExpressionsWithPruning(_.containsAllPatterns(PLAN_EXPRESSION, CTE)) {
          case e: SubqueryExpression =>
            val kept = keep(e.plan, known)
            if (kept eq e.plan) e else e.withNewPlan(kept)
        }
  }

  private def withTables(input: LogicalPlan, known: Seq[CTERelationDef]): LogicalPlan = {
    val kept = keep(input, known)
    val own = kept.collectWithSubqueries { case table: CTERelationDef => table.id }.toSet
    val missing = reached(kept, known.filterNot(table => own(table.id)))
    if (missing.isEmpty) kept else WithCTE(kept, missing)
  }

  /**
   * The definitions that the plan references, directly or through others, in the order of `all`.
   */
  private def reached(plan: LogicalPlan, all: Seq[CTERelationDef]): Seq[CTERelationDef] = {
    def direct(p: LogicalPlan): Set[Long] =
      p.collectWithSubqueries { case ref: CTERelationRef => ref.cteId }.toSet
    all
      .foldRight((direct(plan), Seq.empty[CTERelationDef])) { case (table, (wanted, found)) =>
        if (wanted(table.id)) (wanted ++ direct(table), table +: found) else (wanted, found)
      }
      ._2
  }
}

/**
 * The result of a table function, computed when its rows are read.
 *
 * @param description the text in plans and in Spark's UI, without options, which may be secrets.
 */
private[function] class Finding(description: String, val schema: StructType)(
    val rows: (SparkSession, Seq[DataFrame]) => Seq[InternalRow]) {
  override def toString: String = description
}

private[function] object Finding {

  /** A result that is one text of JSON. */
  def json(description: String, column: String)(
      text: (SparkSession, Seq[DataFrame]) => String): Finding =
    new Finding(description, new StructType().add(column, StringType, nullable = false))(
      (session, inputs) => Seq(InternalRow(UTF8String.fromString(text(session, inputs)))))
}
