package io.github.skewext.disjunction

import io.github.skewext.inputs.NewIds
import io.github.skewext.join.PlanCopies
import io.github.skewext.technique.hint.TechniqueHint

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.types.BooleanType

/**
 * The plan of a join with OR, by its type:
 *
 *  - inner: one join of rows that are copied for each part ([[ExpandedSides]]).
 *  - anti: an anti join for each part, one after the other.
 *  - semi and existence: an existence join for each part, one after the other. A row matches if one
 *    of them has found a match.
 *  - outer: the rows of the inner join, and the rows of the anti join with nulls for the other side.
 */
private[disjunction] class OrJoinPlan(join: Join, condition: OrCondition) {

  private val parts = condition.parts
  private val sides = Seq(join.left, join.right)

  /** How often the plan reads each side. */
  val reads: Seq[Int] = join.joinType match {
    case _: InnerLike => Seq(1, 1)
    case LeftOuter => Seq(2, 1 + parts.size)
    case RightOuter => Seq(1 + parts.size, 2)
    case FullOuter => Seq(2 + parts.size, 2 + parts.size)
    case _ => Seq(1, parts.size)
  }

  /** How often the plan copies, or compares, each row of each side. */
  val copies: Seq[Int] = join.joinType match {
    case LeftOuter | RightOuter => Seq(2 * parts.size, 2 * parts.size)
    case FullOuter => Seq(3 * parts.size, 3 * parts.size)
    case _ => Seq(parts.size, parts.size)
  }

  private val hint = {
    val which = parts.map(_.condition).map(OrJoinPlan.shown).mkString("; ")
    val side = Some(
      TechniqueHint(
        TechniqueHint.OfOrJoin(s"a join with OR of ${parts.size} parts ($which)", reads)))
    JoinHint(side, side)
  }

  def plan: LogicalPlan = join.joinType match {
    case _ if parts.size == 1 => join.copy(condition = Some(condition.of(parts.head)), hint = hint)
    case _: InnerLike => inner
    case LeftAnti => unmatched(join.left, 1, e => e)
    case LeftSemi => Project(join.left.output, Filter(anyOf(flags), marked(flags)))
    case ExistenceJoin(exists) =>
      val shown = Alias(anyOf(flags), exists.name)(exists.exprId, exists.qualifier)
      Project(join.left.output :+ shown, marked(flags))
    case LeftOuter => outer(Seq(0))
    case RightOuter => outer(Seq(1))
    case FullOuter => outer(Seq(0, 1))
  }

  private def inner: LogicalPlan = new ExpandedSides(join, condition, hint).plan

  private lazy val flags: Seq[Attribute] =
    parts.map(_ => AttributeReference("exists", BooleanType, nullable = false)())

  private def anyOf(found: Seq[Attribute]): Expression = found.reduce[Expression](Or)

  /** The rows of the left side, with a column for each part that tells whether it has a match. */
  private def marked(found: Seq[Attribute]): LogicalPlan =
    parts.zip(found).foldLeft(join.left) { case (rows, (part, exists)) =>
      joined(rows, 1, part, ExistenceJoin(exists), e => e)
    }

  /** The rows of a side that no row of the other side matches. */
  private def unmatched(
      rows: LogicalPlan,
      other: Int,
      overRows: Expression => Expression): LogicalPlan =
    parts.foldLeft(rows)((left, part) => joined(left, other, part, LeftAnti, overRows))

  /**
   * @param rows the rows of a side, or of a copy of it.
   * @param other the other side, which is copied.
   * @param overRows maps expressions over the side to the copy.
   */
  private def joined(
      rows: LogicalPlan,
      other: Int,
      part: OrPart,
      joinType: JoinType,
      overRows: Expression => Expression): Join = {
    val on = condition.of(part)
    val read = sides(other).output.filter(on.references.contains)
    val (copy, overOther) = PlanCopies.of(Project(read, sides(other)), other)
    val keys = part.keys.map { case (l, r) => overOther(if (other == 0) l else r) }
    val nullFree = keys.filter(_.nullable).map(IsNotNull(_)).reduceLeftOption(And)
    Join(rows, nullFree.fold(copy)(Filter(_, copy)), joinType, Some(overRows(overOther(on))), hint)
  }

  /** @param preserved the sides whose rows without a match are returned, too. */
  private def outer(preserved: Seq[Int]): LogicalPlan = {
    val others = preserved.map { side =>
      val (copy, over) = PlanCopies.of(sides(side), side)
      val rows = unmatched(copy, 1 - side, over)
      val nulls = sides(1 - side).output.map { a =>
        Alias(Literal(null, a.dataType), NewIds.newName(a.name, (1 - side).toString))()
      }
      Project(if (side == 0) copy.output ++ nulls else nulls ++ copy.output, rows)
    }
    val matched = Project(sides.flatMap(_.output), inner)
    PlanCopies.union(matched +: others, join.output)
  }
}

private[disjunction] object OrJoinPlan {

  /** Whether the plan of a join of this type is a union. */
  def hasUnion(joinType: JoinType): Boolean = joinType match {
    case LeftOuter | RightOuter | FullOuter => true
    case _ => false
  }

  /** An expression for an explanation. */
  def shown(e: Expression): String = {
    val text = e
      .transform { case a: AttributeReference =>
        a.withQualifier(Nil).withName(NewIds.shownName(a.name))
      }
      .sql
      .replaceAll("`([A-Za-z_][A-Za-z0-9_]*)`", "$1")
    if (text.startsWith("(") && text.endsWith(")")) text.drop(1).dropRight(1) else text
  }
}
