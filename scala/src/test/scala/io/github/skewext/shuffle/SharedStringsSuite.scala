package io.github.skewext.shuffle

import org.apache.spark.SparkFunSuite
import org.apache.spark.sql.execution.vectorized.{Dictionary, OnHeapColumnVector}
import org.apache.spark.sql.types.StringType

/** Strings of dictionaries, of which an [[AppendedColumn]] has each once. */
class SharedStringsSuite extends SparkFunSuite {

  private def vector(strings: Seq[String], dictionary: DictionaryVectors.Strings) = {
    val made = new OnHeapColumnVector(strings.size, StringType)
    DictionaryVectors.fill(made, strings.map(s => if (s == null) null else s.getBytes), dictionary)
    made
  }

  private def dictionary(strings: String*) =
    new DictionaryVectors.Strings(strings.map(_.getBytes.toSeq).toIndexedSeq)

  private def plain(strings: String*) = {
    val made = new OnHeapColumnVector(strings.size, StringType)
    strings.zipWithIndex.foreach { case (s, i) => made.putByteArray(i, s.getBytes) }
    made
  }

  private def stringsIn(column: AppendedColumn): Seq[String] = {
    var next = 0
    (0 until column.count).map { i =>
      val start = if (column.sharesBytes) column.starts(i) else next
      next += column.words(i).toInt
      if (column.hasNulls && column.nulls(i) == 1) null
      else new String(column.bytes.array, start, column.words(i).toInt)
    }
  }

  test("a string is decoded once for all batches of a dictionary") {
    val column = new AppendedColumn(StringType)
    val colors = dictionary("red", "green", "", "blue")
    column.append(vector(Seq("green", null, "red", "green"), colors), 0, 4)
    column.append(vector(Seq("red", "", "red", "green", "green"), colors), 1, 4)
    assert(stringsIn(column) === Seq("green", null, "red", "green", "", "red", "green", "green"))
    assert(colors.decoded === 3)
    assert(column.bytes.size === 8 && column.numBytes === 26)
  }

  test("other strings with the same numbers, in the next file") {
    val column = new AppendedColumn(StringType)
    column.append(vector(Seq("a", "bb"), dictionary("a", "bb")), 0, 2)
    column.append(vector(Seq("x", "yy", "zzz"), dictionary("x", "yy", "zzz")), 0, 3)
    column.append(vector(Seq("a", "bb"), dictionary("a", "bb")), 0, 2)
    assert(stringsIn(column) === Seq("a", "bb", "x", "yy", "zzz", "a", "bb"))
  }

  test("strings without a dictionary before, between and after") {
    val column = new AppendedColumn(StringType)
    val letters = dictionary("a", "b")
    column.append(plain("one", "two"), 0, 2)
    column.append(vector(Seq("b", "a"), letters), 0, 2)
    column.append(plain("three"), 0, 1)
    column.append(vector(Seq("a", "b"), letters), 0, 2)
    assert(stringsIn(column) === Seq("one", "two", "b", "a", "three", "a", "b"))
    assert(column.bytes.size === "onetwobathree".length)
  }

  test("after a flush nothing of a dictionary is known") {
    val column = new AppendedColumn(StringType)
    val letters = dictionary("a", "b")
    column.append(vector(Seq("b", "a"), letters), 0, 2)
    column.clear()
    assert(!column.sharesBytes && column.numBytes === 0)
    column.append(vector(Seq("a", "a"), letters), 0, 2)
    assert(stringsIn(column) === Seq("a", "a"))
    column.clear()
    column.append(plain("plain"), 0, 1)
    assert(stringsIn(column) === Seq("plain") && !column.sharesBytes)
  }

  private def numbered(ids: Int*)(decode: Int => Array[Byte]) = {
    val made = new OnHeapColumnVector(ids.size, StringType)
    val numbers = made.reserveDictionaryIds(ids.size)
    ids.zipWithIndex.foreach { case (id, i) => numbers.putInt(i, id) }
    made.setDictionary(new Dictionary {
      override def decodeToBinary(id: Int): Array[Byte] = decode(id)
      override def decodeToInt(id: Int): Int = id
      override def decodeToLong(id: Int): Long = id
      override def decodeToFloat(id: Int): Float = id
      override def decodeToDouble(id: Int): Double = id
    })
    made
  }

  test("dictionaries of other sources than Parquet") {
    val column = new AppendedColumn(StringType)
    column.append(numbered(1, 0)(id => s"id $id".getBytes), 0, 2)
    assert(stringsIn(column) === Seq("id 1", "id 0"))
  }

  test("more bytes than one array can have") {
    val long = new Array[Byte](1 << 20)
    val column = new AppendedColumn(StringType)
    val vector = numbered(Seq.fill(1024)(0): _*)(_ => long)
    column.append(vector, 0, 1024)
    val error = intercept[OutOfMemoryError](column.append(vector, 0, 1024))
    assert(error.getMessage === s"${1L << 31} bytes in one array")
  }
}
