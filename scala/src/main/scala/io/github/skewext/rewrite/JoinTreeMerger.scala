package io.github.skewext.rewrite

import scala.collection.mutable

import io.github.skewext.plan.InputRole.{Excluded, Optional}
import io.github.skewext.plan.RewriteReason.Detailed
import io.github.skewext.plan.{InputRole, KeyTypes, MultiFullJoin, RewriteReason}

import org.apache.spark.sql.catalyst.expressions.{Left => _, Right => _, _}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.trees.TreePattern.PYTHON_UDF
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.skewext.SparkShims
import org.apache.spark.sql.types.{ArrayType, DataType, StructType, UserDefinedType}

/**
 * One side of a join.
 *
 * @param keys what is compared, over the columns of the side's plan; the same number on all sides
 */
private[skewext] case class JoinSide(group: JoinTree, role: InputRole, keys: Seq[Expression])

/**
 * A join of groups on one key, found to be one. The sides' inputs become the inputs of one group. A
 * side of several inputs keeps them apart if
 *
 *  - it is compared by its whole key, by a value that every row has which has a key at all;
 *  - its rows meet others just when one of its inputs' rows would. Optional inputs may stay optional
 *    in a full outer join and on the right of a left one; inputs of which one is required may stay as
 *    they are in an inner join and on the left of a left one; optional ones may all be excluded.
 *
 * If not, the side is one input, of any role and with any key: a join within the join.
 *
 * @param sides with keys in the terms of their groups, columns of the key in the same order
 * @param types the types of the columns of the key
 * @param columnOf which column of the key each of the comparisons was that the join is made of
 */
