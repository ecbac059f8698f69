package io.github.skewext.disjunction

import scala.collection.mutable

import io.github.skewext.disjunction.OrJoinReason.Detailed
import io.github.skewext.facts.{ComparedByBytes, SafeToDuplicate}
import io.github.skewext.inputs.KeyTypes

import org.apache.spark.sql.catalyst.expressions.{Left => _, Right => _, _}
import org.apache.spark.sql.catalyst.plans.logical.Join
import org.apache.spark.sql.catalyst.types.DataTypeUtils

/**
 * A part of an OR.
 *
 * @param condition the whole part.
 * @param keys the expressions of the left and the right side that it compares with `=`. A null in
 *             one of them matches nothing.
 * @param others what else it requires.
 */
private[disjunction] case class OrPart(
    condition: Expression,
    keys: Seq[(Expression, Expression)],
    others: Seq[Expression])

/**
 * The condition of a join, with one OR whose parts all have equal keys.
 *
 * @param before the conjuncts before the OR.
 * @param after the conjuncts after it. The order is kept, because an earlier conjunct may keep a
 *              later one from failing.
 */
private[disjunction] case class OrCondition(
    before: Seq[Expression],
    parts: Seq[OrPart],
    after: Seq[Expression]) {

  /** The condition of a join that compares only one part. */
  def of(part: OrPart): Expression = ((before :+ part.condition) ++ after).reduce(And)
}

private[disjunction] object OrCondition extends PredicateHelper {

  /** With more parts, the shuffles of copied rows may take longer than a nested loop. */
  val MostParts = 8

  /** Parts with the same keys are one, so there may be more of them at first. */
  val MostAlternatives = 100

  /**
   * The condition of a join without equal keys, None if there is no OR in it, or the reason why no
   * OR has keys in each part.
   */
  def of(join: Join): Option[Either[Detailed, OrCondition]] = {
    val conjuncts = join.condition.toSeq.flatMap(splitConjunctivePredicates)
    val found = conjuncts.zipWithIndex.collect { case (Alternatives(parts), i) =>
      new OrParts(join).of(parts).map(OrCondition(conjuncts.take(i), _, conjuncts.drop(i + 1)))
    }
    val usable = found.flatMap(_.toOption)
    if (usable.nonEmpty) Some(usable.minBy(_.parts.size)).map { condition =>
      val parts = condition.parts.size
      Either.cond(parts <= MostParts, condition, OrJoinReason.TooManyParts(s"$parts parts"))
    }
    else found.headOption
  }

  /** `a OR b`, and `x IN (y, z)` of columns, which is `x = y OR x = z`. */
  private[disjunction] object Alternatives {
    def unapply(e: Expression): Option[Seq[Expression]] = e match {
      case or: Or => Some(splitDisjunctivePredicates(or))
      case In(value, list) if !list.forall(_.foldable) => Some(list.map(EqualTo(value, _)))
      case _ => None
    }
  }
}

/** Finds the equal keys of the parts of an OR. */
private class OrParts(join: Join) extends PredicateHelper {

  private val (left, right) = (join.left.outputSet, join.right.outputSet)

  /** Multiplied out, ANDs of ORs have a number of alternatives that is exponential in theirs. */
  private var alternatives = 0

  def of(alternatives: Seq[Expression]): Either[Detailed, Seq[OrPart]] =
    all(alternatives.map(of)).map(parts => merged(parts.flatten))

  private def all[T](each: Seq[Either[Detailed, T]]): Either[Detailed, Seq[T]] =
    each
      .collectFirst { case Left(reason) => Left(reason) }
      .getOrElse(Right(each.collect { case Right(value) =>
        value
      }))

  private def of(alternative: Expression): Either[Detailed, Seq[OrPart]] = {
    alternatives += 1
    if (alternatives > OrCondition.MostAlternatives) {
      Left(OrJoinReason.TooManyParts(s"more than ${OrCondition.MostAlternatives} multiplied out"))
    } else {
      partsOf(alternative)
    }
  }

