package io.github.skewext.technique

import io.github.skewext.facts.KeptInPlace
import io.github.skewext.profile.FrequentKeys
import io.github.skewext.technique.hint.{HotKey, TechniqueOptions}

import org.apache.spark.sql.catalyst.expressions.{Left => _, Right => _, _}
import org.apache.spark.sql.catalyst.optimizer.{BuildLeft, BuildRight, BuildSide}
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan, Project}
import org.apache.spark.sql.skewext.SqlInternals
import org.apache.spark.sql.types.IntegerType

/**
 * A join on the key and a salt. Only rows of hot keys have a salt, see [[SaltedKey]]. On the side
 * where the key is hot, its rows are divided into parts. On the other side, its rows are replicated
 * for each part. If the key is hot on both sides, both are divided. All other rows have the same
 * salt, and remain in their partition.
 *
 * An outer join returns unmatched rows. A replicated row may match no row in one cell and some row
 * in another. So only its first copy may be returned as unmatched, and only if the other side has
 * no row of its key in any cell. The tasks of the other side report this: each task that has a row
 * of a hot key adds a marker, and the markers are in every cell that has first copies.
 * {{{
 * Project
 *   Filter  not a marker; unmatched only as a first copy
 *     Join FULL OUTER left.k = right.k AND left.cell = right.cell
 *       SaltKeys  k hot: cell 0, 1 or 2, and a marker in cell 0
 *         left
 *       SaltKeys  k hot: cells 0, 1 and 2
 *         right
 * }}}
 * Semi and anti joins return no row of the right side. There, markers replace all rows of a hot
 * key.
 */
object SaltedJoin extends SkewTechnique {

  override val name: String = "salted"

  override def optionNames: Seq[String] = Seq(TechniqueOptions.HotKeys, Salts, Side)

  private val Salts = "salts"
  private val Side = "side"

  /** The most parts of a key. The rows of the other side are replicated as often. */
  private val MaxSalts = 1024

  /**
   * The number of parts of a key whose rows are not counted. There are fewer if there are fewer
   * partitions.
   */
  private val DefaultSalts = 32

  /** The factor by which the number of parts may grow, see `finer`. */
  private val Finer = 4

  /** The most copies that [[Finer]] parts may add, as a share of all rows. */
  private val MaxRepeated = 0.02

  override def prepared(request: TechniqueRequest): TechniqueOptions = {
    val given = preparedForHint(request)
    given.copy(hotKeys = given.hotKeys.orElse(Some(found(request))))
  }

  override def preparedForHint(request: TechniqueRequest): TechniqueOptions = {
    val options = request.options
    // Find wrong options before jobs look for hot keys.
    saltsIn(options)
    sideIn(options)
    options.copy(hotKeys = options.hotKeys.orElse(options.text(TechniqueOptions.HotKeys).map {
      keysIn(_, request.numKeyColumns)
    }))
  }

  override def plan(request: TechniqueRequest): Either[TechniqueReason.Detailed, TechniquePlan] =
    if (request.options.hotKeys.isEmpty) {
      Left(TechniqueReason.WrongOption(
        s"${TechniqueOptions.HotKeys} is missing: a hint and skewext_skew_join run no job to find it"))
    } else if (KeyColumn.of(request).size < request.numKeyColumns) {
      Left(TechniqueReason.ConstantKey.given)
    } else {
      withHotKeys(request.onKeysOfCall)
    }

  private def withHotKeys(
      request: TechniqueRequest): Either[TechniqueReason.Detailed, TechniquePlan] = {
    val hot = saltedKeys(request)
    val leftIsDivided = hot.exists(_.leftSalts > 1)
    val rightIsDivided = hot.exists(_.rightSalts > 1)
    val isPreserved = request.isPreserved _
    def rows(needed: Boolean) = if (needed) HotRows.ShownAndMarked else HotRows.Shown
    val marked: Map[BuildSide, HotRows] =
      if (request.selectsLeft) Map(BuildLeft -> HotRows.Shown, BuildRight -> HotRows.Marked)
      else {
        Map(
          BuildLeft -> rows(leftIsDivided && isPreserved(BuildRight)),
          BuildRight -> rows(rightIsDivided && isPreserved(BuildLeft)))
      }
    if (hot.isEmpty) {
      Right(TechniquePlan(request.sameJoin(), "no key is hot: Spark's own join"))
    } else if (request.condition.isDefined && marked.values.exists(_ != HotRows.Shown)) {
      // A marker shows that a row with the same key exists, but not whether it satisfies the
      // condition.
      Left(TechniqueReason.Condition.given)
    } else {
      Right(TechniquePlan(salted(request, hot, marked), how(hot, marked)))
    }
  }

