package io.github.skewext.join.range

import java.math.BigInteger

import scala.util.control.NonFatal

import io.github.skewext.facts.EvaluatedInTurn
import io.github.skewext.join.range.RangeKind._

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.types.LongType

/**
 * Computes the interval of a row as two keys of 64 bits. Keys have the order of the values, but
 * different values may have equal keys.
 *
 * If the evaluation of an end fails, such as by an overflow in ANSI mode, the interval contains all
 * values. So the condition is evaluated for the row, and the query fails where Spark's does.
 *
 * @param ends bound to the rows.
 */
private[skewext] final class RangeKeys(ends: RangeEnds) {
  import RangeKeys._

  private[this] val isPoint = ends.isPoint
  private[this] val values = EvaluatedInTurn.projection(
    if (isPoint) Seq(ends.lo.value) else Seq(ends.lo.value, ends.hi.value))
  private[this] val hiAt = if (isPoint) 0 else 1

  // The prefixes of the other side's ends may differ.
  private[this] val hasOneKey = isPoint && !ends.hasBytes
  private[this] val keyHash =
    if (ends.keys.isEmpty) null else EvaluatedInTurn.projection(Seq(hashOf(ends.keys)))
  private[this] var isUnknown = false

  /** The hash of the equal keys. */
  var hash = 0L

  /** A common prefix of the strings of the other ends, whose next bytes become keys. */
  var loPrefix: Array[Byte] = NoBytes
  var hiPrefix: Array[Byte] = NoBytes

  var lo = 0L
  var hi = 0L

  /** Sets the interval and the hash of a row. Returns false if a null lets the row match nothing. */
  def read(row: InternalRow): Boolean = readKeys(row) && readEnds(row)

  private def readKeys(row: InternalRow): Boolean = (keyHash eq null) || {
    val found = keyHash(row)
    val hasKeys = !found.isNullAt(0)
    if (hasKeys) hash = found.getLong(0)
    hasKeys
  }

  private def readEnds(row: InternalRow): Boolean = {
    val found = evaluated(row)
    val hasNulls = (found ne null) && found.anyNull()
    val hasEnds = !hasNulls || (hasKey(found, 0, ends.lo) && hasKey(found, hiAt, ends.hi))
    if (hasEnds) {
      isUnknown = found eq null
      if (!isUnknown) {
        lo = key(found, 0, ends.lo, loPrefix)
        hi = if (hasOneKey && !hasNulls) lo else key(found, hiAt, ends.hi, hiPrefix)
      }
      if (isUnknown) {
        lo = Long.MinValue
        hi = Long.MaxValue
      }
    }
    hasEnds
  }

  /** Shortens the prefixes to those that a row has, too. */
  def shortenPrefixes(row: InternalRow, isFirst: Boolean): Unit = {
    val found = evaluated(row)
    if (found ne null) {
      if (ends.lo.kind == BytesKind) loPrefix = common(loPrefix, found.getBinary(0), isFirst)
      if (ends.hi.kind == BytesKind) hiPrefix = common(hiPrefix, found.getBinary(hiAt), isFirst)
    }
  }

  private def evaluated(row: InternalRow): UnsafeRow =
    try values(row)
    catch { case NonFatal(_) => null }

  private def hasKey(row: UnsafeRow, at: Int, end: RangeBound): Boolean =
    !row.isNullAt(at) || end.ofNull.isDefined

  private def key(row: UnsafeRow, at: Int, end: RangeBound, prefix: Array[Byte]): Long =
    if (row.isNullAt(at)) end.ofNull.get else keyOfValue(row, at, end, prefix)

  private def keyOfValue(row: UnsafeRow, at: Int, end: RangeBound, prefix: Array[Byte]): Long =
    end.kind match {
      case IntKind => moved(row.getInt(at), end)
      case LongKind => moved(row.getLong(at), end)
      case DoubleKind => moved(row.getDouble(at), end)
      case DecimalKind(precision, scale) => row.getDecimal(at, precision, scale).toUnscaledLong
      case wide: WideDecimalKind => ofDecimal(row, at, wide, end)
      case BytesKind => ofBytes(row.getBinary(at), prefix)
    }

  private def moved(value: Long, end: RangeBound): Long = end.move match {
    case Move.Whole(by, limit) =>
      if (value >= limit || value <= -limit) isUnknown = true
      val sum = value + by
      // The sum has another sign than both of its parts.
      if (((value ^ sum) & (by ^ sum)) >= 0) sum
      else if (by > 0) Long.MaxValue
      else Long.MinValue
    case _ => value
  }

  private def moved(value: Double, end: RangeBound): Long = end.move match {
    case Move.Floating(by, direction) =>
      // Infinity minus infinity is NaN, which is larger than all numbers.
      if (value.isNaN || value.isInfinite) isUnknown = true
      val sum = value + by
      ofDouble(
        if (direction > 0) Math.nextUp(sum) else if (direction < 0) Math.nextDown(sum) else sum)
    case _ => ofDouble(value)
  }

  private def ofDecimal(row: UnsafeRow, at: Int, kind: WideDecimalKind, end: RangeBound): Long = {
    val value = row.getDecimal(at, kind.precision, kind.ownScale).toJavaBigDecimal
    val sum = end.move match {
      case Move.Exact(by) => value.add(by)
      case _ => value
    }
    ofInteger(sum.setScale(kind.scale).unscaledValue)
  }
}

private[range] object RangeKeys {

  private val NoBytes = Array.emptyByteArray

  /** Null if a key is null. */
  private def hashOf(keys: Seq[Expression]): Expression =
    If(keys.map(IsNull(_)).reduce[Expression](Or), Literal(null, LongType), new XxHash64(keys))

  /** In Spark's order, -0.0 equals 0.0, and all NaNs are equal and larger than other numbers. */
  def ofDouble(value: Double): Long = {
    val bits = java.lang.Double.doubleToLongBits(if (value == 0.0) 0.0 else value)
    bits ^ ((bits >> 63) & Long.MaxValue)
  }

  private final val Mantissa = 55

  /** The number of bits, and the bits after the first one. Numbers below 2 to the 55 are exact. */
  def ofInteger(value: BigInteger): Long =
    if (value.signum == 0) {
      0L
    } else {
      val size = value.abs
      val bits = size.bitLength
      val first = size.shiftRight(bits - 1 - Mantissa).longValue & ((1L << Mantissa) - 1)
      val key = (bits.toLong << Mantissa) | first
      if (value.signum < 0) -key else key
    }

  /** The eight bytes after the prefix, in the order of bytes without a sign. */
  def ofBytes(bytes: Array[Byte], prefix: Array[Byte]): Long = {
    var i = 0
    while (i < prefix.length) {
      val own = if (i < bytes.length) bytes(i) & 0xff else -1
      val wanted = prefix(i) & 0xff
      if (own != wanted) return if (own < wanted) Long.MinValue else Long.MaxValue
      i += 1
    }
    var key = 0L
    while (i < prefix.length + 8) {
      key = (key << 8) | (if (i < bytes.length) bytes(i) & 0xff else 0)
      i += 1
    }
    key ^ Long.MinValue
  }

  private def common(prefix: Array[Byte], bytes: Array[Byte], isFirst: Boolean): Array[Byte] =
    if (isFirst) {
      if (bytes eq null) NoBytes else bytes
    } else if (bytes eq null) {
      prefix
    } else {
      var n = 0
      val most = math.min(prefix.length, bytes.length)
      while (n < most && prefix(n) == bytes(n)) n += 1
      if (n == prefix.length) prefix else prefix.take(n)
    }
}
