package io.github.skewext.rewrite

import scala.collection.concurrent.TrieMap
import scala.collection.mutable

import io.github.skewext.facts.ComparedByBytes
import io.github.skewext.inputs.{KeyTypes, NewIds}
import io.github.skewext.join.MultiFullJoin

import org.apache.spark.sql.catalyst.expressions.{Left => _, Right => _, _}
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan, Project}
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.catalyst.types.DataTypeUtils
import org.apache.spark.sql.catalyst.util.{METADATA_COL_ATTR_KEY, MetadataColumnHelper}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.{DataType, Metadata, MetadataBuilder}

/**
 * Plans a tree as one multi-way join, with the output columns of the tree.
 *
 * The node has one key for all inputs and no keys of single inputs. A key of the tree that is
 * present in every row is that key. A key of only some inputs, such as `b.k` or the key of a
 * subquery, is that key if one of them has the row, and null otherwise. A column that is never null
 * in its input shows whether the input has the row. The inputs' own keys go through the join as
 * columns if equal keys may differ (-0.0 and 0.0), or if the query shows a narrower type than the
 * join compares.
 *
 * @param keepsIds whether columns must keep their ids after Spark has removed redundant aliases. An
 *                 alias with another name is not redundant.
 */
private[skewext] class JoinTreePlanner(group: JoinTree, keepsIds: Boolean) {

  private val inputs = group.inputs.map(new Input(_)).toIndexedSeq

  private val inputOf = inputs.map(input => input.id -> input).toMap

  private val timeZone = Some(SQLConf.get.sessionLocalTimeZone)

  // Not a lazy list: inputs are planned when all terms are known.
  private val output = group.original.output.toIndexedSeq

  private val terms = output.map(a => group.columns.definitions.getOrElse(a.exprId, a))

  private val keyOutput = JoinTreePlanner.asBefore(group) {
    group.keyTypes.zipWithIndex.map { case (t, j) =>
      AttributeReference(nameOfKey(j), t)()
    }
  }

  private val shownIds = group.shown.map(_.id)

  /** The input columns that the plan reads in any case. */
  private val used = AttributeSet((terms ++ group.conditions).flatMap(_.references))

  private def nameOfKey(column: Int): String = {
    val name = group.shown.head.keys(column).last match {
      case a: Attribute => a.name
      case Cast(a: Attribute, _, _, _) => a.name
      case _ => s"key_$column"
    }
    if (keepsIds || isRepeated(column)) NewIds.newName(name, "key") else name
  }

  /**
   * Whether several columns of the query may be this key. As aliases with its name they would be
   * redundant for Spark, which then returns the key twice. From Spark 4.1 on, that is invalid in a
   * branch of a union.
   */
  private def isRepeated(column: Int): Boolean =
    terms.count(_.exists { case key: ChainKey => key.column == column; case _ => false }) > 1

  /** Ids of columns of the query that are neither a key of the input nor a column with this id. */
  private def takenIds(input: Input): Set[ExprId] = output
    .zip(terms)
    .collect { case (out, e) if !e.semanticEquals(out) && !input.hasKey(e) => out.exprId }
    .toSet

  def plan(): (LogicalPlan, MultiFullJoin) = {
    val list = terms.map(unevaluated)
    val conditions = group.conditions.map(unevaluated)
    val separated = NewIds.separated(inputs.map(_.plan()), i => takenIds(inputs(i)))
    val renames = separated.map(_._2)
    val keys = inputs.indices.map(i => inputs(i).keyColumns.map(renames(i)))
    val join =
      MultiFullJoin(separated.map(_._1), keys, keys, keyOutput, inputs.map(_.role), None)
    // Maps the columns of the inputs, and the keys, to the output of the join.
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
    // A filter may make columns not nullable.
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

  /**
   * The metadata of a column without the marks of one that USING hides. Spark keeps aliases with
   * such marks, also one of a column for itself, which a scan of a cached table takes for a column.
   */
  private def withoutMarks(column: Attribute): Metadata =
    new MetadataBuilder()
      .withMetadata(column.markAsAllowAnyAccess().metadata)
      .remove(METADATA_COL_ATTR_KEY)
      .build()

  private def named(out: Attribute, e: Expression): NamedExpression = {
    if (!DataTypeUtils.sameType(out.dataType, e.dataType)) {
      throw new IllegalStateException(
        s"${out.sql} is of type ${out.dataType.sql}, and ${e.dataType.sql} in a multi-way join")
    }
    e match {
      case a: Attribute if a.exprId == out.exprId => out.withNullability(a.nullable)
      case _ =>
        // The original plan may know this, for example from `WHERE a.k IS NOT NULL`.
        val value = if (e.nullable && !out.nullable) KnownNotNull(e) else e
        Alias(value, out.name)(out.exprId, out.qualifier, Some(withoutMarks(out)))
    }
  }

  /**
   * Translates the expression to columns of the inputs and keys of the join. It records the columns
   * that inputs must add for that.
   */
  private def unevaluated(e: Expression): Expression = e.transformUp {
    case key: ChainKey => shown(key)
    case ChainPresence(ids) => present(ids)
  }

  private def shown(key: ChainKey): Expression = {
    val whole = keyOutput(key.column)
    val isWhole = group.alwaysPresent(key.inputs)
    val showsFirst = ComparedByBytes.isExact(whole.dataType) || (isWhole && key.inputs == shownIds)
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

  /** An input, with the columns that it must add to its own. */
  private class Input(input: JoinTreeInput) {

    val id: Int = input.id
    val role = input.role

    /** Whether the expression is a key that the input has, possibly in another type. */
    def hasKey(e: Expression): Boolean = e match {
      case key: ChainKey => key.inputs.contains(id)
      case Cast(key: ChainKey, _, _, _) => key.inputs.contains(id)
      case _ => false
    }

    private val added = mutable.LinkedHashMap.empty[Expression, Alias]
    private val shownKeys = mutable.Set.empty[ExprId]

    /**
     * A column that is never null in the input, and therefore shows whether the input has the row.
     */
    lazy val presence: Attribute = {
      val known = input.plan.output.find { a =>
        !a.nullable && used.contains(a) && !input.keys.exists(_.head.semanticEquals(a))
      }
      val column = known.getOrElse(
        added
          .getOrElseUpdate(Literal.TrueLiteral, Alias(Literal.TrueLiteral, s"present@$id")())
          .toAttribute)
      // The column is nullable above the join, and Spark must not simplify a test for null.
      column.withNullability(true)
    }

    /** The input's own key, in its type before it was widened. */
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

    /**
     * The key columns. The join does not return them, so a key that is also returned has a copy.
     */
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

  /**
   * The key columns in earlier rewrites of a join, by the columns of the tree and the names and
   * types of the key.
   */
  private val KeyColumns = TreeNodeTag[TrieMap[Key, Seq[Attribute]]]("skewext.keyColumns")

  /**
   * Makes later rewrites of this join use the same key columns. While Spark pushes predicates into
   * a CTE, it starts again from an earlier plan of the CTE, until the predicates do not change.
   * With new key columns in each rewrite, they would always change.
   */
  def remember(join: LogicalPlan): Unit =
    if (join.getTagValue(KeyColumns).isEmpty)
      join.setTagValue(KeyColumns, TrieMap.empty[Key, Seq[Attribute]])

  /** The key columns that the same tree had in an earlier rewrite. */
  private def asBefore(group: JoinTree)(made: Seq[Attribute]): Seq[Attribute] = {
    group.top.flatMap(_.getTagValue(KeyColumns)) match {
      case Some(given) =>
        val key = made.map(a => (a.name, a.dataType))
        given.getOrElseUpdate((group.original.output.map(_.exprId), key), made)
      case None => made
    }
  }
}
