package io.github.skewext.rewrite

import io.github.skewext.facts.ComparedByBytes
import io.github.skewext.inputs.KeyTypes
import io.github.skewext.join.InputRole
import io.github.skewext.join.InputRole.{Optional, Required}
import io.github.skewext.rewrite.RewriteReason.Detailed

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types._

/**
 * One input of a tree.
 *
 * @param id an id that is unique among the inputs of all trees.
 * @param keys for every column of the key, the compared expressions over the columns of `plan`:
 *             that of the widest type first, then those of the narrower types from which it was
 *             cast.
 */
private[skewext] case class JoinTreeInput(
    id: Int,
    plan: LogicalPlan,
    role: InputRole,
    keys: Seq[List[Expression]])

/**
 * A tree of joins on one key, both as in the query and as one multi-way join. The simplest tree is
 * a plan of any kind: an input that is not yet joined with another one.
 *
 * The columns of a tree are defined over the columns that its inputs have above a multi-way join.
 * They are such columns, keys ([[ChainKey]]), or expressions over both. So a tree can be joined
 * with another one without another analysis of its plan.
 *
 * @param original the tree as in the query, with rewritten plans below its inputs.
 * @param keyTypes the types of the key columns; empty for a single input.
 * @param conditions the predicates that the rows of the join must satisfy to be rows of the tree.
 * @param joins the types of the joins of the tree.
 * @param top the topmost join of `original`.
 * @param obstacles the reasons why there are not more inputs, the topmost reason first.
 */
private[skewext] case class JoinTree(
    original: LogicalPlan,
    inputs: Seq[JoinTreeInput],
    keyTypes: Seq[DataType] = Nil,
    columns: TreeColumns = TreeColumns(),
    conditions: Seq[Expression] = Nil,
    joins: Seq[String] = Nil,
    top: Option[LogicalPlan] = None,
    obstacles: List[Detailed] = Nil) {

  def isSingle: Boolean = keyTypes.isEmpty

  lazy val shown: Seq[JoinTreeInput] = inputs.filter(_.role.isShown)

  /** Whether an input is required, so that every row of the tree has a row of it. */
  lazy val isAnchored: Boolean = inputs.exists(_.role == Required)

  lazy val isAllOptional: Boolean = inputs.forall(_.role == Optional)

  private lazy val requiredIds = inputs.filter(_.role == Required).map(_.id).toSet

  /** Whether every row of the tree has a row of one of these inputs. */
  def alwaysPresent(ids: Seq[Int]): Boolean =
    ids.exists(requiredIds.contains) || {
      lazy val set = ids.toSet
      !isAnchored && ids.size >= shown.size && shown.forall(input => set.contains(input.id))
    }

  /** Whether this key column is null in some rows of the tree. */
  private def keyIsNullable(column: Int): Boolean = {
    val roles = inputs.map(_.role)
    inputs.indices.exists { i =>
      inputs(i).keys(column).head.nullable && InputRole.emitsNullKeys(roles, i)
    }
  }

  /**
   * Translates an expression over the tree's columns into one over its inputs' columns and keys.
   */
  def translate(e: Expression): Expression = e match {
    case a: Attribute => columns.definitions.getOrElse(a.exprId, a)
    case _ => simplify(e.mapChildren(translate))
  }

  private def simplify(e: Expression): Expression = e match {
    case Coalesce(values) => coalesce(values)
    case If(IsNull(a), b, c) if a.semanticEquals(c) => coalesce(Seq(a, b))
    case If(IsNotNull(a), b, c) if a.semanticEquals(b) => coalesce(Seq(a, c))
    case CaseWhen(Seq((IsNull(a), b)), Some(c)) if a.semanticEquals(c) => coalesce(Seq(a, b))
    case CaseWhen(Seq((IsNotNull(a), b)), Some(c)) if a.semanticEquals(b) => coalesce(Seq(a, c))
    case cast @ Cast(key: ChainKey, to, _, _) if JoinTree.keepsValues(cast) =>
      key.copy(dataType = to)
    case If(Presence(ids), key: ChainKey, Literal(null, _))
        if alwaysPresent(key.inputs) && ComparedByBytes.isExact(key.dataType) &&
          key.dataType == keyTypes(key.column) =>
      key.copy(inputs = ids)
    case other if columns.keyExpressions.nonEmpty =>
      columns.keyExpressions.getOrElse(other.canonicalized, other)
    case other => other
  }

  private lazy val inputOfNeverNull: Map[ExprId, Int] =
    shown.flatMap(input => input.plan.output.filterNot(_.nullable).map(_.exprId -> input.id)).toMap

  /** Matches a test whether some inputs have the row, as [[JoinTreePlanner]] writes it. */
  private object Presence {
    def unapply(e: Expression): Option[Seq[Int]] = e match {
      case IsNotNull(a: Attribute) => inputOfNeverNull.get(a.exprId).map(Seq(_))
      case Or(Presence(left), Presence(right)) => Some((left ++ right).distinct)
      case _ => None
    }
  }

  /**
   * Merges consecutive keys of one column into one key. Values after a key that every row has are
   * never used, unless that key can be null.
   */
  private def coalesce(values: Seq[Expression]): Expression = {
    val flat = values.flatMap {
      case Coalesce(inner) => inner
      case value => Seq(value)
    }
    val merged = flat.tail.foldLeft(List(flat.head)) {
      case ((a: ChainKey) :: rest, b: ChainKey)
          if a.column == b.column && a.dataType == b.dataType =>
        a.copy(inputs = (a.inputs ++ b.inputs).distinct) :: rest
      case (done, value) => value :: done
    }
    merged.reverse match {
      case Seq(one) => one
      case (key: ChainKey) :: _ if alwaysPresent(key.inputs) && !keyIsNullable(key.column) => key
      case several => Coalesce(several)
    }
  }
}

