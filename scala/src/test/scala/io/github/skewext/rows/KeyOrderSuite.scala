package io.github.skewext.rows

import scala.util.Random

import org.apache.spark.sql.RandomDataGenerator
import org.apache.spark.sql.catalyst.expressions.codegen.GenerateOrdering
import org.apache.spark.sql.catalyst.expressions.{Ascending, BoundReference, Expression, Literal, SortOrder, StringRPad, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.catalyst.{CatalystTypeConverters, InternalRow}
import org.apache.spark.sql.test.SharedSparkSession
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/** Keys are in the order in which Spark sorts them, by their prefixes and in full. */
class KeyOrderSuite extends SharedSparkSession {

  private val simple: Seq[DataType] = Seq(
    BooleanType,
    ByteType,
    ShortType,
    IntegerType,
    LongType,
    FloatType,
    DoubleType,
    StringType,
    BinaryType,
    DateType,
    TimestampType,
    TimestampNTZType,
    YearMonthIntervalType(),
    DayTimeIntervalType(),
    DecimalType(9, 2),
    DecimalType(18, 18))

  private val others: Seq[DataType] = Seq(
    DecimalType(19, 0),
    DecimalType(38, 10),
    ArrayType(DoubleType),
    StructType(Seq(StructField("a", StringType), StructField("b", DoubleType))))

  private val random = new Random(7)

  /** Strings and bytes that differ late, in their length only, in bytes above 127, and in zeros. */
  private val texts: Seq[Array[Byte]] = {
    val start = "eight by".getBytes("UTF-8")
    val tails = Seq("", "\u0000", "\u0000\u0000", "a", "b", "é", "tes and more", "tes and less")
    tails.map(start ++ _.getBytes("UTF-8")) ++ tails.map(_.getBytes("UTF-8")) ++
      Seq(Array[Byte](-1), Array[Byte](-1, -1), Array[Byte](127), start.take(7))
  }

  private def values(dataType: DataType): Seq[Any] = {
    val toCatalyst = CatalystTypeConverters.createToCatalystConverter(dataType)
    val make = RandomDataGenerator.forType(dataType, nullable = true, random).get
    val known: Seq[Any] = dataType match {
      case StringType => texts.map(UTF8String.fromBytes)
      case BinaryType => texts
      case DoubleType => Seq(-0.0, 0.0, Double.NaN, Double.MinValue, Double.NegativeInfinity)
      case FloatType => Seq(-0.0f, 0.0f, Float.NaN, Float.MinValue, Float.NegativeInfinity)
      case LongType => Seq(Long.MinValue, Long.MinValue + 1, -1L, Long.MaxValue)
      case _ => Nil
    }
    null +: (known ++ Seq.fill(30)(toCatalyst(make())))
  }

  /** Checks all pairs of keys, one in a row of an input and one in a row of another. */
  private def check(types: Seq[DataType], keys: Seq[Seq[Any]], inPlace: Boolean = true): Unit = {
    val n = types.size
    // The second input has its keys behind other columns, and the other way round.
    val places = Seq(0 until n, (2 until n + 2).reverse)
    val rows: Seq[Seq[UnsafeRow]] = Seq(
      keys.map(unsafe(types, _)),
      keys.map(key =>
        unsafe(Seq(StringType, LongType) ++ types.reverse, Seq[Any](null, 7L) ++ key.reverse)))
    val bound: Seq[Seq[Expression]] = places.map(_.zip(types).map { case (place, dataType) =>
      BoundReference(place, dataType, nullable = true)
    })
    val order = KeyOrder(bound)
    assert(order.isInstanceOf[ColumnOrder] === inPlace)
    val expected = GenerateOrdering.generate(types.zipWithIndex.map { case (dataType, j) =>
      SortOrder(BoundReference(j, dataType, nullable = true), Ascending)
    })
    for {
      (a, i) <- keys.zipWithIndex
      (b, j) <- keys.zipWithIndex
      (inputA, inputB) <- Seq((0, 1), (1, 1))
    } withClue(s"${a.mkString(", ")} and ${b.mkString(", ")}: ") {
      val (rowA, rowB) = (rows(inputA)(i), rows(inputB)(j))
      val sign = math.signum(expected.compare(rows.head(i), rows.head(j)))
      assert(math.signum(order.compare(inputA, rowA, inputB, rowB)) === sign)
      val (prefixA, prefixB) = (order.prefix(inputA, rowA), order.prefix(inputB, rowB))
      if (prefixA != prefixB) {
        assert(Integer.signum(prefixA.compare(prefixB)) === sign)
      } else if (order.prefixIsKey && prefixA != KeyOrder.NullPrefix) {
        assert(sign === 0)
        assert(a.head != null && b.head != null)
      }
      if (a.head == null) assert(prefixA === KeyOrder.NullPrefix)
      if (a.contains(null)) assert(order.mayHaveNull(prefixA))
    }
  }

  private def unsafe(types: Seq[DataType], values: Seq[Any]): UnsafeRow =
    UnsafeProjection.create(types.toArray)(InternalRow(values: _*)).copy()

  for (dataType <- simple) {
    test(s"one column: ${dataType.catalogString}") {
      check(Seq(dataType), values(dataType).map(Seq(_)))
    }
  }

  for (dataType <- others) {
    test(s"one column that has no prefix: ${dataType.catalogString}") {
      check(Seq(dataType), values(dataType).map(Seq(_)), inPlace = false)
    }
  }

  test("several columns") {
    for (_ <- 0 until 15) {
      val types = Seq.fill(2 + random.nextInt(2))(simple(random.nextInt(simple.size)))
      // Few values a column, so that the first ones are often equal.
      val few = types.map(t => random.shuffle(values(t)).take(4))
      val keys = Seq.fill(30)(few.map(v => v(random.nextInt(v.size))))
      check(types, keys)
      check(types :+ others.last, keys.map(_ :+ null), inPlace = false)
    }
  }

  test("keys that are expressions") {
    val text = BoundReference(0, StringType, nullable = true)
    val keys: Seq[Expression] = Seq(StringRPad(text, Literal(12)))
    val order = KeyOrder(Seq(keys, keys))
    val rows = Seq("a", "a  ", "b", "aaaaaaaaaaaa", "aaaaaaaaaaab").map(s =>
      unsafe(Seq(StringType), Seq(UTF8String.fromString(s))))
    assert(order.compare(0, rows(0), 1, rows(1)) === 0)
    assert(order.compare(0, rows(0), 0, rows(2)) < 0)
    assert(order.compare(1, rows(4), 1, rows(3)) > 0)
    assert(order.prefix(0, rows(0)) === order.prefix(1, rows(1)))
    assert(order.prefix(0, rows(0)) < order.prefix(1, rows(2)))
    assert(order.prefix(0, rows(3)) === order.prefix(1, rows(4)))
  }
}
