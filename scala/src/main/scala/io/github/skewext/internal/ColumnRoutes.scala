package io.github.skewext.internal

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression, Literal, UnsafeProjection}
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning
import org.apache.spark.sql.types._
import org.apache.spark.sql.vectorized.ColumnarBatch
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.hash.Murmur3_x86_32.{hashInt, hashLong, hashUnsafeBytes}

/** Which partitions the rows of a batch go to. */
trait ColumnRoutes {

  /**
   * Puts those of `rows` rows from `from` on into `partitions`, from `at` on.
   *
   * @param columns the batch's, to which these rows were appended last
   */
  def find(
      batch: ColumnarBatch,
      from: Int,
      rows: Int,
      columns: Array[AppendedColumn],
      partitions: Array[Int],
      at: Int): Unit
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
      new ByHash(places.flatten.toArray, partitioning.numPartitions, isZero, ofRows)
    } else {
      ofRows
    }
  }

  def byRow(partitionOf: InternalRow => Int): ColumnRoutes =
    (batch, from, rows, _, partitions, at) => {
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
      numPartitions: Int,
      isZero: Boolean,
      ofRows: => ColumnRoutes)
      extends ColumnRoutes {

    private[this] lazy val nullRoutes = ofRows

    override def find(
        batch: ColumnarBatch,
        from: Int,
        rows: Int,
        columns: Array[AppendedColumn],
        partitions: Array[Int],
        at: Int): Unit = {
      java.util.Arrays.fill(partitions, at, at + rows, Seed)
      var k = 0
      while (k < keys.length) {
        hash(columns(keys(k)), rows, partitions, at)
        k += 1
      }
      var i = at
      if (isZero) {
        while (i < at + rows) {
          partitions(i) = hashLong(0L, partitions(i))
          i += 1
        }
      }
      i = at
      // A division takes as long as the hash of a number.
      if (Integer.bitCount(numPartitions) == 1) {
        while (i < at + rows) {
          partitions(i) &= numPartitions - 1
          i += 1
        }
      } else {
        while (i < at + rows) {
          partitions(i) = Math.floorMod(partitions(i), numPartitions)
          i += 1
        }
      }
      if (isZero) findNulls(batch, from, rows, columns, partitions, at)
    }

    private def findNulls(
        batch: ColumnarBatch,
        from: Int,
        rows: Int,
        columns: Array[AppendedColumn],
        partitions: Array[Int],
        at: Int): Unit = {
      val mayBeNull = keys.map(batch.column).filter(_.hasNull)
      if (mayBeNull.nonEmpty) {
        var i = 0
        while (i < rows) {
          if (mayBeNull.exists(_.isNullAt(from + i))) {
            nullRoutes.find(batch, from + i, 1, columns, partitions, at + i)
          }
          i += 1
        }
      }
    }
  }

  // Of Spark's HashPartitioning.
  private val Seed = 42

  /**
   * Goes on with the hashes so far; a null leaves them. A loop for each kind, so that each is tight; over
   * what was appended, as some readers make a string anew each time they are asked for it.
   */
  private def hash(column: AppendedColumn, rows: Int, hashes: Array[Int], at: Int): Unit = {
    val first = column.count - rows
    val words = column.words
    val nulls = if (column.hasNulls) column.nulls else null
    var i = 0
    if (column.isBytes) {
      val bytes = column.bytes.array
      var offset = Platform.BYTE_ARRAY_OFFSET.toLong + column.lastBytes
      while (i < rows) {
        val length = words(first + i).toInt
        if (nulls == null || nulls(first + i) == 0) {
          hashes(at + i) = hashUnsafeBytes(bytes, offset, length, hashes(at + i))
        }
        offset += length
        i += 1
      }
    } else if (ColumnCell.isLong(column.kind)) {
      while (i < rows) {
        if (nulls == null || nulls(first + i) == 0) {
          val word = ColumnCell.comparable(column.kind, words(first + i))
          hashes(at + i) = hashLong(word, hashes(at + i))
        }
        i += 1
      }
    } else {
      while (i < rows) {
        if (nulls == null || nulls(first + i) == 0) {
          val word = ColumnCell.comparable(column.kind, words(first + i))
          hashes(at + i) = hashInt(word.toInt, hashes(at + i))
        }
        i += 1
      }
    }
  }
}
