package io.github.skewext.shuffle

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression, Literal, UnsafeProjection}
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning
import org.apache.spark.sql.types._
import org.apache.spark.sql.vectorized.ColumnarBatch
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.hash.Murmur3_x86_32.{hashInt, hashLong, hashUnsafeBytes}

/** Computes the partition ids of the rows of a batch. */
trait BatchPartitioner {

  /**
   * Computes the partition ids of `rows` rows of the batch, the first at index `from`, and stores
   * them in `partitions` from index `at` on.
   *
   * @param columns the batch's columns, to which these rows were appended last.
   */
  def find(
      batch: ColumnarBatch,
      from: Int,
      rows: Int,
      columns: Array[AppendedColumn],
      partitions: Array[Int],
      at: Int): Unit
}

/** A long that is 0 in rows where no other expression of its partitioning is null. */
trait ZeroWithoutNulls extends Expression

object BatchPartitioner {

  /**
   * The partition ids of Spark's exchange by `partitioning`, computed by column if all keys are
   * columns. Not serializable.
   */
  def of(partitioning: HashPartitioning, input: Seq[Attribute]): BatchPartitioner = {
    def ofRows: BatchPartitioner = {
      // No column of a block is nested, so keys may be interpreted.
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

  def byRow(partitionOf: InternalRow => Int): BatchPartitioner =
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
    // Spark 4 has collated strings, whose equality is not bytewise.
    case string: StringType => string == StringType
    case other => ColumnCell.kindOf(other).isDefined
  }

  /**
   * Computes Spark's `Murmur3Hash` of the keys, modulo the number of partitions.
   *
   * @param isZero whether the partitioning has one more long, which is 0 if no key is null.
   * @param ofRows computes the partitions of rows with a null key if `isZero`; created on first use
   */
  private final class ByHash(
      keys: Array[Int],
      numPartitions: Int,
      isZero: Boolean,
      ofRows: => BatchPartitioner)
      extends BatchPartitioner {

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
      // A division costs as much as the hash of a number.
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

  // The seed of Spark's HashPartitioning.
  private val Seed = 42

  /**
   * Updates the hashes with the values of a column; a null leaves a hash unchanged. Each kind of
   * column has a tight loop. The loops read the appended values, because some readers create a new
   * string on each access.
   */
  private def hash(column: AppendedColumn, rows: Int, hashes: Array[Int], at: Int): Unit = {
    val first = column.count - rows
    val words = column.words
    val nulls = if (column.hasNulls) column.nulls else null
    var i = 0
    if (column.isBytes) {
      val bytes = column.bytes.array
      val starts = if (column.sharesBytes) column.starts else null
      var offset = Platform.BYTE_ARRAY_OFFSET.toLong + column.lastBytes
      while (i < rows) {
        val length = words(first + i).toInt
        if (starts ne null) offset = Platform.BYTE_ARRAY_OFFSET.toLong + starts(first + i)
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
