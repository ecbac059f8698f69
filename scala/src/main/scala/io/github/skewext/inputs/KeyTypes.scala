package io.github.skewext.inputs

import scala.collection.JavaConverters._

import org.apache.spark.sql.catalyst.analysis.Resolver
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{LocalRelation, LogicalPlan, Project}
import org.apache.spark.sql.catalyst.types.DataTypeUtils
import org.apache.spark.sql.catalyst.util.{CharVarcharUtils, DateTimeUtils}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.skewext.{SparkShims, SqlInternals}
import org.apache.spark.sql.types._
import org.apache.spark.sql.{AnalysisException, SparkSession}

/**
 * The common type of a key column of all inputs. The join compares and returns keys in this type.
 */
private[skewext] case class KeyType(
    dataType: DataType,
    padded: Option[Seq[Attribute => Expression]]) {

  /** The column, cast to this type. */
  def typed(column: Attribute, timeZone: String): Expression =
    if (DataTypeUtils.sameType(column.dataType, dataType)) column
    else Cast(column, dataType, Some(timeZone))

  /**
   * The expression to compare for a column of this type. It differs from the column for `char(n)`
   * with different lengths, and for strings with a collation.
   */
  def compared(key: Attribute, input: Int): Expression =
    KeyTypes.comparable(padded.fold[Expression](key)(_(input)(key)))
}

/**
 * Finds the common type of a key column. Spark's analyzer types the chain of joins: comparisons
 * such as `coalesce(k1, k2) = k3`, and the result `coalesce(k1, k2, k3)`.
 *
 * A chain compares two by two, and each comparison has its own type. The operator compares all
 * inputs in one type. The result is the same if casts to that type keep different values different:
 * int to long, decimal to wider decimal, date to timestamp. Otherwise the join is refused, for
 * example for long and double in three or more inputs, or for a string and a number.
 */
