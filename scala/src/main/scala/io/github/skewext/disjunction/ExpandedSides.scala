package io.github.skewext.disjunction

import scala.collection.mutable

import io.github.skewext.facts.SafeToDuplicate
import io.github.skewext.inputs.NewIds

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.Inner
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.types.{DataType, IntegerType}

/**
 * An inner join with OR as one join on equal keys. Each side is read once, and has a copy of each row
 * for each part of the OR, with the number of the part and the keys of this part:
 * {{{
 * Join (part = part AND key0 = key0) AND (part <= 0 OR NOT coalesce(a.email = b.email, false))
 *   Filter (key0 IS NOT NULL)
 *     Expand [(a.*, 0, a.email), (a.*, 1, a.phone)]
 *       a
 *   Filter (key0 IS NOT NULL)
 *     Expand [(b.*, 0, b.email), (b.*, 1, b.phone)]
 *       b
 * }}}
 * A pair of rows matches in the first part that is true for it, and in no other. So it is returned
 * once. A part that is null is not true.
 *
 * Keys of one pair of types are in one column. A copy has a default value in the key columns that its
 * part does not use.
 */
private[disjunction] class ExpandedSides(join: Join, condition: OrCondition, hint: JoinHint) {

  private val parts = condition.parts

  /** The types of each key column on both sides. */
  private val columns = mutable.ArrayBuffer.empty[(DataType, DataType)]

  /** For each part, the number of the column of each of its keys. */
  private val places: Seq[Seq[Int]] = parts.map { part =>
    val used = mutable.Set.empty[Int]
    part.keys.map { case (l, r) =>
      val types = (l.dataType, r.dataType)
      val place = columns.indices.find(i => !used(i) && columns(i) == types).getOrElse {
        columns += types
        columns.size - 1
      }
      used += place
      place
    }
  }

  def plan: LogicalPlan = {
    val left = expanded(join.left, 0)
    val right = expanded(join.right, 1)
    val equal = (left.part +: left.keys).zip(right.part +: right.keys).map { case (l, r) =>
      EqualTo(l, r)
    }
    // Conditions of one side stay in the join by the number of the part in the other side, because
    // they may fail for rows whose keys equal no others.
    def numberBeside(e: Expression) =
      if (e.references.subsetOf(join.left.outputSet)) right.part else left.part
    val on = equal ++ condition.before ++ noEarlier(left.part) ++
      onlyInPart(numberBeside, _ => true) ++ condition.after
    Project(join.output, Join(left.plan, right.plan, Inner, Some(on.reduceLeft(And)), hint))
  }

  private def noEarlier(number: Expression): Seq[Expression] =
    parts.init.zipWithIndex.map { case (earlier, i) =>
      Or(
        LessThanOrEqual(number, Literal(i)),
        Not(Coalesce(Seq(earlier.condition, Literal.FalseLiteral))))
    }

  /** The conditions of the parts besides their keys, each for the rows of its part. */
  private def onlyInPart(
      number: Expression => Expression,
      wanted: Expression => Boolean): Seq[Expression] =
    parts.zipWithIndex.flatMap { case (part, i) =>
      part.others.filter(wanted).map(e => Or(Not(EqualTo(number(e), Literal(i))), e))
    }

  private case class Side(plan: LogicalPlan, part: Attribute, keys: Seq[Attribute])

  private def expanded(side: LogicalPlan, number: Int): Side = {
    def keyOf(pair: (Expression, Expression)) = if (number == 0) pair._1 else pair._2
    val types = columns.map { case (l, r) => if (number == 0) l else r }.toSeq
    val rows = parts.indices.map { i =>
      val keyAt = places(i).zip(parts(i).keys.map(keyOf)).toMap
      types.indices.map(c => keyAt.getOrElse(c, Literal.default(types(c))))
    }
    // Names as those of new ids, which explanations show without their ends.
    val part = AttributeReference(s"part@$number", IntegerType, nullable = false)()
    val keys = types.zipWithIndex.map { case (t, c) =>
      AttributeReference(NewIds.newName(s"key$c", number.toString), t, rows.exists(_(c).nullable))()
    }
    val copies = Expand(
      rows.zipWithIndex.map { case (row, i) => (side.output :+ Literal(i)) ++ row },
      (side.output :+ part) ++ keys,
      side)
    val nullFree = keys.filter(_.nullable).map(IsNotNull(_))
    val ofSide =
      onlyInPart(_ => part, e => e.references.subsetOf(side.outputSet) && SafeToDuplicate(e))
    val filter = (nullFree ++ ofSide).reduceLeftOption(And)
    Side(filter.fold[LogicalPlan](copies)(Filter(_, copies)), part, keys)
  }
}
