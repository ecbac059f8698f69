package io.github.skewext

import scala.util.Try

import org.apache.spark.sql.catalyst.FunctionIdentifier
import org.apache.spark.sql.catalyst.analysis.{FunctionRegistry, UnresolvedAttribute, UnresolvedStar}
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.parser.CatalystSqlParser
import org.apache.spark.sql.types._

/**
 * Calls of Spark's functions whose arguments are columns with nulls at each level of nesting. The
 * examples in the documentation of the functions give the values of the arguments.
 *
 * @param typeOf the type of an expression of literals, None if it is none
 * @param examples how many examples of a function are called, at most
 * @param rotation shifts the shapes in which the values are stored
 */
private[skewext] final class FunctionCalls(
    typeOf: String => Option[DataType],
    examples: Int,
    rotation: Int) {
  import FunctionCalls._

  /** All calls, in groups. Each group has columns of its own. */
  lazy val groups: Seq[Group] = {
    val found = for {
      name <- FunctionRegistry.builtin.listFunction().map(_.funcName).distinct.sorted.toList
      info <- FunctionRegistry.builtin.lookupFunction(FunctionIdentifier(name)).toSeq
      call <- Example
        .findAllMatchIn(info.getExamples)
        .map(_.group(1))
        .map(example => (name, example, arguments(example)))
        .filter(_._3.nonEmpty)
        .take(examples)
    } yield call
    found.grouped(GroupSize).zipWithIndex.toList.map { case (calls, g) => group(g, calls) }
  }

  /** The arguments that columns can replace. */
  private def arguments(example: String): Seq[Argument] =
    Try(CatalystSqlParser.parseExpression(example)).toOption.toSeq
      .flatMap {
        case named: NamedExpression if named.children.size == 1 => named.children.head.children
        case call => call.children
      }
      .flatMap { argument =>
        val isFixed = !argument.exists {
          case _: LambdaFunction | _: UnresolvedAttribute | _: UnresolvedStar |
              _: UnresolvedNamedLambdaVariable =>
            true
          case _ => false
        }
        val origin = argument.origin
        if (isFixed && origin.startIndex.isDefined && origin.stopIndex.isDefined) {
          val (start, end) = (origin.startIndex.get, origin.stopIndex.get + 1)
          val text = example.substring(start, end)
          typeOf(text).filter(isStorable).map(Argument(start, end, text, _))
        } else {
          None
        }
      }
      .sortBy(_.start)
      // Of a chain of operators, whose arguments have others inside, the first.
      .foldLeft(Seq.empty[Argument]) { (before, next) =>
        if (before.exists(_.end > next.start)) before else before :+ next
      }

  private def group(g: Int, calls: Seq[(String, String, Seq[Argument])]): Group = {
    val values = calls.flatMap { case (_, example, arguments) => arguments.map(example -> _) }
    // A place in the order is a value's name.
    val stored = values.indices.map(v => shapes((v + rotation) % shapes.size)(g, v))
    val columns = values
      .zip(stored)
      .zipWithIndex
      .groupBy(_._1._2.column)
      .toSeq
      .sortBy(_._1)
      .map { case (column, parts) =>
        val fields = parts.map { case (((_, argument), place), v) =>
          (s"v$v", place.holding(argument, v))
        }
        s"${parts.head._1._2.made(fields)} AS $column"
      }
    val readings = values.zip(stored.map(_.read)).toMap
    val variants = calls.flatMap { case (name, example, arguments) =>
      val each = arguments.map(a => a -> readings((example, a)))
      val sets = each +: (if (each.size > 1) each.map(Seq(_)) else Nil)
      Seq(Call(name, sets.map(replaced(example, _))))
    }
    Group(g, columns, stored.map(_.column).distinct, variants)
  }

  private def replaced(example: String, by: Seq[(Argument, String)]): String =
    by.sortBy(-_._1.start).foldLeft(example) { case (text, (a, column)) =>
      text.substring(0, a.start) + column + text.substring(a.end)
    }
}