  private def salted(
      request: TechniqueRequest,
      hot: Seq[SaltedKey],
      hotRows: Map[BuildSide, HotRows]): LogicalPlan = {
    val withKinds = hotRows.values.exists(_ == HotRows.ShownAndMarked)
    // Below the salts each key is computed once. Spark would compute the Python UDF of a key once
    // more above the salts, from columns that are null in markers.
    def ofSide(side: BuildSide) = {
      val (rows, keys) = KeptInPlace.keys(request.plan(side), request.keys(side))
      SaltKeys(
        keys,
        side,
        hot,
        hotRows(side),
        if (showsNullKeys(request, side)) numPartitions(request) else 0,
        SaltKeys.newCell(),
        if (withKinds) Some(AttributeReference("kind", IntegerType, nullable = false)()) else None,
        rows)
    }
    val (left, right) = (ofSide(BuildLeft), ofSide(BuildRight))
    val equal = TechniqueRequest.equal(left.keys :+ left.cell, right.keys :+ right.cell)
    val join = request.joined(
      left,
      right,
      request.joinType,
      Some((equal +: request.condition.toSeq).reduce(And)))
    val rows = if (withKinds) {
      // The columns above the join, where the kind of a missing row is null.
      val Seq(leftKind, rightKind) = Seq(left, right).map { side =>
        join.output.find(_.exprId == side.kind.get.exprId).get
      }
      Filter(isRow(leftKind, rightKind, request), join)
    } else {
      join
    }
    Project(request.join.output, rows)
  }

  /** A predicate for matched pairs of rows, and for the first copies of unmatched rows. */
  private def isRow(left: Attribute, right: Attribute, request: TechniqueRequest): Expression = {
    val pair = And(
      GreaterThanOrEqual(left, Literal(SaltKeys.First)),
      GreaterThanOrEqual(right, Literal(SaltKeys.First)))
    def alone(kind: Attribute, other: Attribute) =
      And(IsNull(other), EqualTo(kind, Literal(SaltKeys.First)))
    val unmatched =
      (if (request.isPreserved(BuildLeft)) Seq(alone(left, right)) else Nil) ++
        (if (request.isPreserved(BuildRight)) Seq(alone(right, left)) else Nil)
    (pair +: unmatched).reduce[Expression](Or(_, _))
  }

  private def showsNullKeys(request: TechniqueRequest, side: BuildSide): Boolean =
    request.isPreserved(side) || (request.joinType == LeftAnti && side == BuildLeft)

  private def saltedKeys(request: TechniqueRequest): Seq[SaltedKey] = {
    val keys = request.options.hotKeys.getOrElse(Nil).flatMap { key =>
      val (left, right) = salts(request, key)
      val salted = SaltedKey(inKeyTypes(request, key), left, if (request.selectsLeft) 1 else right)
      if (left > 1 || right > 1) Some(salted) else None
    }
    // Keys that are written in different ways may be equal.
    keys.groupBy(_.key).values.map(_.head).toSeq
  }

  private def saltsIn(options: TechniqueOptions): Option[Int] = options.int(Salts, 2, MaxSalts)

  private def sideIn(options: TechniqueOptions): Option[String] =
    options.oneOf(Side, Seq("left", "right", "both"))

  /** The number of parts of a key's rows on the left and on the right. */
  private def salts(request: TechniqueRequest, key: HotKey): (Int, Int) = {
    val given = saltsIn(request.options)
    val side = sideIn(request.options)
    def of(share: Double, repeated: Double): Int = {
      val parts = math.ceil(share * numPartitions(request)).toInt
      if (parts > 1) given.getOrElse(math.min(finer(parts, repeated), MaxSalts)) else 1
    }
    (key.leftShare, key.rightShare) match {
      case (Some(left), Some(right)) =>
        (
          if (side.contains("right")) 1 else of(left, repeated = right),
          if (side.contains("left")) 1 else of(right, repeated = left))
      case _ =>
        val all = given.getOrElse(math.max(2, math.min(numPartitions(request), DefaultSalts)))
        side.getOrElse(largerSide(request)) match {
          case "left" => (all, 1)
          case "right" => (1, all)
          case _ =>
            val each = given.getOrElse(math.ceil(math.sqrt(all)).toInt)
            (each, each)
        }
    }
  }

