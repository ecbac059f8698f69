package io.github.skewext.asof

import io.github.skewext.asof.AsOfColumns.fail
import io.github.skewext.asof.AsOfDirection.{Backward, Forward, Nearest}
import io.github.skewext.inputs.{BatchInputs, HintedInputs, KeyColumn, KeyTypes, NewIds, OutputNames}

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Project}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.skewext.SqlInternals
import org.apache.spark.sql.types.{DataType, DateType, StringType}

/**
 * A table of versions of an as-of join, with its arguments.
 *
 * @param spineKeys the names of the spine's key columns, and `keys` those of the table.
 * @param tolerance how far a version may be from the row of the spine; NULL is as far as it likes.
 * @param ties which of several versions of one time counts; if None, all other columns decide.
 */
private[skewext] case class AsOfTable(
    plan: LogicalPlan,
    spineKeys: Seq[String],
    keys: Seq[String],
    time: String,
    direction: String,
    tolerance: Option[Expression],
    exact: Boolean,
    ties: Option[Seq[Expression]])

/**
 * Builds the logical plan of an as-of join from its arguments. Tables that are compared by the same
 * expressions of the spine are one [[MultiAsOfJoin]], with one shuffle of the spine.
 *
 * @param suffixes if defined, for the spine and each table the suffix of columns whose name occurs
 *                 in another input, too.
 */