private[skewext] object KeyTypes {

  /**
   * @param isReturned whether the result has the key once, as `coalesce(k1, k2)`. The type of that
   *                   may differ: equality of a string and a number compares numbers.
   */
  def common(
      session: SparkSession,
      name: String,
      columns: Seq[Attribute],
      isReturned: Boolean = true): KeyType = {
    requireOrder(columns)
    val attributes = columns.map(c => AttributeReference("k", c.dataType)())
    val (value, comparisons) =
      attributes.tail.foldLeft((attributes.head: Expression, Seq.empty[Expression])) {
        case ((value, comparisons), next) =>
          (Coalesce(Seq(value, next)), comparisons :+ EqualTo(value, next))
      }
    val results = if (isReturned) value +: comparisons else comparisons
    val project = Project(results.map(e => Alias(e, "e")()), LocalRelation(attributes))
    val analyzed =
      try {
        session.sessionState.executePlan(project).analyzed
      } catch {
        case e: AnalysisException => throw mismatch(name, columns, Some(e))
      }
    val result = analyzed.expressions.map { case a: Alias => a.child }
    val dataType = result.head match {
      case EqualTo(compared, _) => compared.dataType
      case key => key.dataType
    }
    // The analyzer has added casts, so each comparison shows the type in which the chain compares.
    val comparedAlike = result.takeRight(comparisons.size).forall {
      case EqualTo(l, r) =>
        canHold(l.dataType, dataType) && canHold(r.dataType, dataType) &&
        (columns.size > 2 || DataTypeUtils.sameType(l.dataType, dataType))
      case _ => false
    }
    val castKeepsValues = columns.forall(c => canHold(c.dataType, dataType))
    if (!comparedAlike || (columns.size > 2 && !castKeepsValues)) {
      throw mismatch(name, columns, None)
    }
    KeyType(dataType, padded(name, columns))
  }

  /** The key columns of one or two inputs, as a join compares them. */
  def compared(
      session: SparkSession,
      name: String,
      columns: Seq[Attribute],
      isReturned: Boolean = true): Seq[Expression] =
    if (columns.size < 2) {
      requireOrder(columns)
      columns.map(comparable)
    } else {
      val keyType = common(session, name, columns, isReturned)
      columns.zipWithIndex.map { case (c, i) =>
        comparable(
          keyType.padded
            .map(_(i)(c))
            .getOrElse(keyType.typed(c, SQLConf.get.sessionLocalTimeZone)))
      }
    }

  /** The expression to compare for a key: the collation key of a string with a collation. */
  def comparable(key: Expression): Expression =
    if (SparkShims.hasCollation(key.dataType)) SparkShims.collationKey(key) else key

  /**
   * Whether values of the type can be compared. Spark 4.1 reports that shapes can be, but fails
   * when it hashes one. Shapes are recognized by class name, because Spark 3.5 does not have these
   * types.
   */
  def hasOrder(t: DataType): Boolean = t match {
    case ArrayType(element, _) => hasOrder(element)
    case struct: StructType => struct.forall(field => hasOrder(field.dataType))
    case _ => RowOrdering.isOrderable(t) && !Shapes(t.getClass.getName)
  }

  /** Whether values of the type can be keys: they can be compared, without a collation inside. */
  def canBeKey(t: DataType): Boolean =
    hasOrder(t) && (t.isInstanceOf[StringType] || !SparkShims.hasCollation(t))

  private val Shapes = Set("GeometryType", "GeographyType").map("org.apache.spark.sql.types." + _)

  private def requireOrder(columns: Seq[Attribute]): Unit = columns.zipWithIndex.foreach {
    case (c, i) =>
      if (!canBeKey(c.dataType)) {
        throw SqlInternals.analysisError(
          s"Input $i (counting from 0) has the key column '${c.name}' of type ${c.dataType.sql}, " +
            "which cannot be compared, so it cannot be a key.")
      }
  }

  /** Whether a cast keeps different values different, and equal values equal. */
  def canHold(from: DataType, to: DataType): Boolean = (from, to) match {
    case _ if DataTypeUtils.sameType(from, to) => true
    case (NullType, _) => true
    case (ByteType | ShortType, FloatType) => true
    case (ByteType | ShortType | IntegerType | FloatType, DoubleType) => true
    case (ByteType | ShortType | IntegerType | LongType | _: DecimalType, _: DecimalType) =>
      Cast.canUpCast(from, to)
    case (ByteType | ShortType | IntegerType, ShortType | IntegerType | LongType) =>
      Cast.canUpCast(from, to)
    case (DateType, TimestampNTZType) => true
    case (DateType, TimestampType) => !skipsADay
    case (ArrayType(f, _), ArrayType(t, _)) => canHold(f, t)
    case (f: StructType, t: StructType) =>
      f.length == t.length && f.zip(t).forall { case (a, b) => canHold(a.dataType, b.dataType) }
    case _ => false
  }

  /** Whether the midnight of a day is that of the next one, as of 2011-12-30 in Pacific/Apia. */
  private def skipsADay: Boolean =
    DateTimeUtils
      .getZoneId(SQLConf.get.sessionLocalTimeZone)
      .getRules
      .getTransitions
      .asScala
      .exists(_.getDuration.toHours >= 24)

  /**
   * Compares columns of `char(n)`, also in structs and arrays, as if padded to one length. A chain
   * pads only when it compares two columns: those of the first two inputs, but not a coalesce with
   * a third one. With three or more inputs, columns of different lengths are therefore refused.
   */
  private def padded(
      name: String,
      columns: Seq[Attribute]): Option[Seq[Attribute => Expression]] = {
    val firstTwo = columns.take(2)
    val paddings = padded(
      firstTwo,
      !SQLConf.get.readSideCharPadding &&
        // By its key: Spark 3.5.0 lacks the entry.
        !SQLConf.get.getConfString("spark.sql.legacy.noCharPaddingInPredicate", "false").toBoolean)
    if (paddings == firstTwo) {
      None
    } else if (columns.size == 2) {
      Some(firstTwo.zip(paddings).map { case (column, padding) =>
        (key: Attribute) =>
          padding.transform { case a: Attribute if a.exprId == column.exprId => key }
      })
    } else {
      val types = firstTwo.flatMap(c => CharVarcharUtils.getRawType(c.metadata)).map(_.sql)
      throw SqlInternals.analysisError(
        s"Key column '$name' is char(n) with different lengths (${types.mkString(", ")}). With " +
          "three or more inputs, Spark pads such keys differently in each comparison. Pad or trim " +
          "them to one length before the join.")
    }
  }

  /**
   * @param always whether to pad columns that the scan has not padded; a parameter since Spark
   *               3.5.2.
   */
  private def padded(columns: Seq[Attribute], always: Boolean): Seq[Expression] =
    try {
      CharVarcharUtils.addPaddingInStringComparison(columns, always)
    } catch {
      case _: NoSuchMethodError =>
        CharVarcharUtils.getClass
          .getMethod("addPaddingInStringComparison", classOf[Seq[_]])
          .invoke(CharVarcharUtils, columns)
          .asInstanceOf[Seq[Expression]]
    }

  private def mismatch(name: String, columns: Seq[Attribute], cause: Option[Throwable]) = {
    val types = columns.zipWithIndex.map { case (c, i) => s"input $i: ${c.name} ${c.dataType.sql}" }
    SqlInternals.analysisError(
      s"Key column '$name' has types that cannot all be compared in one type without changing " +
        s"which keys are equal (${types.mkString(", ")}). Cast the columns to one type before " +
        "the join.",
      cause)
  }
}

/** Finds a key column of an input by its name. The error for a missing column lists the columns. */
private[skewext] object KeyColumn {

  def of(input: LogicalPlan, position: Int, name: String, same: Resolver): Attribute = {
    input.output.filter(a => same(a.name, name)) match {
      case Seq(column) => column
      case Seq() =>
        val columns = input.output.map(_.name).mkString("[", ", ", "]")
        fail(position, s"no column '$name'; its columns are $columns.")
      case several =>
        fail(
          position,
          s"${several.size} columns named '$name', so the key is ambiguous; rename or drop all " +
            "but one.")
    }
  }

  private def fail(position: Int, has: String): Nothing =
    throw SqlInternals.analysisError(s"Input $position (counting from 0) has $has")
}

private[skewext] object BatchInputs {

  /** Refuses streams. */
  def check(inputs: Seq[LogicalPlan], what: String): Unit =
    inputs.indices.find(inputs(_).isStreaming).foreach { i =>
      throw SqlInternals.analysisError(
        s"Input $i (counting from 0) is a streaming DataFrame; $what supports only batch inputs.")
    }
}