private[skewext] class JoinTreeMerger private (
    sides: Seq[JoinSide],
    types: Seq[DataType],
    val columnOf: Seq[Int]) {

  /** Whether a side would have to be shuffled once more if this were a join of its own. */
  def isPaying: Boolean = sides.exists { side =>
    !side.group.isSingle && (side.group.isAllOptional || side.keys.exists {
      case key: ChainKey => key.inputs.size > 1
      case _ => false
    })
  }

  def originals: Seq[LogicalPlan] = sides.map(_.group.original)

  /** The group of all inputs; `original` is the join as it stands in the query, over `originals`. */
  def group(original: LogicalPlan, joins: Seq[String]): JoinTree = {
    val parts = apart(sides.map { side =>
      val part = if (side.group.isSingle) keyed(side) else flat(side)
      if (side.role == Optional) absentable(part) else part
    })
    val shown = parts.zip(sides).collect { case (part, side) if side.role.isShown => part }
    JoinTree(
      original = original,
      inputs = parts.flatMap(_.inputs),
      keyTypes = types,
      columns = shown.map(_.columns).reduceOption(_ ++ _).getOrElse(Map.empty),
      keyExpressions = shown.map(_.keyExpressions).reduceOption(_ ++ _).getOrElse(Map.empty),
      computed = shown.map(_.computed).reduceOption(_ ++ _).getOrElse(Set.empty),
      joins = parts.flatMap(_.joins) ++ joins,
      top = Some(original),
      obstacles = sides.flatMap(_.group.obstacles).toList)
  }

  /** A single input, now that it has a key. */
  private def keyed(side: JoinSide): JoinTree = {
    val input = side.group.inputs.head
    val keys = side.keys.zipWithIndex.map { case (key, j) =>
      key -> ChainKey(j, Seq(input.id), key.dataType)
    }
    val withColumns = side.group.copy(
      inputs = Seq(
        input.copy(
          role = side.role,
          keys = side.keys.zip(types).map { case (key, t) => widened(List(key), t) })),
      keyTypes = types,
      columns = keys.collect { case (a: Attribute, key) => a.exprId -> key }.toMap)
    withColumns.copy(keyExpressions = keys.collect {
      case (e, key) if !e.isInstanceOf[Attribute] => withColumns.translate(e).canonicalized -> key
    }.toMap)
  }

  /** A group of several inputs, with the columns of its key in the order and the types of the join. */
  private def flat(side: JoinSide): JoinTree = {
    val group = side.group
    val order = side.keys.map { case key: ChainKey => key.column }
    val inputs = group.inputs.map { input =>
      input.copy(
        role = if (side.role == Excluded) Excluded else input.role,
        keys = order.zip(types).map { case (j, t) => widened(input.keys(j), t) })
    }
    if (order == order.indices) {
      group.copy(inputs = inputs, keyTypes = types)
    } else {
      val place = order.zipWithIndex.toMap
      def reorder(e: Expression): Expression = e.transform { case key: ChainKey =>
        key.copy(column = place(key.column))
      }
      group.copy(
        inputs = inputs,
        keyTypes = types,
        columns = group.columns.map { case (id, e) => id -> reorder(e) },
        keyExpressions = group.keyExpressions.map { case (e, key) =>
          reorder(e).canonicalized -> key.copy(column = place(key.column))
        })
    }
  }

  /**
   * What the sides show has ids of its own. But an alias on one side may hide a column that another side
   * has under the same id: a table that is joined with itself. In the terms of the inputs these would be
   * one column, and what is said of the hidden one would be taken for the other.
   */
  private def apart(parts: Seq[JoinTree]): Seq[JoinTree] = {
    val taken = mutable.HashSet.empty[ExprId]
    parts.map { part =>
      val ids = part.inputs.flatMap(_.plan.output.map(_.exprId))
      val separate = if (ids.exists(taken.contains)) renewed(part) else part
      taken ++= ids
      val shown = part.original.output.map(_.exprId).toSet
      separate.copy(
        columns = separate.columns.filter { case (id, _) => shown(id) },
        computed = separate.computed.filter(shown))
    }
  }

  /** A group whose inputs have other ids for their columns. */
  private def renewed(group: JoinTree): JoinTree = {
    val renamed = group.inputs.map(input => MultiFullJoin.withNewIds(input.plan, input.id))
    val newOf = AttributeMap(group.inputs.zip(renamed).flatMap { case (input, (_, columnOf)) =>
      input.plan.output.map(a => a -> columnOf(a))
    })
    def over(e: Expression): Expression = e.transform { case a: Attribute => newOf.getOrElse(a, a) }
    group.copy(
      inputs = group.inputs.zip(renamed).map { case (input, (plan, _)) =>
        input.copy(plan = plan, keys = input.keys.map(_.map(over)))
      },
      columns = newOf.map { case (a, b) => a.exprId -> (b: Expression) }.toMap ++
        group.columns.map { case (id, e) => id -> over(e) },
      keyExpressions = group.keyExpressions.map { case (e, key) => over(e).canonicalized -> key },
      conditions = group.conditions.map(over))
  }

  private def widened(key: List[Expression], to: DataType): List[Expression] =
    if (key.head.dataType == to) key
    else Cast(key.head, to, Some(SQLConf.get.sessionLocalTimeZone)) :: key

  /** Columns that are computed have to be null where no input of the group has the row. */
  private def absentable(group: JoinTree): JoinTree = {
    val guarded = group.computed.toSeq.flatMap { id =>
      val e = group.columns(id)
      if (JoinTree.isNullOnNulls(e)) None
      else Some(id -> If(ChainPresence(group.shown.map(_.id)), e, Literal(null, e.dataType)))
    }
    group.copy(columns = group.columns ++ guarded, computed = Set.empty)
  }
}

