package io.github.skewext.rewrite

import io.github.skewext.plan.InputRole.{Optional, Required}
import io.github.skewext.plan.RewriteReason.Detailed
import io.github.skewext.plan.{InputRole, KeyTypes}

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.DataType

/**
 * One input of a group.
 *
 * @param id tells the inputs of all groups apart
 * @param keys for every column of the key what is compared, over the columns of `plan`: the last of
 *             its types first, then the narrower ones that it was cast from
 */
private[skewext] case class JoinTreeInput(
    id: Int,
    plan: LogicalPlan,
    role: InputRole,
    keys: Seq[List[Expression]])

/**
 * A tree of joins on one key: as it stands in the query, and as one multi-way join. Its simplest form
 * is a plan of any kind, an input that has not met another yet.
 *
 * What the tree shows is said in terms of the inputs' columns, as they come out of a multi-way join:
 * by themselves, or as keys ([[ChainKey]]) and expressions over both. So a group can be joined with
 * another one without looking at its plan again.
 *
 * @param original the tree as it stands, with what is below its inputs rewritten
 * @param keyTypes the types of the key's columns; empty if there is only one input
 * @param columns what the tree's columns are, where they are not columns of an input as they are
 * @param keyExpressions what else is an input's key: `upper(a.k)`, in its canonical form
 * @param computed columns that may have a value where no input of the group has the row
 * @param conditions what rows of the join have to fulfil to be rows of the tree
 * @param joins the types of the joins of the tree
 * @param paying whether some of them would have to be shuffled for another
 * @param top the uppermost join of `original`
 * @param obstacles why there are not more inputs, the uppermost reason first
 */
private[skewext] case class JoinTree(
    original: LogicalPlan,
    inputs: Seq[JoinTreeInput],
    keyTypes: Seq[DataType] = Nil,
    columns: Map[ExprId, Expression] = Map.empty,
    keyExpressions: Map[Expression, ChainKey] = Map.empty,
    computed: Set[ExprId] = Set.empty,
    conditions: Seq[Expression] = Nil,
    joins: Seq[String] = Nil,
    top: Option[LogicalPlan] = None,
    obstacles: List[Detailed] = Nil) {

  def isSingle: Boolean = keyTypes.isEmpty

  lazy val shown: Seq[JoinTreeInput] = inputs.filter(_.role.isShown)

  /** Whether every row of the group has a row of some input for certain. */
  lazy val isAnchored: Boolean = inputs.exists(_.role == Required)

  lazy val isAllOptional: Boolean = inputs.forall(_.role == Optional)

  private lazy val requiredIds = inputs.filter(_.role == Required).map(_.id).toSet

  /** Whether one of these inputs has the row, whatever row of the group it is. */
  def alwaysPresent(ids: Seq[Int]): Boolean =
    ids.exists(requiredIds.contains) || {
      lazy val set = ids.toSet
      !isAnchored && ids.size >= shown.size && shown.forall(input => set.contains(input.id))
    }

  /** Whether rows come out in which this column of the key is null. */
  private def keyIsNullable(column: Int): Boolean = {
    val roles = inputs.map(_.role)
    inputs.indices.exists { i =>
      inputs(i).keys(column).head.nullable && InputRole.emitsNullKeys(roles, i)
    }
  }

  /** An expression over the columns of the tree, in the terms of the group. */
  def translate(e: Expression): Expression = e match {
    case a: Attribute => columns.getOrElse(a.exprId, a)
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
        if alwaysPresent(key.inputs) && ChainKey.isExact(key.dataType) =>
      key.copy(inputs = ids)
    case other if keyExpressions.nonEmpty => keyExpressions.getOrElse(other.canonicalized, other)
    case other => other
  }

  private lazy val inputOfNeverNull: Map[ExprId, Int] =
    shown.flatMap(input => input.plan.output.filterNot(_.nullable).map(_.exprId -> input.id)).toMap

  /** How a plan that was made of a group asks whether some of its inputs have the row. */
  private object Presence {
    def unapply(e: Expression): Option[Seq[Int]] = e match {
      case IsNotNull(a: Attribute) => inputOfNeverNull.get(a.exprId).map(Seq(_))
      case Or(Presence(left), Presence(right)) => Some((left ++ right).distinct)
      case _ => None
    }
  }

  /**
   * Keys of one column that follow each other are one key. What follows a key that every row has
   * is never asked, unless that key can be null.
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

private[skewext] object JoinTree {

  /** Whether a cast keeps different values different and equal ones equal. */
  def keepsValues(cast: Cast): Boolean =
    KeyTypes.canHold(cast.child.dataType, cast.dataType) &&
      // Keys are cast in the session's time zone when all inputs get the wider type.
      (!cast.needsTimeZone || cast.timeZoneId.contains(SQLConf.get.sessionLocalTimeZone))

  /**
   * Whether an expression of a group is null where no input of the group has the row, so that it can
   * be computed above a join that the group is optional in.
   */
  def isNullOnNulls(e: Expression): Boolean = e match {
    case _: Attribute | _: ChainKey => true
    case _
        if e.exists(x =>
          x.isInstanceOf[UserDefinedExpression] || x.isInstanceOf[NonSQLExpression]) =>
      false
    case _ =>
      val ofNulls = e.transform {
        case a: Attribute => Literal(null, a.dataType)
        case k: ChainKey => Literal(null, k.dataType)
        case _: ChainPresence => Literal.FalseLiteral
      }
      scala.util.Try(ofNulls.eval()).toOption.contains(null)
  }
}
