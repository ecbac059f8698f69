package io.github.skewext.rows

import java.util.Arrays

import io.github.skewext.facts.{ComparedByBytes, EvaluatedInTurn}
import io.github.skewext.shuffle.{BlockColumn, ColumnBlockRows}

import org.apache.spark.sql.catalyst.expressions.{XXH64, _}
import org.apache.spark.unsafe.array.ByteArrayMethods

/**
 * Hashes and compares the join keys of rows. Equal keys have equal hashes. Unequal keys may have
 * equal hashes, too, so grouping by hash also compares the keys. Not thread-safe.
 */
abstract class JoinKeys extends Serializable {

  /** The same keys for one iterator. Two threads of a task may each read an iterator of one RDD. */
  def own: JoinKeys = this

  /** Whether a key column is null. Such a key equals no key, not even itself. */
  def hasNull(input: Int, row: UnsafeRow): Boolean

  /** The hash of the row's key, which must not contain a null. */
  def hash(input: Int, row: UnsafeRow): Long

  /**
   * Computes the hashes of all rows of a block column by column. Returns false if a key may contain
   * a null, or if the keys are not columns of the block.
   */
  def hash(input: Int, rows: ColumnBlockRows, hashes: Array[Long]): Boolean

  /** Whether two rows have equal keys. Neither key contains a null. */
  def equal(inputA: Int, a: UnsafeRow, inputB: Int, b: UnsafeRow): Boolean

  /**
   * The same for blocks whose keys may contain nulls. The hash of such a key has no meaning. Returns
   * false if the keys are not columns of the block.
   */
  def hashAll(input: Int, rows: ColumnBlockRows, hashes: Array[Long]): Boolean

  /** Whether keys of a block may contain a null. Valid for blocks whose hashes could be computed. */
  def mayHaveNull(input: Int, rows: ColumnBlockRows): Boolean

  /** Whether the key of the row at `i` of a block contains a null. */
  def hasNull(input: Int, rows: ColumnBlockRows, i: Int): Boolean

  /**
   * Whether a row of one input and the row at `i` of a block of another, or of the same input, have
   * equal keys. Valid for blocks whose hashes could be computed.
   */
  def equal(inputA: Int, a: UnsafeRow, inputB: Int, b: ColumnBlockRows, i: Int): Boolean
}

object JoinKeys {

  /**
   * Returns what hashes and compares these keys in a task. Keys whose types compare by their bytes
   * need no projection.
   *
   * @param keys the key expressions of each input, bound to its rows
   * @param hashBits number of bits of the hash that are used: 64, fewer only in tests
   * @param nullsEqual whether nulls are equal, as in a GROUP BY. Then `hasNull` of a row is false.
   */
  def apply(keys: Seq[Seq[Expression]], hashBits: Int, nullsEqual: Boolean = false): JoinKeys = {
    if (keys.forall(_.forall(ComparedByBytes(_)))) {
      new ColumnKeys(
        keys.map(_.collect { case BoundReference(ordinal, _, _) => ordinal }.toArray).toArray,
        keys.head.map(e => UnsafeRow.isFixedLength(e.dataType)).toArray,
        hashBits,
        nullsEqual)
    } else {
      new ComputedKeys(keys, hashBits, nullsEqual)
    }
  }

  private[skewext] val Seed = 42L

  private[skewext] def truncate(hash: Long, bits: Int): Long =
    if (bits == 64) hash else if (bits == 0) 0L else hash << (64 - bits)
}

/**
 * Keys that are columns of types with bytewise equality. They are read in the row, without a
 * projection.
 */
