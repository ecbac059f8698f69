package io.github.skewext.function

import scala.collection.{Seq => AnySeq, mutable}

import org.json4s.jackson.JsonMethods

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute
import org.apache.spark.sql.catalyst.expressions.{Alias, Expression, FunctionTableSubqueryArgumentExpression, Literal, NamedArgumentExpression}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, OneRowRelation, Project, SubqueryAlias, View}
import org.apache.spark.sql.catalyst.util.ArrayData
import org.apache.spark.sql.catalyst.{CatalystTypeConverters, InternalRow}
import org.apache.spark.sql.skewext.{SparkShims, SqlInternals}
import org.apache.spark.sql.types.{ArrayType, DataType, StructType}

/**
 * A call of a function of skewext: tables by position, the other arguments by name. SQL and Python
 * make the same requests, and [[TableFunctions]] calls the builders of plans with them.
 *
 * @param arguments literals of SQL, or values of JSON: strings, numbers, booleans, lists, maps.
 *                  Without nulls, which are like missing arguments.
 * @param columns   for each table, the columns that Python computes from it.
 * @param runsJobs  whether the function may run jobs before its plan runs.
 */
private[skewext] case class Request(
    function: String,
    arguments: Map[String, Any],
    tables: Seq[LogicalPlan],
    columns: Seq[Seq[Expression]] = Nil,
    runsJobs: Boolean = false) {

  private def value(name: String): Option[Any] = arguments.get(name).map {
    case Literal(value, dataType) => CatalystTypeConverters.convertToScala(value, dataType)
    case other => other
  }

  private def read[T](name: String, wanted: String)(known: PartialFunction[Any, T]): Option[T] =
    value(name).map(v => known.applyOrElse(v, (_: Any) => wrong(name, wanted)))

  private def wrong(name: String, wanted: String): Nothing =
    fail(s"the argument '$name' must be $wanted, not ${value(name).get}.")

  def fail(problem: String): Nothing = Request.fail(function, problem)

  /** A value that was read, or an error if the argument was not given. */
  def required[T](name: String, value: Option[T]): T =
    value.getOrElse(fail(s"the argument '$name' is missing."))

  def text(name: String): Option[String] = read(name, "a string") { case text: String => text }

  /** A string, or several. A list may contain NULLs. */
  def texts(name: String): Option[Seq[String]] =
    read(name, "a string or an array of strings") {
      case text: String => Seq(text)
      case Request.Texts(list) => list
    }

  /** A string or another value of JSON, or several. A list may contain NULLs. */
  def list(name: String): Option[Seq[Any]] = value(name).collect { case list: AnySeq[_] =>
    list.toVector
  } orElse texts(name)

  /** The name of a column, or several. */
  def names(name: String): Option[Seq[String]] = texts(name).map { found =>
    if (found.contains(null)) fail(s"a name in '$name' is NULL.")
    found
  }

  /** Names of columns, or a flag: true for `default`, false for none. */
  def namesOrFlag(name: String, default: Seq[String]): Option[Seq[String]] = value(name) match {
    case Some(isDefault: Boolean) => Some(if (isDefault) default else Nil)
    case _ => names(name)
  }

  /** The elements of a list, if there are lists among them. */
  def nested(name: String): Option[Seq[Any]] = value(name).collect {
    case list: AnySeq[_] if list.exists(_.isInstanceOf[AnySeq[_]]) => list.toVector
  }

  def number(name: String): Option[BigDecimal] = read(name, "a number") {
    case whole @ (_: Byte | _: Short | _: Int | _: Long | _: BigInt) => BigDecimal(whole.toString)
    case decimal: java.math.BigDecimal => BigDecimal(decimal)
    case float: Float if !float.isNaN && !float.isInfinite => BigDecimal(float.toString)
    case double: Double if !double.isNaN && !double.isInfinite => BigDecimal(double)
  }

  /** A whole number from `least` to `most`. */
  def whole(name: String, least: Long, most: Long): Option[Long] = number(name).map { value =>
    if (!value.isWhole || value < least || value > most) {
      fail(s"the argument '$name' must be a whole number from $least to $most, not $value.")
    }
    value.toLong
  }

  /** A string, or a number as text. */
  def word(name: String): Option[String] = value(name).map {
    case text: String => text
    case _ => number(name).get.bigDecimal.toPlainString
  }

  /** A flag, or several. */
  def flags(name: String): Option[Seq[Boolean]] =
    read(name, "true or false, or an array of these") {
      case flag: Boolean => Seq(flag)
      case list: AnySeq[_] if list.forall(_.isInstanceOf[Boolean]) =>
        list.toVector.map(_.asInstanceOf[Boolean])
    }

  def flag(name: String): Option[Boolean] = read(name, "true or false") { case flag: Boolean =>
    flag
  }

  /** A map, with its keys and values as text, without keys whose value is null. */
  def pairs(name: String): Option[Map[String, String]] = read(name, "a map") {
    case map: scala.collection.Map[_, _] =>
      map.collect { case (key, value) if value != null => key.toString -> value.toString }.toMap
  }

  /** A constant of any type, or several: the elements of an array, or the fields of a struct. */
  def constants(name: String): Option[Seq[Expression]] = arguments.get(name).map {
    case Request.Elements(elements) => elements
    case literal: Literal => Request.fields(literal)
    case list: AnySeq[_] => list.toVector.map(expression)
  }

  /** An array with a value for each row, or a struct of values. */
  def rows(name: String): Option[Seq[Seq[Expression]]] = arguments.get(name).map {
    case Request.Elements(elements) => elements.map(Request.fields)
    case rows: AnySeq[_] =>
      rows.toVector.collect { case row: AnySeq[_] => row.toVector.map(expression) }
    case _ => wrong(name, "an array")
  }

  /** A value of JSON for an expression: null, a computed column, or a constant as SQL writes it. */
  private def expression(value: Any): Expression = value match {
    case null => Literal(null)
    case text: String =>
      val session = SparkSession.active.sessionState
      val project =
        Project(Seq(Alias(session.sqlParser.parseExpression(text), "e")()), OneRowRelation())
      session.executePlan(project).analyzed match {
        case Project(Seq(Alias(e, _)), _) if e.foldable => Literal(e.eval(), e.dataType)
        case _ => fail(s"$text is not a constant.")
      }
    case place: Map[_, _] => column(place)
  }

  /**
   * A column in JSON: `{"name": "k"}`, or for one of `columns` its table and its place among the
   * columns of that table, `{"column": [0, 2]}`.
   */
  def column(json: Map[_, _]): Expression = json.head match {
    case (_, List(table: BigInt, i: BigInt)) => columns(table.toInt)(i.toInt)
    case (_, name) => UnresolvedAttribute(Seq(name.toString))
  }
}

