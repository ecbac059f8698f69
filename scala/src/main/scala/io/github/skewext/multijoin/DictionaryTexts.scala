package io.github.skewext.multijoin

import java.lang.reflect.Field

import scala.util.Try

import org.apache.spark.sql.execution.datasources.parquet.ParquetDictionary
import org.apache.spark.sql.execution.vectorized.WritableColumnVector
import org.apache.spark.sql.vectorized.ColumnVector
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.types.UTF8String

/**
 * The strings of a dictionary that a column of a batch has, in one array of bytes: each is made when
 * it is met first. Rows meet them in no order, so they are kept close together.
 */
private[multijoin] final class DictionaryTexts {
  import DictionaryTexts._

  var bytes: Array[Byte] = new Array[Byte](256)
  private[this] var used = 0

  private[this] var column: ColumnVector = _

  /** The numbers of the strings in the dictionary, or null if there is none that we know. */
  private[this] var ids: WritableColumnVector = _
  private[this] var dictionary: AnyRef = _

  /** Of every number, where in `bytes` the string is, and how long; or `NotKept`. */
  private[this] var places = new Array[Long](0)

  def open(next: ColumnVector): Unit = {
    column = next
    val found = dictionaryOf(next)
    // Every row group of a file has another dictionary.
    if (found ne dictionary) {
      java.util.Arrays.fill(places, NotKept)
      used = 0
    }
    dictionary = found
    ids = next match {
      case vector: WritableColumnVector if found != null => vector.getDictionaryIds
      case _ => null
    }
  }

  /** Where the string of a row is, as offset and length; `NotKept` if only the column knows it. */
  def place(r: Int): Long = if (ids == null) {
    NotKept
  } else {
    val id = ids.getDictId(r)
    if (id < places.length && places(id) != NotKept) places(id)
    else keep(id, column.getUTF8String(r))
  }

  private def keep(id: Int, text: UTF8String): Long = {
    val size = text.numBytes
    val padded = (size + 7) & ~7
    if (id >= MaxKept || used + padded.toLong > MaxBytes) {
      NotKept
    } else {
      if (id >= places.length) {
        val before = places.length
        places = java.util.Arrays.copyOf(places, math.max(256, 2 * id))
        java.util.Arrays.fill(places, before, places.length, NotKept)
      }
      if (used + padded > bytes.length) {
        bytes = java.util.Arrays.copyOf(bytes, 2 * (used + padded))
      }
      java.util.Arrays.fill(bytes, used + size, used + padded, 0.toByte)
      text.writeToMemory(bytes, Platform.BYTE_ARRAY_OFFSET.toLong + used)
      places(id) = (used.toLong << 32) | size
      used += padded
      places(id)
    }
  }
}

private[multijoin] object DictionaryTexts {
  val NotKept: Long = -1L

  // Some more than the page of a dictionary usually has.
  private val MaxKept = 1 << 17
  private val MaxBytes = 1L << 21

  // Spark does not show a column's dictionary, and wraps it anew for every batch. Where it cannot
  // be seen, strings are made for every row.
  private val ofColumn = field(classOf[WritableColumnVector], "dictionary")
  private val wrapped = field(classOf[ParquetDictionary], "dictionary")

  def canBeSeen: Boolean = ofColumn.isDefined && wrapped.isDefined

  private def field(of: Class[_], name: String): Option[Field] = Try {
    val found = of.getDeclaredField(name)
    found.setAccessible(true)
    found
  }.toOption

  private def dictionaryOf(column: ColumnVector): AnyRef = column match {
    case vector: WritableColumnVector if vector.hasDictionary =>
      val dictionary = for {
        outer <- ofColumn
        inner <- wrapped
        parquet <- Option(outer.get(vector)) if parquet.isInstanceOf[ParquetDictionary]
      } yield inner.get(parquet)
      dictionary.orNull
    case _ => null
  }
}
