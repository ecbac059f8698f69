package io.github.skewext.rewrite

import scala.collection.mutable

import io.github.skewext.facts.{ComparedByBytes, ComputedBelow}
import io.github.skewext.inputs.{KeyTypes, NewIds}
import io.github.skewext.join.InputRole
import io.github.skewext.join.InputRole.{Excluded, Optional, Required}
import io.github.skewext.rewrite.RewriteReason.Detailed

import org.apache.spark.sql.catalyst.expressions.{Left => _, Right => _, _}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.{ArrayType, DataType, StructType, UserDefinedType}

/**
 * One side of a join.
 *
 * @param keys the compared expressions over the columns of the side's plan; the same number on all
 *             sides.
 */
private[skewext] case class JoinSide(group: JoinTree, role: InputRole, keys: Seq[Expression])

/**
 * A join of trees on one key. The inputs of the sides become inputs of one tree. A side with
 * several inputs keeps them separate if
 *
 *  - the join compares its whole key: a value that each of its rows has, unless the row has no key;
 *  - a row of the side has a match exactly if a row of one of its inputs would have one. Optional
 *    inputs may stay optional in a full outer join and on the right of a left one. In an anti join
 *    they may all become excluded. If an input is required, all inputs may keep their roles in an
 *    inner join and on the left of a left one.
 *
 * Otherwise the side becomes a single input, of any role and with any key: a nested join.
 *
 * @param sides the sides, with keys in terms of their trees and in the same order of key columns.
 * @param types the types of the key columns.
 * @param columnOf for each comparison in the join condition, the key column.
 * @param hasOwnKeys whether each key column of a side is an expression that the join compares.
 */