  /**
   * Increases the number of parts if the copies on the other side are cheap. Hashes assign parts to
   * partitions, and smaller parts are distributed more evenly.
   *
   * @param repeated the rows of the key on the other side, as a share of all rows.
   */
  private def finer(parts: Int, repeated: Double): Int = {
    val affordable = if (repeated > 0) 1 + MaxRepeated / repeated else Double.MaxValue
    math.max(parts, math.min(parts * Finer, affordable).toInt)
  }

  private def largerSide(request: TechniqueRequest): String =
    BroadcastSide.nameOf(Seq(BuildLeft, BuildRight).maxBy(request.sizeOf))

  private def numPartitions(request: TechniqueRequest): Int =
    request.session.sessionState.conf.numShufflePartitions

  /** The key in the types of the compared columns. */
  private def inKeyTypes(request: TechniqueRequest, key: HotKey): UnsafeRow = {
    val columns = KeyColumn.of(request)
    // Keys that were found in the data have a value for each of Spark's comparisons.
    val compared =
      if (key.values.size == request.leftKeys.size) request.leftKeys.map(KeyColumn(_)) else columns
    if (key.values.size != compared.size) {
      fail(
        s"The hot key $key has ${key.values.size} values, but the join compares " +
          s"${columns.size} columns.")
    }
    val timeZone = Some(request.session.sessionState.conf.sessionLocalTimeZone)
    val typed = key.values.zip(compared).flatMap { case (value, column) =>
      val cast = Cast(value, column.dataType, timeZone, EvalMode.TRY)
      def isNull = column.isNullSafe && value.eval() == null
      if (!value.foldable || !cast.resolved || (cast.eval() == null && !isNull)) {
        fail(s"The hot key $key is not a key of this join: $value is null or not a value of type " +
          s"${column.dataType.sql}. (Null matches nothing, so rows with a null key need no salt.)")
      }
      column.compared(Literal(cast.eval(), column.dataType))
    }
    SaltKeysExec.keyOf(typed)
  }

  /** Parses keys, such as `5,7` for one column, or `5,a;7,b` for two columns. */
  private def keysIn(text: String, columns: Int): Seq[HotKey] = {
    val keys =
      if (columns == 1) text.split(",").toSeq.map(Seq(_))
      else text.split(";").toSeq.map(_.split(",").toSeq)
    keys.map(values => HotKey(values.map(value => Literal(value.trim))))
  }

  /**
   * Finds keys that have more rows than an average partition. It runs a job for each side that
   * reads its keys.
   */
  private def found(request: TechniqueRequest): Seq[HotKey] = {
    val average = 1.0 / numPartitions(request)
    val frequent = FrequentKeys.of(
      request.session,
      Seq(request.left, request.right),
      Seq(request.leftKeys, request.rightKeys),
      average)
    val rows = math.max(1L, frequent.rows.sum).toDouble
    for {
      (key, Seq(left, right)) <- frequent.keys
      if math.max(left, right) / rows > average
    } yield HotKey(key, Some(left / rows), Some(right / rows))
  }

  private def how(hot: Seq[SaltedKey], hotRows: Map[BuildSide, HotRows]): String = {
    def most(salts: Int, side: String) = if (salts > 1) Some(s"$side up to $salts") else None
    val parts = Seq(
      most(hot.map(_.leftSalts).max, "on the left"),
      most(hot.map(_.rightSalts).max, "on the right")).flatten
    val keys = if (hot.size == 1) "1 hot key" else s"${hot.size} hot keys"
    val divided =
      if (parts.isEmpty) None else Some(s"has its rows divided in parts, ${parts.mkString(", ")}")
    val marked =
      if (hotRows(BuildRight) == HotRows.Marked) Some("comes from the right once a task") else None
    s"$keys: each ${(divided ++ marked).mkString("; ")}"
  }

  private def fail(message: String): Nothing = throw SqlInternals.analysisError(message)
}
