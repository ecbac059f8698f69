package io.github.skewext.facts

import org.apache.spark.sql.catalyst.expressions.{Attribute, BoundReference, Expression}
import org.apache.spark.sql.skewext.{SparkShims, SqlInternals}
import org.apache.spark.sql.types._

/** Whether equal values are identical, so that comparing and hashing bytes is enough. */
private[skewext] object ComparedByBytes {

  /** Whether a key is a column of a type whose equal values are identical. */
  def apply(key: Expression): Boolean = key match {
    case BoundReference(_, dataType, _) => apply(dataType)
    case a: Attribute => apply(a.dataType)
    case _ => false
  }

  /** Whether values of the type are equal exactly if their bytes in an UnsafeRow are equal. */
  def apply(dataType: DataType): Boolean = dataType match {
    case BooleanType | ByteType | ShortType | IntegerType | LongType | DateType | TimestampType |
        TimestampNTZType | StringType | BinaryType =>
      true
    case _: DecimalType | _: YearMonthIntervalType | _: DayTimeIntervalType => true
    case other => SparkShims.isTime(other)
  }

  /** Whether equal values of the type, which may have parts, are identical, unlike -0.0 and 0.0. */
  def isExact(dataType: DataType): Boolean = dataType match {
    case ArrayType(element, _) => isExact(element)
    case struct: StructType => struct.forall(field => isExact(field.dataType))
    case other => apply(other)
  }

  /**
   * Whether equal keys of the type may differ in their bytes: with a collation, or in user-defined
   * types of floating-point numbers. Spark normalizes other floating-point numbers in keys.
   */
  def mayDiffer(keyType: DataType): Boolean = SparkShims.hasCollation(keyType) || (keyType match {
    case udt: UserDefinedType[_] => SqlInternals.contains(udt.sqlType)(isFloating)
    case ArrayType(element, _) => mayDiffer(element)
    case struct: StructType => struct.exists(field => mayDiffer(field.dataType))
    case _ => false
  })

  private def isFloating(t: DataType): Boolean = t == FloatType || t == DoubleType
}