private[skewext] object Request {

  private def fail(function: String, problem: String): Nothing =
    throw SqlInternals.analysisError(s"skewext_$function: $problem")

  /**
   * A call in SQL: first tables, `TABLE(t)` or `TABLE(SELECT ...)`, then constants by position, then
   * constants by name.
   */
  def ofSql(function: String, parameters: Seq[String], given: Seq[Expression]): Request = {
    val (tables, others) = given.span(_.isInstanceOf[FunctionTableSubqueryArgumentExpression])
    val plans = tables.zipWithIndex.collect {
      case (table: FunctionTableSubqueryArgumentExpression, i) =>
        if (table.outerAttrs.nonEmpty) {
          fail(function, s"table $i (counting from 0) refers to columns of the query around it.")
        }
        if (SparkShims.isArranged(table)) {
          fail(
            function,
            s"table $i (counting from 0) has PARTITION BY, ORDER BY or WITH SINGLE PARTITION, " +
              "which are for functions that are written in Python.")
        }
        table.plan
    }
    val found = mutable.LinkedHashMap.empty[String, Literal]
    others.zipWithIndex.foreach { case (argument, position) =>
      val (name, e) = argument match {
        case NamedArgumentExpression(key, value) =>
          val name = parameters.find(_.equalsIgnoreCase(key)).getOrElse {
            val known =
              if (parameters.isEmpty) "there are none" else s"they are ${parameters.mkString(", ")}"
            fail(function, s"there is no argument '$key'; $known.")
          }
          (name, value)
        case value if position < parameters.size => (parameters(position), value)
        case _ =>
          val most = if (parameters.isEmpty) "nothing" else parameters.mkString(", ")
          fail(
            function,
            s"there are ${others.size} arguments after the tables, and it takes $most.")
      }
      if (found.contains(name)) fail(function, s"the argument '$name' is given twice.")
      if (e.isInstanceOf[FunctionTableSubqueryArgumentExpression]) {
        fail(function, "tables come first, and have no names.")
      }
      if (!e.foldable) fail(function, s"the argument '$name' must be a constant, not ${e.sql}.")
      found(name) = Literal(e.eval(), e.dataType)
    }
    Request(function, found.filterNot(_._2.value == null).toMap, plans)
  }

  /**
   * A call in Python, as JSON: `function`, `arguments`, and for each table in `columns` the number of
   * columns that Python has added to those of the table. A Column cannot be written as JSON, but
   * every session can select it.
   */
  def ofJson(json: String, tables: Seq[LogicalPlan], runsJobs: Boolean): Request = {
    val fields = JsonMethods.parse(json).values.asInstanceOf[Map[String, Any]]
    val function = fields("function").toString
    val counts = fields("columns").asInstanceOf[Seq[BigInt]].map(_.toInt)
    val (plans, columns) = tables
      .zip(counts)
      .map { case (table, count) =>
        withoutView(table) match {
          case Project(list, child) if count > 0 =>
            val (own, added) = list.splitAt(list.size - count)
            val plan = if (own == child.output) child else Project(own, child)
            val columns = added.map {
              case Alias(e, _) => e
              case attribute => attribute
            }
            columns.find(!_.references.subsetOf(plan.outputSet)).foreach { column =>
              fail(function, s"${column.sql} is not computed from the columns of one row.")
            }
            (plan, columns)
          case plan => (plan, Nil)
        }
      }
      .unzip
    val given = fields("arguments").asInstanceOf[Map[String, Any]].filter(_._2 != null)
    Request(function, given, plans, columns, runsJobs)
  }

  /**
   * The table without the view that a client of Spark Connect makes of a DataFrame. A view hides the
   * aliases below.
   */
  private def withoutView(table: LogicalPlan): LogicalPlan = table match {
    case SubqueryAlias(_, view: View) if view.isTempViewStoringAnalyzedPlan => view.child
    case other => other
  }

  /** A list of strings, which may contain nulls. */
  object Texts {
    def unapply(list: AnySeq[_]): Option[Seq[String]] =
      if (list.forall(e => e == null || e.isInstanceOf[String])) {
        Some(list.toVector.map(_.asInstanceOf[String]))
      } else None
  }

  /** The elements of an array, as literals. */
  private object Elements {
    def unapply(literal: Literal): Option[Seq[Literal]] = (literal.value, literal.dataType) match {
      case (array: ArrayData, ArrayType(element, _)) =>
        Some(array.toSeq[Any](element).map(Literal(_, element)))
      case _ => None
    }
  }

  /** The fields of a struct, or else the constant itself. */
  private def fields(constant: Literal): Seq[Literal] = (constant.value, constant.dataType) match {
    case (row: InternalRow, struct: StructType) =>
      row.toSeq(struct).zip(struct.map(_.dataType)).map { case (value, t: DataType) =>
        Literal(value, t)
      }
    case _ => Seq(constant)
  }
}
