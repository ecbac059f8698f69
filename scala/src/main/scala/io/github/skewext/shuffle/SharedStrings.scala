package io.github.skewext.shuffle

import java.lang.reflect.Field
import java.util.Arrays

import scala.util.Try

import org.apache.spark.sql.execution.datasources.parquet.ParquetDictionary
import org.apache.spark.sql.execution.vectorized.{Dictionary, WritableColumnVector}
import org.apache.spark.unsafe.Platform

/**
 * Where the strings of a dictionary are in the bytes of an [[AppendedColumn]]. A vector with a
 * dictionary decodes a string for each row that has it. This class decodes it once a dictionary,
 * of which Parquet has one for each column of a row group.
 *
 * @param bytes gets each string when a row has it for the first time
 */
private final class SharedStrings(bytes: ByteBuilder) {

  /** The start of the string with each number in `bytes`, or -1 if no row has had it. */
  private[this] var starts = Array.emptyIntArray
  private[this] var lengths = Array.emptyIntArray
  private[this] var dictionary: AnyRef = _

  /** Prepares to find strings of a dictionary. Those of the one before remain known if it is the same. */
  def begin(of: AnyRef): Unit = if (dictionary ne of) {
    forget()
    dictionary = of
  }

  /** Makes the string of a row known, whose number is `id`. Returns its start. */
  def find(id: Int, vector: WritableColumnVector, row: Int): Int = {
    if (id >= starts.length) {
      val known = starts.length
      starts = Arrays.copyOf(starts, math.max(SharedStrings.Initial, 2 * (id + 1)))
      lengths = Arrays.copyOf(lengths, starts.length)
      Arrays.fill(starts, known, starts.length, -1)
    }
    if (starts(id) < 0) {
      val string = vector.getBinary(row)
      val start = bytes.size
      bytes.put(string, Platform.BYTE_ARRAY_OFFSET.toLong, string.length)
      starts(id) = start
      lengths(id) = string.length
    }
    starts(id)
  }

  /** The length of a known string. */
  def lengthOf(id: Int): Int = lengths(id)

  /** Must be called when the bytes are removed. */
  def forget(): Unit = {
    Arrays.fill(starts, -1)
    dictionary = null
  }
}

private object SharedStrings {

  // Numbers of strings that a first dictionary may have.
  private val Initial = 1024

  // Spark makes a new object for each batch, around the dictionary of a file's row group. Neither
  // has an accessor.
  private val ofVector = field(classOf[WritableColumnVector])
  private val ofParquet = field(classOf[ParquetDictionary])

  private def field(of: Class[_]): Option[Field] = Try {
    val found = of.getDeclaredField("dictionary")
    found.setAccessible(true)
    found
  }.toOption

  /** The dictionary of a vector, the same object for all batches that have it; null if unknown. */
  def dictionaryOf(vector: WritableColumnVector): AnyRef =
    ofVector.map(_.get(vector)).orNull match {
      case parquet: ParquetDictionary => ofParquet.map(_.get(parquet)).orNull
      case other: Dictionary => other
      case _ => null
    }
}
