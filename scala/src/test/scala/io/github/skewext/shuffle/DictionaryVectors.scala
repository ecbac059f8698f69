package io.github.skewext.shuffle

import org.apache.parquet.column.{Dictionary => FileDictionary, Encoding}
import org.apache.parquet.io.api.Binary

import org.apache.spark.sql.execution.datasources.parquet.ParquetDictionary
import org.apache.spark.sql.execution.vectorized.WritableColumnVector

/** Vectors as Spark's Parquet reader fills them with the strings of a dictionary. */
private[shuffle] object DictionaryVectors {

  /** The dictionary of a file's row group. */
  final class Strings(val values: IndexedSeq[Seq[Byte]])
      extends FileDictionary(Encoding.RLE_DICTIONARY) {

    /** Number of strings that were decoded. */
    var decoded = 0

    override def getMaxId: Int = values.size - 1
    override def decodeToBinary(id: Int): Binary = {
      decoded += 1
      Binary.fromConstantByteArray(values(id).toArray)
    }
  }

  def fill(vector: WritableColumnVector, strings: Seq[Array[Byte]]): Unit =
    fill(vector, strings, new Strings(strings.filter(_ != null).map(_.toSeq).distinct.toIndexedSeq))

  def fill(vector: WritableColumnVector, strings: Seq[Array[Byte]], dictionary: Strings): Unit = {
    val ids = vector.reserveDictionaryIds(math.max(1, strings.size))
    strings.zipWithIndex.foreach {
      // The number of a null may be any.
      case (null, i) => vector.putNull(i); ids.putInt(i, -7)
      case (string, i) => ids.putInt(i, dictionary.values.indexOf(string.toSeq))
    }
    // The reader makes another one of these for each batch.
    vector.setDictionary(new ParquetDictionary(dictionary, false))
  }
}
