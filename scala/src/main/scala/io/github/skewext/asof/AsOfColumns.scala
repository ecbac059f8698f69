package io.github.skewext.asof

import io.github.skewext.facts.{ComputedBelow, KeptInPlace, SafeToPush}
import io.github.skewext.inputs.KeyTypes

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LocalRelation, LogicalPlan, Project}
import org.apache.spark.sql.skewext.SqlInternals
import org.apache.spark.sql.{AnalysisException, SparkSession}

/** Resolves the arguments of [[AsOfJoinBuilder]] and [[LatestRowsBuilder]] by Spark's analyzer. */
private[skewext] class AsOfColumns(session: SparkSession) {

  /**
   * An expression over these columns, with Spark's coercions.
   *
   * @param problem the beginning of the error if the expression cannot be analyzed.
   */
  def resolved(columns: Seq[Attribute], expression: Expression, problem: => String): Expression = {
    val project = Project(Seq(Alias(expression, "e")()), LocalRelation(columns))
    val analyzed =
      try session.sessionState.executePlan(project).analyzed
      catch {
        case e: AnalysisException =>
          // The whole message has the plan, whose columns the user does not know.
          throw SqlInternals.analysisError(s"$problem: ${e.getSimpleMessage}", Some(e))
      }
    analyzed match {
      case Project(Seq(Alias(e, _)), _: LocalRelation)
          if e.deterministic && !e.exists(_.isInstanceOf[PlanExpression[_]]) =>
        e
      case _ =>
        throw SqlInternals.analysisError(
          s"$problem: it must be computed from the columns of one row, and always be the same.")
    }
  }

  /**
   * The order in which the first of several rows counts, and the plan with the columns of the order.
   * A column without a direction means that its greatest value counts, and null is the smallest.
   *
   * @param input     the rows, with the names that the user knows.
   * @param wanted    the columns of the order; if None, all columns besides `others`.
   * @param plan      the input, or the same rows under other ids and names.
   * @param newColumn from the columns of `input` to those of `plan`.
   */
  def order(
      input: LogicalPlan,
      wanted: Option[Seq[Expression]],
      others: Seq[Attribute],
      what: String)(
      plan: LogicalPlan = input,
      newColumn: Attribute => Attribute = identity): (LogicalPlan, Seq[SortOrder]) = {
    val orders = wanted match {
      case Some(columns) =>
        columns.map {
          case s: SortOrder =>
            s.copy(child = ofInput(input, s.child, what), sameOrderExpressions = Nil)
          case column => AsOfColumns.greatest(ofInput(input, column, what))
        }
      case None =>
        input.output.filterNot(AttributeSet(others).contains).map(AsOfColumns.greatest)
    }
    orders.map(_.child).filterNot(e => KeyTypes.hasOrder(e.dataType)).foreach { e =>
      val cure =
        if (wanted.isDefined) "Name another column."
        else "Name the columns that decide with ties=, or drop the column."
      throw SqlInternals.analysisError(
        s"$what cannot be ordered by column '${AsOfColumns.name(e)}' of type ${e.dataType.sql}. $cure")
    }
    // Computed columns are columns of the plan, so that Spark plans functions of any kind.
    val ofPlan =
      orders.map(o => o.copy(child = o.child.transform { case a: Attribute => newColumn(a) }))
    val aliases = ofPlan.map(_.child).filterNot(_.isInstanceOf[Attribute]).map { e =>
      Alias(e, AsOfColumns.name(e))()
    }
    val computed = aliases.map(a => a.child.canonicalized -> a.toAttribute).toMap
    val below = if (aliases.isEmpty) plan else Project(plan.output ++ aliases, plan)
    below -> ofPlan.map(o => o.copy(child = computed.getOrElse(o.child.canonicalized, o.child)))
  }

  private def ofInput(input: LogicalPlan, column: Expression, what: String): Expression =
    resolved(input.output, column, s"$what cannot be ordered by ${column.sql}")
}

private[skewext] object AsOfColumns {

  def greatest(e: Expression): SortOrder = SortOrder(e, Descending, NullsLast, Nil)

  private def name(e: Expression): String = e match {
    case a: Attribute => a.name
    case other => other.sql
  }

  /** The versions that can match a row: a null key or time matches nothing. */
  def comparable(versions: LogicalPlan, compared: Seq[Expression]): LogicalPlan = {
    val (safe, others) = compared.filter(_.nullable).partition(mayFilter(versions, _))
    val (withOthers, kept) = KeptInPlace.all(notNull(safe, versions), others)
    if (kept.isEmpty) withOthers else Project(versions.output, notNull(kept, withOthers))
  }

  /** The rows of a spine that can match a version, as far as a filter can select them. */
  def matchable(spine: LogicalPlan, compared: Seq[Expression]): LogicalPlan =
    notNull(compared.filter(e => e.nullable && mayFilter(spine, e)), spine)

  /** Whether a filter above the rows neither fails nor calls a Python function once more. */
  private def mayFilter(rows: LogicalPlan, e: Expression): Boolean =
    SafeToPush(rows, e) && !ComputedBelow.byPython(rows, e.references)

  private def notNull(compared: Seq[Expression], versions: LogicalPlan): LogicalPlan =
    compared.map(IsNotNull(_): Expression).reduceOption(And).fold(versions)(Filter(_, versions))

  def fail(message: String): Nothing = throw SqlInternals.analysisError(message)
}
