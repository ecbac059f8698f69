package io.github.skewext.function

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions.{Expression, FunctionTableSubqueryArgumentExpression, Literal, NamedArgumentExpression}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.util.ArrayData
import org.apache.spark.sql.catalyst.{CatalystTypeConverters, InternalRow}
import org.apache.spark.sql.skewext.{SparkShims, SqlInternals}
import org.apache.spark.sql.types.{ArrayType, DataType, StructType}

/**
 * The arguments of a table function: first tables, `TABLE(t)` or `TABLE(SELECT ...)`, then
 * constants by position, then constants by name. A NULL argument is like a missing one.
 *
 * @param parameters the names of the parameters after the tables, in their order.
 */
private[function] class TableArguments(
    function: String,
    parameters: Seq[String],
    arguments: Seq[Expression]) {

  private val (tableArguments, others) =
    arguments.span(_.isInstanceOf[FunctionTableSubqueryArgumentExpression])

  /** The tables, analyzed. */
  val tables: Seq[LogicalPlan] = tableArguments.zipWithIndex.map {
    case (table: FunctionTableSubqueryArgumentExpression, i) =>
      if (table.outerAttrs.nonEmpty) {
        fail(s"table $i (counting from 0) refers to columns of the query around it.")
      }
      if (SparkShims.isArranged(table)) {
        fail(
          s"table $i (counting from 0) has PARTITION BY, ORDER BY or WITH SINGLE PARTITION, which " +
            "are for functions that are written in Python.")
      }
      table.plan
    case (other, _) => throw new IllegalArgumentException(s"No table: $other")
  }

  private val literals: Map[String, Literal] = {
    val found = mutable.LinkedHashMap.empty[String, Literal]
    others.zipWithIndex.foreach { case (argument, position) =>
      val (name, e) = argument match {
        case NamedArgumentExpression(key, value) => (known(key), value)
        case value if position < parameters.size => (parameters(position), value)
        case _ =>
          val most = if (parameters.isEmpty) "nothing" else parameters.mkString(", ")
          fail(s"there are ${others.size} arguments after the tables, and it takes $most.")
      }
      if (found.contains(name)) fail(s"the argument '$name' is given twice.")
      found(name) = constant(name, e)
    }
    found.filterNot(_._2.value == null).toMap
  }

  private val values: Map[String, Any] = literals.map { case (name, literal) =>
    name -> CatalystTypeConverters.convertToScala(literal.value, literal.dataType)
  }

  /** A value that was read, or an error if the argument was not given. */
  def required[T](name: String, value: Option[T]): T =
    value.getOrElse(fail(s"the argument '$name' is missing."))

  def text(name: String): Option[String] = values.get(name).map {
    case text: String => text
    case other => wrong(name, "a string", other)
  }

  /** A string, or several. A list may contain NULLs. */
  def texts(name: String): Option[Seq[String]] = values.get(name).map {
    case text: String => Seq(text)
    case list: scala.collection.Seq[_] => strings(name, list)
    case other => wrong(name, "a string or an array of strings", other)
  }

  /** The name of a column, or several. */
  def names(name: String): Option[Seq[String]] = texts(name).map { found =>
    if (found.contains(null)) fail(s"a name in '$name' is NULL.")
    found
  }

  /** Names of columns, or a flag: true for `default`, false for none. */
  def namesOrFlag(name: String, default: Seq[String]): Option[Seq[String]] =
    if (values.get(name).exists(_.isInstanceOf[Boolean])) {
      flag(name).map(if (_) default else Nil)
    } else {
      names(name)
    }

  /** Whether it is a list of lists. */
  def isNested(name: String): Boolean = values.get(name).exists {
    case list: scala.collection.Seq[_] => list.exists(_.isInstanceOf[scala.collection.Seq[_]])
    case _ => false
  }

  /** Several lists of strings. A list may be NULL, or contain NULLs. */
  def nested(name: String): Option[Seq[Seq[String]]] = values.get(name).map {
    case lists: scala.collection.Seq[_] =>
      lists.toVector.map {
        case null => null
        case list: scala.collection.Seq[_] => strings(name, list)
        case other => wrong(name, "an array of arrays of strings", other)
      }
    case other => wrong(name, "an array of arrays of strings", other)
  }

  def number(name: String): Option[BigDecimal] = values.get(name).map {
    case whole @ (_: Byte | _: Short | _: Int | _: Long) => BigDecimal(whole.toString)
    case decimal: java.math.BigDecimal => BigDecimal(decimal)
    case double: Double if !double.isNaN && !double.isInfinite => BigDecimal(double)
    case other => wrong(name, "a number", other)
  }

  /** A string, or a number as text. */
  def word(name: String): Option[String] = values.get(name).map {
    case text: String => text
    case _ => number(name).get.bigDecimal.toPlainString
  }

  /** An array that has for each row a value, or a struct of values, as literals. */
  def rows(name: String): Option[Seq[Seq[Literal]]] = literals.get(name).map { literal =>
    (literal.value, literal.dataType) match {
      case (array: ArrayData, ArrayType(element, _)) => elements(array, element).map(fields)
      case _ => wrong(name, "an array", values(name))
    }
  }

  /** A map, with its keys and values as text, without keys whose value is null. */
  def pairs(name: String): Option[Map[String, String]] = values.get(name).map {
    case map: scala.collection.Map[_, _] =>
      map.collect { case (key, value) if value != null => key.toString -> value.toString }.toMap
    case other => wrong(name, "a map", other)
  }

  /** A whole number from `least` to `most`. */
  def whole(name: String, least: Long, most: Long): Option[Long] = number(name).map { value =>
    if (!value.isWhole || value < least || value > most) {
      fail(s"the argument '$name' must be a whole number from $least to $most, not $value.")
    }
    value.toLong
  }

  def flag(name: String): Option[Boolean] = values.get(name).map {
    case flag: Boolean => flag
    case other => wrong(name, "true or false", other)
  }

  /** A flag, or several. */
  def flags(name: String): Option[Seq[Boolean]] = values.get(name).map {
    case flag: Boolean => Seq(flag)
    case list: scala.collection.Seq[_] =>
      list.toVector.map {
        case flag: Boolean => flag
        case other => wrong(name, "an array of true or false", other)
      }
    case other => wrong(name, "true or false, or an array of these", other)
  }

  /** A constant of any type, or several: the elements of an array, or the fields of a struct. */
  def constants(name: String): Option[Seq[Literal]] = literals.get(name).map { literal =>
    (literal.value, literal.dataType) match {
      case (array: ArrayData, ArrayType(element, _)) => elements(array, element)
      case _ => fields(literal)
    }
  }

  private def elements(array: ArrayData, element: DataType): Seq[Literal] =
    array.toSeq[Any](element).map(Literal(_, element))

  /** The fields of a struct, or else the constant itself. */
  private def fields(constant: Literal): Seq[Literal] =
    (constant.value, constant.dataType) match {
      case (row: InternalRow, struct: StructType) =>
        row.toSeq(struct).zip(struct.map(_.dataType)).map { case (value, t) => Literal(value, t) }
      case _ => Seq(constant)
    }

  def fail(problem: String): Nothing = throw SqlInternals.analysisError(s"$function: $problem")

  private def strings(name: String, list: scala.collection.Seq[_]): Seq[String] =
    list.toVector.map {
      case null => null
      case text: String => text
      case other => wrong(name, "an array of strings", other)
    }

  private def wrong(name: String, wanted: String, value: Any): Nothing =
    fail(s"the argument '$name' must be $wanted, not $value.")

  private def known(key: String): String = parameters
    .find(_.equalsIgnoreCase(key))
    .getOrElse {
      val names =
        if (parameters.isEmpty) "there are none" else s"they are ${parameters.mkString(", ")}"
      fail(s"there is no argument '$key'; $names.")
    }

  private def constant(name: String, e: Expression): Literal = {
    if (e.isInstanceOf[FunctionTableSubqueryArgumentExpression]) {
      fail("tables come first, and have no names.")
    }
    if (!e.foldable) fail(s"the argument '$name' must be a constant, not ${e.sql}.")
    Literal(e.eval(), e.dataType)
  }
}
