package io.github.skewext.rows

import scala.util.Random

import io.github.skewext.MultiJoinTest

import org.apache.spark.sql.RandomDataGenerator
import org.apache.spark.sql.catalyst.expressions.{Coalesce, Expression, UnsafeArrayData, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.catalyst.{CatalystTypeConverters, InternalRow}
import org.apache.spark.sql.types._

/** Rows that are put together word by word are those that Spark's projection of the columns makes. */
class RowAssemblerSuite extends MultiJoinTest {

  private val types: Seq[DataType] = Seq(
    BooleanType,
    ByteType,
    IntegerType,
    LongType,
    DoubleType,
    StringType,
    BinaryType,
    DateType,
    TimestampType,
    DecimalType(9, 2),
    DecimalType(38, 10),
    CalendarIntervalType,
    ArrayType(StringType),
    MapType(IntegerType, StringType, valueContainsNull = true),
    StructType(Seq(StructField("a", StringType), StructField("b", DecimalType(30, 2)))))

  private def unsafeRow(schema: Seq[DataType], nullShare: Float, random: Random): UnsafeRow = {
    val values = schema.map { dataType =>
      if (random.nextFloat() < nullShare) {
        null
      } else {
        val make = RandomDataGenerator.forType(dataType, nullable = false, random).get
        CatalystTypeConverters.createToCatalystConverter(dataType)(make())
      }
    }
    UnsafeProjection.create(schema.toArray)(InternalRow(values: _*)).copy()
  }

  for (width <- Seq(1, 5, 40); nullShare <- Seq(0f, 0.4f)) {
    test(
      s"up to $width columns an input, ${(100 * nullShare).toInt} % of them null",
      Slow("40 columns an input, 0 % of them null")) {
      val random = new Random(31 * width + (10 * nullShare).toInt)
      def pick[T](from: Seq[T]): T = from(random.nextInt(from.size))
      for (round <- 0 until (if (testAll) 20 else 6)) {
        val n = 1 + random.nextInt(5)
        val keyTypes = Seq.fill(1 + random.nextInt(2))(pick(types))
        // The key is somewhere among the other columns, in each input elsewhere.
        val valueTypes = Seq.fill(n)(Seq.fill(random.nextInt(width + 1))(pick(types)))
        val places = Seq.tabulate(n)(i => random.nextInt(valueTypes(i).size + 1))
        val inputTypes = Seq.tabulate(n) { i =>
          valueTypes(i).take(places(i)) ++ keyTypes ++ valueTypes(i).drop(places(i))
        }
        val indicator =
          if (random.nextBoolean()) Some(IndicatorColumn(ArrayType(IntegerType))) else None
        val keyColumns: Seq[Expression] = keyTypes.zipWithIndex.map { case (dataType, j) =>
          FirstPresentColumn(places.map(_ + j), dataType, nullable = true)
        }
        val valueColumns: Seq[Expression] = for {
          i <- 0 until n
          (dataType, ordinal) <- inputTypes(i).zipWithIndex
          if ordinal < places(i) || ordinal >= places(i) + keyTypes.size
        } yield InputColumn(i, ordinal, dataType, nullable = true)
        // As a projection may show them: some twice, some not at all, the key of any inputs.
        val chosen: Seq[Expression] = if (random.nextBoolean()) {
          keyColumns ++ valueColumns
        } else {
          val coalesced = keyTypes.zipWithIndex.map { case (dataType, j) =>
            Coalesce(random.shuffle((0 until n).toList).take(1 + random.nextInt(n)).map { i =>
              InputColumn(i, places(i) + j, dataType, nullable = true)
            })
          }
          random.shuffle(coalesced ++ valueColumns.filter(_ => random.nextInt(3) > 0)) ++
            valueColumns.take(2)
        }
        val output = chosen ++ indicator
        val combination = new InputRows(n, new RowAssembler(inputTypes, output))
        val projection = UnsafeProjection.create(output)
        // Several combinations by one assembler: nothing of the last one may show.
        for (_ <- 0 until 10) {
          // A new key, or one more combination of the rows of the same inputs.
          val changed = if (combination.rows.forall(_ == null)) 0 else random.nextInt(n)
          for (i <- changed until n if changed == 0 || combination.rows(i) != null) {
            combination.rows(i) =
              if (changed == 0 && random.nextInt(3) == 0) null
              else unsafeRow(inputTypes(i), nullShare, random)
          }
          if (combination.rows.forall(_ == null)) {
            combination.rows(n - 1) = unsafeRow(inputTypes(n - 1), nullShare, random)
          }
          combination.changedFrom(changed)
          combination.first = combination.rows.indexWhere(_ != null)
          combination.indicator = UnsafeArrayData.fromPrimitiveArray(
            combination.rows.indices.filter(combination.rows(_) != null).toArray)
          val expected = projection(combination)
          val actual = combination.toUnsafeRow
          assert(actual.numFields === output.size)
          assert(actual.getSizeInBytes % 8 === 0)
          // A second projection, as null decimals and intervals leave room in some rows.
          val normal = UnsafeProjection.create(output.map(_.dataType).toArray)
          val again = UnsafeProjection.create(output.map(_.dataType).toArray)
          assert(normal(actual) === again(expected), s"in round $round")
        }
      }
    }
  }
}
