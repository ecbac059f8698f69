package io.github.skewext.internal

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression, Literal, UnsafeProjection}
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning
import org.apache.spark.sql.types._
import org.apache.spark.sql.vectorized.{ColumnVector, ColumnarBatch}
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.hash.Murmur3_x86_32.{hashInt, hashLong, hashUnsafeBytes}

/** Which partitions the rows of a batch go to. */
trait ColumnRoutes {

  /** Puts those of `rows` rows from `from` on into `partitions`, from `at` on. */
  def find(batch: ColumnarBatch, from: Int, rows: Int, partitions: Array[Int], at: Int): Unit
}

/** A long that is 0 in rows where none of the other expressions of its partitioning is null. */
trait ZeroWithoutNulls extends Expression

object ColumnRoutes {

  /** As Spark's exchange by `partitioning`, by column if the keys are columns. Not to be serialized. */
  def of(partitioning: HashPartitioning, input: Seq[Attribute]): ColumnRoutes = {
    def ofRows: ColumnRoutes = {
      val projection = UnsafeProjection.create(partitioning.partitionIdExpression :: Nil, input)
      byRow(projection(_).getInt(0))
    }
    val (keys, isZero) = partitioning.expressions match {
      case keys :+ (_: ZeroWithoutNulls) => (keys, true)
      case keys :+ Literal(0L, LongType) => (keys, true)
      case keys => (keys, false)
    }
    val places = keys.map(columnOf(_, input))
    if (places.forall(_.isDefined)) {
      val columns = places.flatten.toArray
      val types = columns.map(input(_).dataType)
      new ByHash(columns, types, partitioning.numPartitions, isZero, ofRows)
    } else {
      ofRows
    }
  }

  def byRow(partitionOf: InternalRow => Int): ColumnRoutes =
    (batch, from, rows, partitions, at) => {
      var i = 0
      while (i < rows) {
        partitions(at + i) = partitionOf(batch.getRow(from + i))
        i += 1
      }
    }

  private def columnOf(key: Expression, input: Seq[Attribute]): Option[Int] = key match {
    case column: Attribute if isHashed(column.dataType) =>
      Some(input.indexWhere(_.exprId == column.exprId)).filter(_ >= 0)
    case _ => None
  }

  private def isHashed(dataType: DataType): Boolean = dataType match {
    // From Spark 4 on there are others, which are not equal by their bytes.
    case string: StringType => string == StringType
    case other => ColumnCell.kindOf(other).isDefined
  }

  /**
   * The remainder of the hash that Spark's `Murmur3Hash` gives of the keys.
   *
   * @param isZero whether there is a long besides, which is 0 where no key is null
   * @param ofRows how the others are routed; made when there are any
   */
  private final class ByHash(
      keys: Array[Int],
      types: Array[DataType],
      numPartitions: Int,
      isZero: Boolean,
      ofRows: => ColumnRoutes)
      extends ColumnRoutes {

    private[this] lazy val nullRoutes = ofRows

    override def find(
        batch: ColumnarBatch,
        from: Int,
        rows: Int,
        partitions: Array[Int],
        at: Int): Unit = {
      java.util.Arrays.fill(partitions, at, at + rows, Seed)
      var k = 0
      while (k < keys.length) {
        hash(batch.column(keys(k)), types(k), from, rows, partitions, at)
        k += 1
      }
      var i = at
      while (i < at + rows) {
        val hash = if (isZero) hashLong(0L, partitions(i)) else partitions(i)
        partitions(i) = Math.floorMod(hash, numPartitions)
        i += 1
      }
      if (isZero) findNulls(batch, from, rows, partitions, at)
    }

    private def findNulls(
        batch: ColumnarBatch,
        from: Int,
        rows: Int,
        partitions: Array[Int],
        at: Int): Unit = {
      val columns = keys.map(batch.column).filter(_.hasNull)
      if (columns.nonEmpty) {
        var i = 0
        while (i < rows) {
          if (columns.exists(_.isNullAt(from + i))) {
            nullRoutes.find(batch, from + i, 1, partitions, at + i)
          }
          i += 1
        }
      }
    }
  }

  // Of Spark's HashPartitioning.
  private val Seed = 42

  /** Goes on with the hashes so far; a null leaves them. A loop for each kind, so that each is tight. */
  private def hash(
      column: ColumnVector,
      dataType: DataType,
      from: Int,
      rows: Int,
      hashes: Array[Int],
      at: Int): Unit = {
    val mayBeNull = column.hasNull
    var i = 0
    dataType match {
      case LongType | TimestampType | TimestampNTZType | _: DayTimeIntervalType =>
        while (i < rows) {
          if (!mayBeNull || !column.isNullAt(from + i)) {
            hashes(at + i) = hashLong(column.getLong(from + i), hashes(at + i))
          }
          i += 1
        }
      case IntegerType | DateType | _: YearMonthIntervalType =>
        while (i < rows) {
          if (!mayBeNull || !column.isNullAt(from + i)) {
            hashes(at + i) = hashInt(column.getInt(from + i), hashes(at + i))
          }
          i += 1
        }
      case _: StringType =>
        while (i < rows) {
          if (!mayBeNull || !column.isNullAt(from + i)) {
            val text = column.getUTF8String(from + i)
            hashes(at + i) =
              hashUnsafeBytes(text.getBaseObject, text.getBaseOffset, text.numBytes, hashes(at + i))
          }
          i += 1
        }
      case _ =>
        while (i < rows) {
          if (!mayBeNull || !column.isNullAt(from + i)) {
            hashes(at + i) = hashOther(column, dataType, from + i, hashes(at + i))
          }
          i += 1
        }
    }
  }

  private def hashOther(column: ColumnVector, dataType: DataType, row: Int, seed: Int): Int =
    dataType match {
      case BooleanType => hashInt(if (column.getBoolean(row)) 1 else 0, seed)
      case ByteType => hashInt(column.getByte(row), seed)
      case ShortType => hashInt(column.getShort(row), seed)
      case FloatType =>
        val value = column.getFloat(row)
        // Both zeros are equal.
        hashInt(if (value == 0.0f) 0 else java.lang.Float.floatToIntBits(value), seed)
      case DoubleType =>
        val value = column.getDouble(row)
        hashLong(if (value == 0.0) 0L else java.lang.Double.doubleToLongBits(value), seed)
      case BinaryType =>
        val bytes = column.getBinary(row)
        hashUnsafeBytes(bytes, Platform.BYTE_ARRAY_OFFSET.toLong, bytes.length, seed)
      case decimal: DecimalType =>
        hashLong(column.getDecimal(row, decimal.precision, decimal.scale).toUnscaledLong, seed)
    }
}
