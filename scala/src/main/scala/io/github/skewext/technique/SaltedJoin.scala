package io.github.skewext.technique

import io.github.skewext.facts.KeptInPlace
import io.github.skewext.technique.TechniqueReason.Detailed
import io.github.skewext.technique.hint.TechniqueOptions

import org.apache.spark.sql.catalyst.expressions.{Left => _, Right => _, _}
import org.apache.spark.sql.catalyst.optimizer.{BuildLeft, BuildRight}
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan, Project}

/**
 * A join on the key and a salt. On the side where a key is hot, its rows are divided into parts. On
 * the other side, its rows are replicated for each part. If the key is hot on both sides, both are
 * divided, see [[SaltedKey]]. The rows of other keys have no salt.
 *
 * An outer join returns unmatched rows. A replicated row may match no row in one cell and some row
 * in another. So only its first copy may be returned as unmatched, and only if the other side has
 * no row of its key in any cell. The tasks of the other side report this: each task that has a row
 * of a hot key adds a marker to every cell that has first copies.
 * {{{
 * Project
 *   Filter  not a marker; unmatched only as a first copy
 *     Join FULL OUTER left.k = right.k AND left.cell = right.cell
 *       SaltKeys  k hot: cell 0, 1 or 2, and a marker in cell 0
 *         left
 *       SaltKeys  k hot: cells 0, 1 and 2
 *         right
 * }}}
 * Of the right side of a semi or anti join, one row of a hot key per task is enough.
 */
object SaltedJoin extends SkewTechnique {

  override val name: String = "salted"

  override def optionNames: Seq[String] = SaltedHotKeys.optionNames

  override def prepared(request: TechniqueRequest): TechniqueOptions = {
    val given = preparedForHint(request)
    given.copy(hotKeys = given.hotKeys.orElse(Some(SaltedHotKeys.found(request))))
  }

  override def preparedForHint(request: TechniqueRequest): TechniqueOptions =
    request.options.copy(hotKeys = SaltedHotKeys.given(request))

  override def plan(request: TechniqueRequest): Either[Detailed, TechniquePlan] =
    if (request.options.hotKeys.isEmpty) {
      Left(TechniqueReason.WrongOption(
        s"${TechniqueOptions.HotKeys} is missing: a hint and skewext_skew_join run no job to find it"))
    } else if (ComparedColumn.of(request).size < request.numKeyColumns) {
      Left(TechniqueReason.ConstantKey.given)
    } else {
      withHotKeys(request.onKeysOfCall)
    }

  private def withHotKeys(request: TechniqueRequest): Either[Detailed, TechniquePlan] = {
    val hot = SaltedHotKeys.of(request)
    val sides = Seq(BuildLeft, BuildRight).map { side =>
      val isDivided = hot.exists(_.salts(side) > 1)
      SaltedSide(
        side,
        hot,
        marks = isDivided && request.isPreserved(BroadcastSide.other(side)),
        oneRow = request.selectsLeft && side == BuildRight)
    }
    if (hot.isEmpty) {
      Right(TechniquePlan(request.sameJoin(), "no key is hot: Spark's own join"))
    } else if (request.condition.isDefined && sides.exists(side => side.marks || side.oneRow)) {
      // A marker shows that a row with the same key exists, but not whether it satisfies the
      // condition.
      Left(TechniqueReason.Condition.given)
    } else {
      Right(TechniquePlan(salted(request, sides), how(hot, oneRow = request.selectsLeft)))
    }
  }

  private def salted(request: TechniqueRequest, sides: Seq[SaltedSide]): LogicalPlan = {
    val Seq(left, right) = sides.map { salted =>
      // Below the salts each key is computed once. Spark would compute it above them once more.
      val (rows, keys) = KeptInPlace.keys(request.plan(salted.side), request.keys(salted.side))
      SaltKeys(keys, SaltKeys.newColumns(), salted, rows)
    }
    val Seq(cells, kinds) = Seq(left.added, right.added).transpose
    val equal = TechniqueRequest.equal(left.keys :+ cells(0), right.keys :+ cells(1))
    val condition = (equal +: request.condition.toSeq).reduce(And)
    val join = request.joined(left, right, request.joinType, Some(condition))
    val rows = if (sides.exists(_.marks)) Filter(isRow(kinds), join) else join
    Project(request.join.output, rows)
  }

  /** A predicate for matched pairs of rows, and for the first copies of unmatched rows. */
  private def isRow(ofSides: Seq[Attribute]): Expression = {
    // The kind of a missing row is null.
    val kinds = ofSides.map(_.withNullability(true))
    val pair = kinds.map(GreaterThanOrEqual(_, Literal(SaltKeys.First))).reduce[Expression](And)
    val unmatched = Seq(kinds, kinds.reverse).map { case Seq(kind, other) =>
      And(IsNull(other), EqualTo(kind, Literal(SaltKeys.First)))
    }
    (pair +: unmatched).reduce(Or)
  }

  private def how(hot: Seq[SaltedKey], oneRow: Boolean): String = {
    val parts = for {
      (side, of) <- Seq(BuildLeft -> "left", BuildRight -> "right")
      salts = hot.map(_.salts(side)).max if salts > 1
    } yield s"on the $of up to $salts"
    val divided =
      if (parts.isEmpty) Nil else Seq(s"has its rows divided in parts, ${parts.mkString(", ")}")
    val reduced = if (oneRow) Seq("comes from the right once a task") else Nil
    val keys = if (hot.size == 1) "1 hot key" else s"${hot.size} hot keys"
    s"$keys: each ${(divided ++ reduced).mkString("; ")}"
  }
}