/**
 * The columns of a tree.
 *
 * @param definitions the definitions of the columns, except those that are input columns.
 * @param keyExpressions other expressions that are an input's key, such as `upper(a.k)`, in their
 *                       canonical form.
 * @param computed columns that may have a value if no input of the tree has the row.
 */
private[skewext] case class TreeColumns(
    definitions: Map[ExprId, Expression] = Map.empty,
    keyExpressions: Map[Expression, ChainKey] = Map.empty,
    computed: Set[ExprId] = Set.empty) {

  def ++(others: TreeColumns): TreeColumns = TreeColumns(
    definitions ++ others.definitions,
    keyExpressions ++ others.keyExpressions,
    computed ++ others.computed)

  def defining(more: Iterable[(ExprId, Expression)]): TreeColumns =
    copy(definitions = definitions ++ more)
}

private[skewext] object JoinTree {

  /** Whether a cast keeps different values different, and equal values equal. */
  def keepsValues(cast: Cast): Boolean =
    KeyTypes.canHold(cast.child.dataType, cast.dataType) &&
      // If inputs have different types, keys are cast to the widest one in the session's time zone.
      (!cast.needsTimeZone || cast.timeZoneId.contains(SQLConf.get.sessionLocalTimeZone))

  /**
   * Whether an expression of a tree is null if no input of the tree has the row. Then it can be
   * computed above a join in which the tree is optional.
   */
  def isNullOnNulls(e: Expression): Boolean = e match {
    case _: Attribute | _: ChainKey => true
    case _
        if e.exists(x =>
          x.isInstanceOf[UserDefinedExpression] || x.isInstanceOf[NonSQLExpression] ||
            // It would say of a null that it is none.
            x.isInstanceOf[KnownNotNull]) =>
      false
    case _ =>
      val ofNulls = e.transform {
        case a: Attribute => Literal(null, a.dataType)
        case k: ChainKey => Literal(null, k.dataType)
        case _: ChainPresence => Literal.FalseLiteral
      }
      ofNulls.nullable && scala.util.Try(ofNulls.eval()).toOption.contains(null)
  }
}

/**
 * A key column of a tree, as some of its inputs show it: the value of the first of `inputs` that
 * has the row, or null if none has it. `coalesce(a.k, b.k)` is such a column, and so is `a.k`. It
 * replaces these expressions in the analysis of a chain, and occurs in no plan.
 *
 * @param column the position of the column in the key.
 * @param inputs the ids of the inputs, in the order of the `coalesce`.
 * @param dataType the type of the column here; the key may have a wider one.
 */
private[skewext] case class ChainKey(column: Int, inputs: Seq[Int], dataType: DataType)
    extends LeafExpression
    with Unevaluable {
  override def nullable: Boolean = true
}

/** Whether one of these inputs has the row. Like [[ChainKey]], it occurs in no plan. */
private[skewext] case class ChainPresence(inputs: Seq[Int])
    extends LeafExpression
    with Unevaluable {
  override def nullable: Boolean = false
  override def dataType: DataType = BooleanType
}