private[skewext] object FunctionCalls {

  private val GroupSize = 30

  private val Example = """(?m)^\s*> SELECT (.*);\s*$""".r

  case class Argument(start: Int, end: Int, text: String, dataType: DataType)

  /** @param texts the call with all its arguments replaced, then with each by itself */
  case class Call(function: String, texts: Seq[String])

  /** @param select how to make the columns from a number `id` */
  case class Group(number: Int, select: Seq[String], columns: Seq[String], calls: Seq[Call])

  /**
   * Where a value is stored.
   *
   * @param read gets the value out of the column. `@` is in place of the table.
   */
  private case class Place(
      column: String,
      read: String,
      holding: (Argument, Int) => String,
      made: Seq[(String, String)] => String)

  /** The name of a table in the calls. */
  def of(text: String, table: String): String = text.replace("@", table)

  private def struct(fields: Seq[(String, String)]): String =
    fields.map { case (name, value) => s"'$name', $value" }.mkString("named_struct(", ", ", ")")

  private def single(fields: Seq[(String, String)]): String = fields.head._2

  private def orNull(condition: String, value: String) = s"if($condition, null, $value)"

  private val shapes: Seq[(Int, Int) => Place] = Seq(
    (g, v) =>
      Place(s"s_$g", s"@s_$g.v$v", value(_, _), fields => orNull("id % 7 = 1", struct(fields))),
    (g, v) =>
      Place(
        s"a_${g}_$v",
        s"@a_${g}_$v[0]",
        (a, i) => orNull("id % 8 = 1", s"array(${value(a, i)}, null, ${value(a, i + 1)})"),
        single),
    (g, v) =>
      Place(
        s"n_$g",
        s"@n_$g.s.v$v",
        value(_, _),
        fields =>
          orNull(
            "id % 11 = 2",
            s"named_struct('s', ${orNull("id % 7 = 4", struct(fields))}, 'i', id)")),
    (g, v) =>
      Place(
        s"m_${g}_$v",
        s"@m_${g}_$v['x']",
        (a, i) => orNull("id % 9 = 4", s"map('y', null, 'x', ${value(a, i)})"),
        single),
    (g, v) =>
      Place(
        s"x_${g}_$v",
        s"@x_${g}_$v[1].f",
        (a, i) =>
          orNull(
            "id % 10 = 3",
            s"array(null, ${orNull("id % 4 = 2", s"named_struct('f', ${value(a, i)})")})"),
        single),
    (g, v) =>
      Place(
        s"y_${g}_$v",
        s"@y_${g}_$v['k'][0]",
        (a, i) => s"map('k', ${orNull("id % 5 = 4", s"array(${value(a, i)}, null)")}, 'l', null)",
        single))

  /** The value in two rows of three, with nulls inside. */
  private def value(argument: Argument, i: Int): String =
    orNull(s"(id + $i) % 3 = 0", withNulls(argument.text, argument.dataType, i, 0))

  private def withNulls(text: String, dataType: DataType, i: Int, depth: Int): String = {
    val (x, p) = (s"x$depth", s"p$depth")
    dataType match {
      case ArrayType(element, _) =>
        val inner = withNulls(x, element, i, depth + 1)
        s"transform($text, ($x, $p) -> ${orNull(s"($p + id + $i) % 4 = 1", inner)})"
      case MapType(_, element, _) =>
        val inner = withNulls(x, element, i, depth + 1)
        s"transform_values($text, ($p, $x) -> ${orNull(s"pmod(hash($p) + id, 4) = 1", inner)})"
      case StructType(fields) =>
        struct(fields.toSeq.zipWithIndex.map { case (field, j) =>
          val inner = withNulls(s"($text).`${field.name}`", field.dataType, i, depth)
          (field.name, orNull(s"(id + $i + $j) % 4 = 1", inner))
        })
      case _ => text
    }
  }

  private def isStorable(dataType: DataType): Boolean = dataType match {
    case BooleanType | _: NumericType | BinaryType | DateType | TimestampType | TimestampNTZType |
        _: YearMonthIntervalType | _: DayTimeIntervalType =>
      true
    case text: StringType => text == StringType
    case ArrayType(element, _) => isStorable(element)
    case MapType(key, element, _) => isStorable(key) && isStorable(element)
    case StructType(fields) => fields.nonEmpty && fields.forall(f => isStorable(f.dataType))
    case _ => false
  }
}