private[skewext] class JoinTreeMerger private (
    sides: Seq[JoinSide],
    types: Seq[DataType],
    val columnOf: Seq[Int],
    val hasOwnKeys: Boolean) {

  /** Whether Spark would shuffle a side again if this were a separate join. */
  def isPaying: Boolean = sides.exists { side =>
    !side.group.isSingle && (side.group.isAllOptional || side.keys.exists {
      case key: ChainKey => key.inputs.size > 1
      case _ => false
    })
  }

  def groups: Seq[JoinTree] = sides.map(_.group)

  def originals: Seq[LogicalPlan] = groups.map(_.original)

  /**
   * The inputs that give a key column its value: the first one that has the row. A side may have
   * them in another order, such as `coalesce(b.k, a.k)`.
   */
  def inputsOfKey(column: Int): Seq[Int] = sides.filter(_.role.isShown).flatMap { side =>
    side.keys(column) match {
      case key: ChainKey if !side.group.isSingle => key.inputs
      case _ => side.group.inputs.map(_.id)
    }
  }

  /** The tree of all inputs. `original` is the join as in the query, over `originals`. */
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
      columns = shown.map(_.columns).reduceOption(_ ++ _).getOrElse(TreeColumns()),
      joins = parts.flatMap(_.joins) ++ joins,
      top = Some(original),
      obstacles = sides.flatMap(_.group.obstacles).toList)
  }

  /** A single input, with the key that the join gives it. */
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
      columns = side.group.columns.copy(definitions = keys.collect { case (a: Attribute, key) =>
        a.exprId -> key
      }.toMap))
    val expressions = keys.collect {
      case (e, key) if !e.isInstanceOf[Attribute] => withColumns.translate(e) -> key
    }
    // Above the join, `k IS NULL` is true in a row that the input lacks, and the key is null.
    val sameAsKey = expressions.filter { case (e, _) =>
      side.role == Required || JoinTree.isNullOnNulls(e)
    }
    withColumns.copy(columns = withColumns.columns.copy(keyExpressions = sameAsKey.map {
      case (e, key) => e.canonicalized -> key
    }.toMap))
  }

  /** A tree of several inputs, with its key columns in the order and the types of the join. */
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
        columns = group.columns.copy(
          group.columns.definitions.map { case (id, e) => id -> reorder(e) },
          group.columns.keyExpressions.map { case (e, key) =>
            reorder(e).canonicalized -> key.copy(column = place(key.column))
          }))
    }
  }

  /**
   * The output columns of the sides have different ids. But an alias on one side may hide a column
   * that another side has under the same id, as in a self-join. In terms of the inputs these would
   * be one column, and expressions over the hidden column would read the other one. So the side
   * gets new ids.
   */
  private def apart(parts: Seq[JoinTree]): Seq[JoinTree] = {
    val taken = mutable.HashSet.empty[ExprId]
    parts.map { part =>
      val ids = part.inputs.flatMap(_.plan.output.map(_.exprId))
      val separate = if (ids.exists(taken.contains)) renewed(part) else part
      taken ++= ids
      val shown = part.original.output.map(_.exprId).toSet
      val all = separate.columns
      separate.copy(columns = all.copy(
        definitions = all.definitions.filter { case (id, _) => shown(id) },
        computed = all.computed.filter(shown)))
    }
  }

  /** The tree with new ids for the columns of its inputs. */
  private def renewed(group: JoinTree): JoinTree = {
    val renamed = group.inputs.map(input => NewIds.withNewIds(input.plan, input.id))
    val newOf = AttributeMap(group.inputs.zip(renamed).flatMap { case (input, (_, columnOf)) =>
      input.plan.output.map(a => a -> columnOf(a))
    })
    def over(e: Expression): Expression = e.transform { case a: Attribute => newOf.getOrElse(a, a) }
    group.copy(
      inputs = group.inputs.zip(renamed).map { case (input, (plan, _)) =>
        input.copy(plan = plan, keys = input.keys.map(_.map(over)))
      },
      columns = group.columns.copy(
        newOf.map { case (a, b) => a.exprId -> (b: Expression) }.toMap ++
          group.columns.definitions.map { case (id, e) => id -> over(e) },
        group.columns.keyExpressions.map { case (e, key) => over(e).canonicalized -> key }),
      conditions = group.conditions.map(over))
  }

  private def widened(key: List[Expression], to: DataType): List[Expression] =
    if (key.head.dataType == to) key
    else Cast(key.head, to, Some(SQLConf.get.sessionLocalTimeZone)) :: key

  /** Makes computed columns null if no input of the tree has the row. */
  private def absentable(group: JoinTree): JoinTree = {
    val guarded = group.columns.computed.toSeq.flatMap { id =>
      val e = group.columns.definitions(id)
      if (JoinTree.isNullOnNulls(e)) None
      else Some(id -> If(ChainPresence(group.shown.map(_.id)), e, Literal(null, e.dataType)))
    }
    group.copy(columns = group.columns.defining(guarded).copy(computed = Set.empty))
  }
}