private[skewext] class AsOfJoinBuilder(
    session: SparkSession,
    spine: LogicalPlan,
    tables: Seq[AsOfTable],
    spineTime: String,
    how: String,
    suffixes: Option[Seq[String]]) {

  private def same = SQLConf.get.resolver
  private val columns = new AsOfColumns(session)
  private val (inputs, hints) = (spine +: tables.map(_.plan)).map(SqlInternals.withoutHints).unzip

  def build(): LogicalPlan = SqlInternals.withActive(session) {
    val inner = how match {
      case "left" => false
      case "inner" => true
      case other => fail(s"An as-of join is 'left' or 'inner', not '$other'.")
    }
    if (tables.isEmpty) fail("An as-of join needs at least one table of versions, got none.")
    suffixes.filter(_.size != tables.size + 1).foreach { given =>
      fail(s"suffixes must have ${tables.size + 1} entries, one for each input, not ${given.size}.")
    }
    BatchInputs.check(spine +: tables.map(_.plan), "an as-of join")
    val separated = NewIds.separated(inputs)
    val (base, ofSpine) = separated.head
    val parts = tables.indices.map { i =>
      val (plan, newColumn) = separated(i + 1)
      part(i, plan, newColumn, ofSpine)
    }
    val joined = parts
      .groupBy(p => (p.spine.keys :+ p.spine.time).map(_.canonicalized))
      .values
      .toSeq
      .sortBy(_.head.table)
      .foldLeft(base)(join(_, _, inner))
    named(joined, base.output.zip(spine.output.map(_.name)) +: parts.map(_.shown))
  }

  private def join(below: LogicalPlan, parts: Seq[Part], inner: Boolean): LogicalPlan = {
    val At(keys, time) = parts.head.spine
    MultiAsOfJoin(
      (if (inner) AsOfColumns.matchable(below, keys :+ time) else below) +: parts.map(_.plan),
      keys +: parts.map(_.own.keys),
      time +: parts.map(_.own.time),
      parts.map(_.matches),
      parts.map(_.ties),
      parts.map(_.within),
      inner,
      HintedInputs.hints(hints.head +: parts.map(p => hints(p.table + 1))))
  }

  /** The compared expressions of an input. */
  private case class At(keys: Seq[Expression], time: Expression)

  /**
   * A table with its resolved arguments.
   *
   * @param spine the expressions of the spine, and `own` those of the table.
   * @param shown the columns that the result has, with their names in the table.
   */
  private case class Part(
      table: Int,
      plan: LogicalPlan,
      spine: At,
      own: At,
      matches: AsOfMatch,
      ties: Seq[SortOrder],
      within: Seq[Expression],
      shown: Seq[(Attribute, String)])

  private def part(
      i: Int,
      plan: LogicalPlan,
      newColumn: Attribute => Attribute,
      ofSpine: Attribute => Attribute): Part = {
    val table = tables(i)
    checkKeys(i)
    val spineKeys = table.spineKeys.map(KeyColumn.of(spine, 0, _, same))
    val keys = table.keys.map(KeyColumn.of(table.plan, i + 1, _, same))
    val compared = spineKeys.zip(keys).map { case (l, r) =>
      KeyTypes.compared(session, r.name, Seq(ofSpine(l), newColumn(r)), isReturned = false)
    }
    val timeOfSpine = ofSpine(KeyColumn.of(spine, 0, spineTime, same))
    val time = KeyColumn.of(table.plan, i + 1, table.time, same)
    val ownTime = newColumn(time)
    val (spineAt, at) = times(i, timeOfSpine, ownTime)
    val matches = AsOfMatch(direction(i), table.exact)
    if (matches.direction == Nearest && !AsOfTolerance.hasDifferences(at.dataType)) {
      fail(noDifferences(i, "direction 'nearest'", at.dataType))
    }
    val within = tolerance(i, at).toSeq.flatMap { value =>
      bounds(i, value, matches.direction, Seq(timeOfSpine, ownTime), spineAt, at)
    }
    val newKeys = keys.map(newColumn)
    val (ordered, ties) = columns.order(
      table.plan,
      table.ties,
      time +: keys,
      s"Versions of one time in input ${i + 1} (counting from 0)")(plan, newColumn)
    Part(
      i,
      AsOfColumns.comparable(ordered, compared.map(_(1)) :+ at),
      At(compared.map(_.head), spineAt),
      At(compared.map(_(1)), at),
      matches,
      ties,
      within,
      plan.output.zip(table.plan.output.map(_.name)).filterNot { case (column, _) =>
        newKeys.exists(_.semanticEquals(column))
      })
  }

  private def checkKeys(i: Int): Unit = {
    val (ofSpine, own) = (tables(i).spineKeys, tables(i).keys)
    if (ofSpine.isEmpty) fail("The list of key columns is empty; an as-of join needs a key.")
    if (ofSpine.size != own.size) {
      fail(
        s"Input ${i + 1} (counting from 0) has ${own.size} key columns (${own.mkString(", ")}), " +
          s"the spine has ${ofSpine.size} (${ofSpine.mkString(", ")}).")
    }
  }

  private def direction(i: Int): AsOfDirection =
    AsOfDirection.fromName(tables(i).direction).getOrElse {
      fail(
        s"There is no direction '${tables(i).direction}'; the directions are " +
          s"${AsOfDirection.all.map(_.name).mkString(", ")}.")
    }

  /** Both times in the type in which Spark compares them. */
  private def times(i: Int, ofSpine: Attribute, own: Attribute): (Expression, Expression) = {
    val problem =
      s"The time '$spineTime' of the spine, of type ${ofSpine.dataType.sql}, cannot be " +
        s"compared with the time '${tables(i).time}' of input ${i + 1} (counting from 0), of type " +
        own.dataType.sql
    // Spark would read the strings as values of the other type, and as null if they are none.
    if (isString(ofSpine) != isString(own)) fail(s"$problem. Cast one of them to the other type.")
    columns.resolved(Seq(ofSpine, own), LessThanOrEqual(own, ofSpine), problem) match {
      case LessThanOrEqual(left, right) if KeyTypes.canBeKey(right.dataType) =>
        (KeyTypes.comparable(right), KeyTypes.comparable(left))
      case _ => fail(s"$problem.")
    }
  }

  private def isString(time: Attribute): Boolean = time.dataType.isInstanceOf[StringType]

  /** The tolerance of a table for times of this type. None if it has none, or NULL. */
  private def tolerance(i: Int, at: Expression): Option[Literal] =
    tables(i).tolerance.flatMap { tolerance =>
      val which = s"The tolerance of input ${i + 1} (counting from 0)"
      val given = columns.resolved(Nil, tolerance, s"$which is no constant")
      if (!given.foldable) fail(s"$which is no constant.")
      val value = Literal.create(given.eval(), given.dataType)
      if (value.value == null) None
      else {
        if (!AsOfTolerance.hasDifferences(at.dataType)) {
          fail(noDifferences(i, "a tolerance", at.dataType))
        }
        if (given.dataType == StringType) {
          fail(s"$which is a string; write it as INTERVAL ${value.sql}.")
        }
        if (AsOfTolerance.isNegative(value)) fail(s"$which is ${value.sql}, which is negative.")
        if (AsOfTolerance.isNaN(value)) fail(s"$which is NaN. Give a number.")
        Some(value)
      }
    }

  /** Conditions for a version before the row of the spine, or after it, or both. */
  private def bounds(
      i: Int,
      value: Literal,
      direction: AsOfDirection,
      columnsOfTime: Seq[Attribute],
      spineAt: Expression,
      at: Expression): Seq[Expression] = {
    val spineTime = columnsOfTime.head
    val problem = s"The tolerance ${value.sql} of input ${i + 1} (counting from 0) does not fit " +
      s"times of type ${spineTime.dataType.sql}"
    def resolved(condition: Expression) = columns.resolved(columnsOfTime, condition, problem)
    // Sums have the type in which times are compared: a narrower one overflows before the last
    // version. Dates stay dates if they can, as filters on dates skip files.
    val conditions = Seq(spineAt, spineTime)
      .find(_.dataType == DateType)
      .flatMap(AsOfTolerance.dates(_, at, value))
      .map(_.map(resolved))
      .orElse(AsOfTolerance.decimals(spineAt, at, value))
      .orElse(AsOfTolerance.floating(spineAt, at, value))
      .getOrElse(Seq(
        resolved(LessThanOrEqual(Subtract(spineAt, value, EvalMode.ANSI), at)),
        resolved(GreaterThanOrEqual(Add(spineAt, value, EvalMode.ANSI), at))))
    // An overflow bounds nothing: no time is beyond the limits of its type.
    val bounding =
      conditions.map(condition => Coalesce(Seq(TryEval(condition), Literal.TrueLiteral)))
    if (AsOfTolerance.isInfinite(value)) Nil
    else
      direction match {
        case Backward => bounding.take(1)
        case Forward => bounding.drop(1)
        case Nearest => bounding
      }
  }

  private def noDifferences(i: Int, what: String, of: DataType): String =
    s"Input ${i + 1} (counting from 0) has $what, but times of type ${of.sql} have no differences."

  /** The columns of the spine, then those of each table, under their final names. */
  private def named(joined: LogicalPlan, shown: Seq[Seq[(Attribute, String)]]): LogicalPlan = {
    val names = OutputNames
      .suffixed(shown.map(_.map(_._2)), suffixes.getOrElse(shown.map(_ => null: String)))
    val outputOf = AttributeMap(joined.output.map(a => a -> a))
    val all = for {
      ((columns, named), i) <- shown.zip(names).zipWithIndex
      ((column, _), name) <- columns.zip(named)
    } yield (outputOf(column), name, i)
    val first = all.reverse.map { case (_, name, i) => OutputNames.spelling(name) -> i }.toMap
    for ((_, name, i) <- all; other = first(OutputNames.spelling(name)) if other != i) {
      fail(
        s"Inputs $other and $i (counting from 0) both have a column '$name'. Give them different " +
          "suffixes=, or rename one of the columns.")
    }
    Project(
      all.map { case (column, name, _) =>
        if (column.name == name) column else Alias(column, name)()
      },
      joined)
  }
}