  private def partsOf(alternative: Expression): Either[Detailed, Seq[OrPart]] = alternative match {
    case OrCondition.Alternatives(inner) => all(inner.map(of)).map(_.flatten)
    case conjunction =>
      val conjuncts = splitConjunctivePredicates(conjunction)
      val found = conjuncts.map(e => e -> keysOf(e))
      val keys = found.collect { case (_, Some(Right(keys))) => keys }.flatten
      if (keys.nonEmpty) {
        val others = found.collect { case (e, key) if !key.exists(_.isRight) => e }
        Right(Seq(OrPart(conjunction, keys, others)))
      } else {
        // `x AND (a OR b)` without keys in x is `x AND a OR x AND b`.
        val inner = conjuncts.zipWithIndex.collectFirst {
          case (OrCondition.Alternatives(inner), i) =>
            all(inner.map(e => of(conjuncts.updated(i, e).reduce(And)))).map(_.flatten)
        }
        def obstacle = found.collectFirst { case (_, Some(Left(reason))) => reason }
        inner.getOrElse(Left(obstacle.getOrElse(OrJoinReason.PartWithoutKey(shown(conjunction)))))
      }
  }

  /** The keys of an equality of both sides, or the reason why they are none. */
  private def keysOf(e: Expression): Option[Either[Detailed, Seq[(Expression, Expression)]]] =
    e match {
      case EqualTo(a, b) =>
        sides(a, b).map { case (l, r) => checked(l, r).map(_ => Seq((l, r))) }
      case EqualNullSafe(a, b) =>
        def default(key: Expression) = Literal.default(key.dataType)
        sides(a, b).map { case (l, r) =>
          checked(l, r).map { _ =>
            Seq(
              (Coalesce(Seq(l, default(l))), Coalesce(Seq(r, default(r)))),
              (IsNull(l), IsNull(r)))
          }
        }
      case _ => None
    }

  /** The expressions by side, if each is of one side alone. */
  private def sides(a: Expression, b: Expression): Option[(Expression, Expression)] = {
    def isOf(e: Expression, side: AttributeSet) =
      e.references.nonEmpty && e.references.subsetOf(side)
    if (isOf(a, left) && isOf(b, right)) Some((a, b))
    else if (isOf(b, left) && isOf(a, right)) Some((b, a))
    else None
  }

  private def checked(l: Expression, r: Expression): Either[Detailed, Unit] = {
    val t = l.dataType
    if (!DataTypeUtils.sameType(t, r.dataType) || !KeyTypes.canBeKey(t) ||
      ComparedByBytes.mayDiffer(t)) {
      Left(OrJoinReason.KeyType(t.sql))
    } else {
      Seq(l, r).find(!SafeToDuplicate(_)).map(e => OrJoinReason.MayFail(shown(e))).toLeft(())
    }
  }

  /** One part for all that compare the same keys: `k AND x OR k AND y` is `k AND (x OR y)`. */
  private def merged(parts: Seq[OrPart]): Seq[OrPart] = {
    val first = mutable.LinkedHashMap.empty[Set[(Expression, Expression)], OrPart]
    parts.zipWithIndex.foreach { case (part, i) =>
      val keys: Set[(Expression, Expression)] =
        part.keys.map { case (l, r) => (l.canonicalized, r.canonicalized) }.toSet
      first.get(keys) match {
        case Some(before) if SafeToDuplicate(before.condition) && SafeToDuplicate(part.condition) =>
          first(keys) = either(before, part)
        // A key that no set of keys equals.
        case Some(_) => first(keys + ((Literal(i), Literal(i)))) = part
        case None => first(keys) = part
      }
    }
    // Not a lazy sequence, as toSeq returns in Scala 2.12.
    first.values.toVector
  }

  private def either(one: OrPart, other: OrPart): OrPart =
    if (one.others.isEmpty || one.condition.semanticEquals(other.condition)) one
    else if (other.others.isEmpty) other
    else {
      val others = Or(one.others.reduce(And), other.others.reduce(And))
      // As a conjunction, so that a join finds the keys.
      val equal = splitConjunctivePredicates(one.condition).filterNot(one.others.contains)
      OrPart((equal :+ others).reduce(And), one.keys, Seq(others))
    }

  private def shown(e: Expression): String = OrJoinPlan.shown(e)
}