private[skewext] object JoinTreeMerger {

  /**
   * Merges the sides, or returns the reason why they are not joined on one key.
   *
   * @param nest makes a single input of a tree whose inputs cannot stay separate, for a reason.
   */
  def of(
      sides: Seq[JoinSide],
      nest: (JoinTree, Detailed) => JoinTree): Either[Detailed, JoinTreeMerger] = {
    val whole = sides.map { side =>
      if (side.group.isSingle) {
        side
      } else {
        wholeKey(side) match {
          case Right(keys) => side.copy(keys = keys)
          case Left(why) => side.copy(group = nest(side.group, why))
        }
      }
    }
    // The rows of a tree whose key columns differ have a key, too. It is not null.
    val comparedBySides = ComparedKeys.columns(whole.map(_.keys).transpose).transpose
    val taken = whole.indices.map { i =>
      if (whole(i).group.isSingle || comparedBySides(i).forall(_.size == 1)) whole(i)
      else sides(i).copy(group = nest(sides(i).group, RewriteReason.DifferentKeys.given))
    }
    val comparisons = taken.map(_.keys).transpose
    val columns = inOrderOfLargest(taken, ComparedKeys.columns(comparisons))
    val types = columns.map { column =>
      commonType(column.zip(taken).flatMap { case (compared, side) =>
        compared.flatMap {
          case key: ChainKey => Seq(key.dataType, side.group.keyTypes(key.column))
          case key => Seq(key.dataType)
        }
      })
    }
    types.collectFirst { case Left(why) => why }.toLeft {
      val keyTypes = types.collect { case Right(t) => t }
      val keyColumns = columns.zip(keyTypes).map { case (column, t) =>
        column.map(ComparedKeys.keyOf(_, t))
      }
      new JoinTreeMerger(
        taken.zip(keyColumns.transpose).map { case (side, keys) => side.copy(keys = keys) },
        keyTypes,
        comparisons.map(c => columns.indexWhere(ComparedKeys.isIn(_, c))),
        hasOwnKeys = columns.forall(_.forall(_.size == 1)))
    }
  }

  /**
   * The key columns by which a side with several inputs is compared, if these can stay separate.
   */
  private def wholeKey(side: JoinSide): Either[Detailed, Seq[ChainKey]] = {
    val group = side.group
    val keys = side.keys.map(group.translate)
    val fits = side.role match {
      case Optional | Excluded => group.isAllOptional
      case _ => group.isAnchored
    }
    val notWhole = side.keys.zip(keys).collectFirst {
      case (e, key: ChainKey) if !group.alwaysPresent(key.inputs) =>
        RewriteReason.PartialKey(e.sql)
      case (e, cast: Cast) if cast.child.isInstanceOf[ChainKey] =>
        RewriteReason.LossyCast(e.sql)
      case (e, c: Coalesce) if c.children.forall(_.isInstanceOf[ChainKey]) =>
        RewriteReason.DifferentKeys(e.sql)
      case (e, t) if !t.isInstanceOf[ChainKey] && t.exists(_.isInstanceOf[ChainKey]) =>
        RewriteReason.KeyExpression(e.sql)
      case (e, t) if !t.isInstanceOf[ChainKey] =>
        RewriteReason.DifferentKeys(e.sql)
    }
    lazy val columns = keys.collect { case key: ChainKey => key }
    // The operator would evaluate it for each row of the result, and Spark does for each of the side.
    lazy val slow = group.original.output.find { a =>
      group.columns.computed(a.exprId) &&
      ComputedBelow.isSlow(group.columns.definitions(a.exprId))
    }
    // Spark adds a filter of null keys between joins that stay its own.
    if (side.role.isShown && slow.isDefined) {
      Left(RewriteReason.SlowExpression(slow.get.sql))
    } else if (group.conditions.nonEmpty) {
      Left(RewriteReason.FilterBetween.given)
    } else if (notWhole.isDefined) {
      Left(notWhole.get)
    } else if (columns.map(_.column).distinct.size < group.keyTypes.size) {
      Left(RewriteReason.DifferentKeys.given)
    } else if (!fits) {
      Left(RewriteReason.RolesDiffer.given)
    } else {
      Right(columns)
    }
  }

  /**
   * Sorts the key columns in the order of the side with most inputs, so that this side stays
   * unchanged.
   */
  private def inOrderOfLargest(
      sides: Seq[JoinSide],
      columns: Seq[ComparedKeys.Column]): Seq[ComparedKeys.Column] = {
    val largest =
      sides.indices.maxBy(i => if (sides(i).group.isSingle) 0 else sides(i).group.inputs.size)
    columns.sortBy(_(largest).head match {
      case key: ChainKey => key.column
      case _ => 0
    })
  }

  /** The widest of the types, if casts to it keep the values of the others. */
  private def commonType(types: Seq[DataType]): Either[Detailed, DataType] = {
    val widest = types.tail.foldLeft(Option(types.head)) {
      case (Some(a), b) if a == b || KeyTypes.canHold(b, a) => Some(a)
      case (Some(a), b) if KeyTypes.canHold(a, b) => Some(b)
      case _ => None
    }
    widest match {
      case Some(_: UserDefinedType[_]) | None =>
        Left(RewriteReason.KeyType(types.map(_.sql).distinct.mkString(", ")))
      case Some(t)
          if !KeyTypes.hasOrder(t) || types.exists(u => u != t && isNested(u)) ||
            ComparedByBytes.mayDiffer(t) =>
        Left(RewriteReason.KeyType(t.sql))
      case Some(t) => Right(t)
    }
  }

  /**
   * Whether two such types may differ only in the nullability of nested values. Spark removes casts
   * between these.
   */
  private def isNested(t: DataType): Boolean = t match {
    case _: ArrayType | _: StructType => true
    case _ => false
  }
}