private final class ColumnKeys(
    ordinals: Array[Array[Int]],
    fixed: Array[Boolean],
    hashBits: Int,
    nullsEqual: Boolean)
    extends JoinKeys {

  private[this] val numKeys = fixed.length

  override def hasNull(input: Int, row: UnsafeRow): Boolean = !nullsEqual && {
    val columns = ordinals(input)
    var k = 0
    while (k < numKeys) {
      if (row.isNullAt(columns(k))) return true
      k += 1
    }
    false
  }

  override def hash(input: Int, row: UnsafeRow): Long = {
    val columns = ordinals(input)
    val base = row.getBaseObject
    val offset = row.getBaseOffset
    var hash = JoinKeys.Seed
    var k = 0
    while (k < numKeys) {
      val word = row.getLong(columns(k))
      hash = if (nullsEqual && row.isNullAt(columns(k))) {
        ~hash
      } else if (fixed(k)) {
        XXH64.hashLong(word, hash)
      } else {
        XXH64.hashUnsafeBytes(base, offset + (word >>> 32), word.toInt, hash)
      }
      k += 1
    }
    JoinKeys.truncate(hash, hashBits)
  }

  override def hash(input: Int, rows: ColumnBlockRows, hashes: Array[Long]): Boolean = {
    if (mayHaveNull(input, rows)) false else hashAll(input, rows, hashes)
  }

  override def mayHaveNull(input: Int, rows: ColumnBlockRows): Boolean =
    ordinals(input).exists(rows.column(_).hasNulls)

  override def hasNull(input: Int, rows: ColumnBlockRows, i: Int): Boolean = {
    val columns = ordinals(input)
    var k = 0
    while (k < numKeys) {
      val column = rows.column(columns(k))
      if (column.hasNulls && column.nulls(i) != 0) return true
      k += 1
    }
    false
  }

  override def hashAll(input: Int, rows: ColumnBlockRows, hashes: Array[Long]): Boolean = {
    val columns = ordinals(input)
    Arrays.fill(hashes, 0, rows.numRows, JoinKeys.Seed)
    columns.foreach(k => hash(rows.column(k), rows.numRows, hashes))
    if (hashBits < 64) {
      var i = 0
      while (i < rows.numRows) {
        hashes(i) = JoinKeys.truncate(hashes(i), hashBits)
        i += 1
      }
    }
    true
  }

  private def hash(column: BlockColumn, count: Int, hashes: Array[Long]): Unit = {
    val words = column.words
    var i = 0
    if (column.isBytes) {
      val (bytes, starts) = (column.bytes, column.starts)
      while (i < count) {
        hashes(i) = XXH64.hashUnsafeBytes(bytes, starts(i), words(i).toInt, hashes(i))
        i += 1
      }
    } else {
      while (i < count) {
        hashes(i) = XXH64.hashLong(words(i), hashes(i))
        i += 1
      }
    }
  }

  override def equal(inputA: Int, a: UnsafeRow, inputB: Int, b: UnsafeRow): Boolean = {
    val columnsA = ordinals(inputA)
    val columnsB = ordinals(inputB)
    var k = 0
    while (k < numKeys) {
      // The word of a null is 0.
      if (nullsEqual && a.isNullAt(columnsA(k)) != b.isNullAt(columnsB(k))) return false
      val wordA = a.getLong(columnsA(k))
      val wordB = b.getLong(columnsB(k))
      if (fixed(k)) {
        if (wordA != wordB) return false
      } else {
        // The word of a variable-length column holds its offset and its length in bytes.
        val length = wordA.toInt
        if (length != wordB.toInt || !ByteArrayMethods.arrayEquals(
            a.getBaseObject,
            a.getBaseOffset + (wordA >>> 32),
            b.getBaseObject,
            b.getBaseOffset + (wordB >>> 32),
            length)) {
          return false
        }
      }
      k += 1
    }
    true
  }

  override def equal(
      inputA: Int,
      a: UnsafeRow,
      inputB: Int,
      b: ColumnBlockRows,
      i: Int): Boolean = {
    val columnsA = ordinals(inputA)
    val columnsB = ordinals(inputB)
    var k = 0
    while (k < numKeys) {
      val column = b.column(columnsB(k))
      val word = a.getLong(columnsA(k))
      if (fixed(k)) {
        if (word != column.words(i)) return false
      } else if (word.toInt != column.words(i).toInt || !ByteArrayMethods.arrayEquals(
          a.getBaseObject,
          a.getBaseOffset + (word >>> 32),
          column.bytes,
          column.starts(i),
          word.toInt)) {
        return false
      }
      k += 1
    }
    true
  }
}

/**
 * Keys that are expressions, or whose type has equal values with different bytes (-0.0 and 0.0, the
 * NaNs). They are projected in normalized form and compared by their bytes.
 */
private final class ComputedKeys(keys: Seq[Seq[Expression]], hashBits: Int, nullsEqual: Boolean)
    extends JoinKeys {

  @transient private[this] lazy val projections = keys.map(EvaluatedInTurn.projection).toArray
  // A projection reuses its result row, so comparing two rows of one input needs two projections.
  @transient private[this] lazy val others = keys.map(EvaluatedInTurn.projection).toArray

  override def own: JoinKeys = new ComputedKeys(keys, hashBits, nullsEqual)

  override def hasNull(input: Int, row: UnsafeRow): Boolean =
    !nullsEqual && projections(input)(row).anyNull()

  override def hash(input: Int, row: UnsafeRow): Long = {
    val key = projections(input)(row)
    val hash =
      XXH64.hashUnsafeBytes(key.getBaseObject, key.getBaseOffset, key.getSizeInBytes, JoinKeys.Seed)
    JoinKeys.truncate(hash, hashBits)
  }

  override def hash(input: Int, rows: ColumnBlockRows, hashes: Array[Long]): Boolean = false

  override def hashAll(input: Int, rows: ColumnBlockRows, hashes: Array[Long]): Boolean = false

  override def mayHaveNull(input: Int, rows: ColumnBlockRows): Boolean = notInBlock

  override def hasNull(input: Int, rows: ColumnBlockRows, i: Int): Boolean = notInBlock

  override def equal(inputA: Int, a: UnsafeRow, inputB: Int, b: ColumnBlockRows, i: Int): Boolean =
    notInBlock

  private def notInBlock: Nothing =
    throw new UnsupportedOperationException("The keys are not columns of a block.")

  override def equal(inputA: Int, a: UnsafeRow, inputB: Int, b: UnsafeRow): Boolean =
    projections(inputA)(a) == others(inputB)(b)
}

/**
 * The keys of each input in a form in which equal keys have equal bytes.
 *
 * @param keys the key expressions of each input, bound to its rows
 * @param hashBits number of bits of a hash, as in [[JoinKeys]]
 */
private[skewext] case class NormalizedKeys(keys: Seq[Seq[Expression]], hashBits: Int) {

  def inRows: JoinKeys = JoinKeys(keys, hashBits)

  def projections: Array[UnsafeProjection] = keys.map(EvaluatedInTurn.projection).toArray

  def hash(base: AnyRef, offset: Long, length: Int): Long =
    JoinKeys.truncate(XXH64.hashUnsafeBytes(base, offset, length, JoinKeys.Seed), hashBits)
}
