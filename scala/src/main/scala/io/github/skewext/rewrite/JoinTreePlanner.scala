package io.github.skewext.rewrite

import scala.collection.concurrent.TrieMap
import scala.collection.mutable

import io.github.skewext.plan.{KeyTypes, MultiFullJoin}

import org.apache.spark.sql.catalyst.expressions.{Left => _, Right => _, _}
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan, Project}
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.catalyst.types.DataTypeUtils
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.DataType

/**
 * The plan of a group as one multi-way join, with the columns of the tree that it stands for.
 *
 * The node shows one key for all inputs and no key of an input of its own. The whole key, a value
 * that is there in every row, is that key. What only some inputs show, `b.k` or a key of a subquery,
 * is that key where one of them has the row, and null elsewhere: a column that is never null in its
 * input tells. Where equal keys may differ (-0.0 and 0.0), or are shown in a narrower type than they
 * are compared in, the inputs' own keys go through the join as columns.
 *
 * @param keepsIds whether columns must keep their ids when Spark has taken away aliases that are redundant,
 *   which those to another name are not
 */
private[skewext] class JoinTreePlanner(group: JoinTree, keepsIds: Boolean) {

  private val inputs = group.inputs.map(new Input(_)).toIndexedSeq

  private val inputOf = inputs.map(input => input.id -> input).toMap

  private val timeZone = Some(SQLConf.get.sessionLocalTimeZone)

  private val keyOutput = JoinTreePlanner.asBefore(group) {
    group.keyTypes.zipWithIndex.map { case (t, j) =>
      AttributeReference(nameOfKey(j), t)()
    }
  }

  private val shownIds = group.shown.map(_.id)

  private val output = group.original.output

  private val terms = output.map(a => group.columns.getOrElse(a.exprId, a))

  /** Columns of inputs that the plan shows in any case. */
  private val used = AttributeSet((terms ++ group.conditions).flatMap(_.references))

  private def nameOfKey(column: Int): String = {
    val name = group.shown.head.keys(column).last match {
      case a: Attribute => a.name
      case Cast(a: Attribute, _, _, _) => a.name
      case _ => s"key_$column"
    }
    if (keepsIds) s"$name@key" else name
  }

  def plan(): (LogicalPlan, MultiFullJoin) = {
    val list = terms.map(unevaluated)
    val conditions = group.conditions.map(unevaluated)
    val separated = MultiFullJoin.separated(inputs.map(_.plan()))
    val renames = separated.map(_._2)
    val keys = inputs.indices.map(i => inputs(i).keyColumns.map(renames(i)))
    val join =
      MultiFullJoin(separated.map(_._1), keys, keys, keyOutput, inputs.map(_.role), None)
    // The inputs' columns, and the keys, as the join shows them.
    def columnsOf(plan: LogicalPlan): AttributeMap[Attribute] = {
      val shown = AttributeMap(plan.output.map(a => a -> a))
      AttributeMap(inputs.indices.flatMap { i =>
        inputs(i).columns.flatMap(a => shown.get(renames(i)(a)).map(a -> _))
      } ++ keyOutput.map(a => a -> shown(a)))
    }
    val filtered = conditions
      .map(resolved(_, columnsOf(join)))
      .reduceOption(And)
      .map(Filter(_, join))
      .getOrElse(join)
    // A filter may say that a column is never null.
    val columns = columnsOf(filtered)
    val projected = output.zip(list).map { case (out, e) => named(out, resolved(e, columns)) }
    (Project(projected, filtered), join)
  }

  private def resolved(e: Expression, columns: AttributeMap[Attribute]): Expression =
    e.transformUp { case a: Attribute =>
      columns.getOrElse(
        a,
        throw new IllegalStateException(s"${a.sql} is no column of the multi-way join"))
    }

  private def named(out: Attribute, e: Expression): NamedExpression = {
    if (!DataTypeUtils.sameType(out.dataType, e.dataType)) {
      throw new IllegalStateException(
        s"${out.sql} is of type ${out.dataType.sql}, and ${e.dataType.sql} in a multi-way join")
    }
    e match {
      case a: Attribute if a.exprId == out.exprId => out.withNullability(a.nullable)
      case _ =>
        // What the tree's plan knows: `WHERE a.k IS NOT NULL`.
        val value = if (e.nullable && !out.nullable) KnownNotNull(e) else e
        Alias(value, out.name)(out.exprId, out.qualifier, Some(out.metadata))
    }
  }

  /** The expression over columns of inputs and the key; notes which columns it needs. */
  private def unevaluated(e: Expression): Expression = e.transformUp {
    case key: ChainKey => shown(key)
    case ChainPresence(ids) => present(ids)
  }

  private def shown(key: ChainKey): Expression = {
    val whole = keyOutput(key.column)
    val isWhole = group.alwaysPresent(key.inputs)
    val showsFirst = ChainKey.isExact(whole.dataType) || (isWhole && key.inputs == shownIds)
    if (showsFirst && KeyTypes.canHold(whole.dataType, key.dataType)) {
      val value =
        if (whole.dataType == key.dataType) whole else Cast(whole, key.dataType, timeZone)
      if (isWhole) value else If(present(key.inputs), value, Literal(null, key.dataType))
    } else {
      val own = key.inputs.map(inputOf(_).keyColumn(key.column, key.dataType))
      if (own.size == 1) own.head else Coalesce(own)
    }
  }

  private def present(ids: Seq[Int]): Expression =
    if (group.alwaysPresent(ids)) Literal.TrueLiteral
    else ids.map(id => IsNotNull(inputOf(id).presence): Expression).reduce(Or)

  /** An input, and the columns that it has to have besides its own. */
  private class Input(input: JoinTreeInput) {

    val id: Int = input.id
    val role = input.role

    private val added = mutable.LinkedHashMap.empty[Expression, Alias]
    private val shownKeys = mutable.Set.empty[ExprId]

    /** A column that is never null in the input, and so tells where the input has no row. */
    lazy val presence: Attribute = {
      val known = input.plan.output.find { a =>
        !a.nullable && used.contains(a) && !input.keys.exists(_.head.semanticEquals(a))
      }
      val column = known.getOrElse(
        added
          .getOrElseUpdate(Literal.TrueLiteral, Alias(Literal.TrueLiteral, s"present@$id")())
          .toAttribute)
      // Above the join the column can be null, and what asks for that must not be simplified.
      column.withNullability(true)
    }

    /** The input's own key, of the type that it has had before it became wider. */
    def keyColumn(column: Int, dataType: DataType): Attribute = {
      val versions = input.keys(column)
      versions
        .find(_.dataType == dataType)
        .getOrElse(Cast(versions.last, dataType, timeZone)) match {
        case a: Attribute =>
          shownKeys += a.exprId
          a.withNullability(true)
        case e =>
          added
            .getOrElseUpdate(e.canonicalized, Alias(e, s"own_key_$column@$id")())
            .toAttribute
            .withNullability(true)
      }
    }

    /** What holds the key; not shown by the join, so a key that is shown as well needs a copy. */
    lazy val keyAliases: Seq[Either[Attribute, Alias]] = input.keys.zipWithIndex.map {
      case ((a: Attribute) :: _, _) if !shownKeys.contains(a.exprId) => Left(a)
      case (key :: _, j) => Right(Alias(key, s"key_$j@$id")())
    }

    def keyColumns: Seq[Attribute] = keyAliases.map(_.fold(identity, _.toAttribute))

    def plan(): LogicalPlan = {
      val extra = added.values.toSeq ++ keyAliases.collect { case Right(alias) => alias }
      if (extra.isEmpty) input.plan else Project(input.plan.output ++ extra, input.plan)
    }

    def columns: Seq[Attribute] = input.plan.output ++ added.values.map(_.toAttribute)
  }
}

private[skewext] object JoinTreePlanner {

  private type Key = (Seq[ExprId], Seq[(String, DataType)])

  /** The key columns that a join's rewrites have, by the tree's columns and the key's. */
  private val Detailed = TreeNodeTag[TrieMap[Key, Seq[Attribute]]]("skewext.keyColumns")

  /**
   * A join may be rewritten many times. Where other predicates are to be pushed into a CTE, Spark takes
   * its plan as it was before, until these predicates stay as they are: about new key columns, they
   * never would.
   */
  def remember(join: LogicalPlan): Unit =
    if (join.getTagValue(Detailed).isEmpty)
      join.setTagValue(Detailed, TrieMap.empty[Key, Seq[Attribute]])

  /** The key columns that the same tree was given before. */
  private def asBefore(group: JoinTree)(made: Seq[Attribute]): Seq[Attribute] = {
    group.top.flatMap(_.getTagValue(Detailed)) match {
      case Some(given) =>
        val key = made.map(a => (a.name, a.dataType))
        given.getOrElseUpdate((group.original.output.map(_.exprId), key), made)
      case None => made
    }
  }
}