private[skewext] object JoinTreeMerger {

  /**
   * The join of the sides; or why it is none on one key.
   *
   * @param nest makes one input of a group that cannot stay several, for a reason
   */
  def of(
      sides: Seq[JoinSide],
      nest: (JoinTree, Detailed) => JoinTree): Either[Detailed, JoinTreeMerger] = {
    val taken = sides.map { side =>
      if (side.group.isSingle) {
        side
      } else {
        wholeKey(side) match {
          case Right(keys) => side.copy(keys = keys)
          case Left(why) => side.copy(group = nest(side.group, why))
        }
      }
    }
    val comparisons = taken.map(_.keys).transpose
    val keyColumns = inOrderOfLargest(taken, distinct(comparisons))
    if (keyColumns.transpose.exists(side => side.map(nameOf).distinct.size < side.size)) {
      Left(Detailed(RewriteReason.RepeatedKey, None))
    } else {
      val types = keyColumns.indices.map { p =>
        commonType(keyColumns(p).zip(taken).flatMap {
          case (key: ChainKey, side) => Seq(key.dataType, side.group.keyTypes(key.column))
          case (key, _) => Seq(key.dataType)
        })
      }
      types.collectFirst { case Left(why) => why }.toLeft {
        new JoinTreeMerger(
          taken.zip(keyColumns.transpose).map { case (side, keys) => side.copy(keys = keys) },
          types.collect { case Right(t) => t },
          comparisons.map(names(_)).map(keyColumns.map(names(_)).indexOf(_)))
      }
    }
  }

  /** What a side of several inputs is compared by, if it can keep them apart. */
  private def wholeKey(side: JoinSide): Either[Detailed, Seq[ChainKey]] = {
    val group = side.group
    val keys = side.keys.map(group.translate)
    val fits = side.role match {
      case Optional | Excluded => group.isAllOptional
      case _ => group.isAnchored
    }
    val notWhole = side.keys.zip(keys).collectFirst {
      case (e, key: ChainKey) if !group.alwaysPresent(key.inputs) =>
        Detailed(RewriteReason.PartialKey, Some(e.sql))
      case (e, cast: Cast) if cast.child.isInstanceOf[ChainKey] =>
        Detailed(RewriteReason.LossyCast, Some(e.sql))
      case (e, c: Coalesce) if c.children.forall(_.isInstanceOf[ChainKey]) =>
        Detailed(RewriteReason.DifferentKeys, Some(e.sql))
      case (e, t) if !t.isInstanceOf[ChainKey] && t.exists(_.isInstanceOf[ChainKey]) =>
        Detailed(RewriteReason.KeyExpression, Some(e.sql))
      case (e, t) if !t.isInstanceOf[ChainKey] =>
        Detailed(RewriteReason.DifferentKeys, Some(e.sql))
    }
    lazy val columns = keys.collect { case key: ChainKey => key }
    if (group.conditions.nonEmpty) {
      Left(Detailed(RewriteReason.FilterBetween, None))
    } else if (notWhole.isDefined) {
      Left(notWhole.get)
    } else if (columns.map(_.column).distinct.size < group.keyTypes.size) {
      Left(Detailed(RewriteReason.DifferentKeys, None))
    } else if (!fits) {
      Left(Detailed(RewriteReason.RolesDiffer, None))
    } else if (side.role == Optional &&
      group.computed.exists(id => group.columns(id).containsPattern(PYTHON_UDF))) {
      Left(Detailed(RewriteReason.PythonFunction, None))
    } else {
      Right(columns)
    }
  }

  /** `ON a.k = b.k AND b.k = a.k` compares once. */
  private def distinct(columns: Seq[Seq[Expression]]): Seq[Seq[Expression]] =
    columns.foldLeft(Vector.empty[Seq[Expression]]) { (done, column) =>
      if (done.exists(names(_) == names(column))) done else done :+ column
    }

  private def names(column: Seq[Expression]): Seq[Any] = column.map(nameOf)

  private def nameOf(key: Expression): Any = key match {
    case key: ChainKey => key.column
    case e => e.canonicalized
  }

  /** In the order that the side with most inputs has them, so that it can stay as it is. */
  private def inOrderOfLargest(
      sides: Seq[JoinSide],
      columns: Seq[Seq[Expression]]): Seq[Seq[Expression]] = {
    val largest =
      sides.indices.maxBy(i => if (sides(i).group.isSingle) 0 else sides(i).group.inputs.size)
    columns.sortBy(_(largest) match {
      case key: ChainKey => key.column
      case _ => 0
    })
  }

  /** The widest of the types, if casts to it keep the others' values. */
  private def commonType(types: Seq[DataType]): Either[Detailed, DataType] = {
    val widest = types.tail.foldLeft(Option(types.head)) {
      case (Some(a), b) if a == b || KeyTypes.canHold(b, a) => Some(a)
      case (Some(a), b) if KeyTypes.canHold(a, b) => Some(b)
      case _ => None
    }
    widest match {
      case Some(_: UserDefinedType[_]) | None =>
        Left(Detailed(RewriteReason.KeyType, Some(types.map(_.sql).distinct.mkString(", "))))
      case Some(t)
          if !KeyTypes.hasOrder(t) || types.exists(u => u != t && isNested(u)) ||
            SparkShims.hasCollation(t) =>
        Left(Detailed(RewriteReason.KeyType, Some(t.sql)))
      case Some(t) => Right(t)
    }
  }

  /** Types of which two may be the same type but for nulls in them, so that a cast is none. */
  private def isNested(t: DataType): Boolean = t match {
    case _: ArrayType | _: StructType => true
    case _ => false
  }
}
