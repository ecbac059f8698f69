package io.github.skewext.inputs

import scala.util.{Failure, Success, Try}

import io.github.skewext.MultiJoinTest
import io.github.skewext.facts.ComparedByBytes

import org.apache.spark.sql.catalyst.encoders.ExamplePointUDT
import org.apache.spark.sql.types._
import org.apache.spark.sql.{AnalysisException, DataFrame, Row}

/** Keys of every type, and of types that differ between the inputs. */
class KeyTypesSuite extends MultiJoinTest {

  /** Input `i` of a join: keys of one type, with a column that identifies the row. */
  private def input(i: Int, dataType: String, keys: String*): DataFrame = {
    val rows = keys.zipWithIndex.map { case (key, row) =>
      s"(CAST($key AS $dataType), ${i * 100 + row})"
    }
    table(s"k, v$i", rows.mkString(", "))
  }

  private def keyType(df: DataFrame): DataType = df.schema("k").dataType

  /** Orders in which every input is first once, and last once. */
  private def orders(a: DataFrame, b: DataFrame, c: DataFrame): Seq[Seq[DataFrame]] =
    Seq(Seq(a, b, c), Seq(b, c, a), Seq(c, a, b))

  private def refused(inputs: DataFrame*): Unit = {
    val e = intercept[AnalysisException](fullJoin("k")(inputs: _*))
    assert(e.getMessage.contains("Key column 'k' has types that cannot all be compared"))
    inputs.indices.foreach(i => assert(e.getMessage.contains(s"input $i: k ")))
  }

  for {
    (dataType, keys) <- Seq(
      "boolean" -> Seq("true", "false", "null"),
      "tinyint" -> Seq("-1", "0", "127", "null"),
      "smallint" -> Seq("-1", "0", "32767", "null"),
      "int" -> Seq("-1", "0", "2147483647", "null"),
      "bigint" -> Seq("-1", "0", "9223372036854775807", "null"),
      "decimal(9,2)" -> Seq("-1.5", "0", "1234567.89", "null"),
      "decimal(38,10)" -> Seq("-1.5", "0", "1234567890123456789012345.0123456789", "null"),
      "string" -> Seq("''", "'a'", "'ab'", "'a long key that fills several words'", "null"),
      "binary" -> Seq("''", "'a'", "'ab'", "null"),
      "date" -> Seq("'1582-10-04'", "'1970-01-01'", "'9999-12-31'", "null"),
      "timestamp" -> Seq("'1900-01-01 00:00:00.000001'", "'2020-01-01'", "null"),
      "timestamp_ntz" -> Seq("'1900-01-01 00:00:00.000001'", "'2020-01-01'", "null"),
      "interval year to month" -> Seq("'1-1'", "'-1-0'", "null"),
      "interval day to second" -> Seq("'1 1:00:00.5'", "'0 0:0:0'", "null"),
      "array<int>" -> Seq("array()", "array(1)", "array(1, null)", "array(null, 1)", "null"),
      "struct<a:int,b:string>" ->
        Seq("struct(1, 'x')", "struct(1, null)", "struct(null, null)", "null"),
      "array<struct<a:string>>" -> Seq("array(struct('x'), struct('y'))", "array(null)", "null"))
  } test(s"joins on keys of type $dataType") {
    val joined = checkFullJoin("k")(
      input(0, dataType, keys: _*),
      input(1, dataType, keys.drop(1): _*),
      input(2, dataType, keys.take(2): _*))
    // Each key once, and each of the two null keys in a row of its own.
    assert(joined.count() === keys.size + 1)
  }

  for (dataType <- Seq("float", "double"))
    test(s"keys of type $dataType match -0.0 with 0.0, and NaN with NaN") {
      val joined = checkFullJoin("k")(
        input(0, dataType, "-0.0d", "'NaN'", "1.5", "null"),
        input(1, dataType, "0.0", "'NaN'", "'Infinity'"),
        input(2, dataType, "-0.0d", "1.5", "'-Infinity'"))
      assert(joined.count() === 6)
      val zero = joined.where("k = 0").select("v0", "v1", "v2").collect()
      assert(zero === Array(Row(0, 100, 200)))
      // If equal values differ, the join returns that of the first input.
      val shown = joined.where("k = 0").selectExpr("cast(k as string)").head().getString(0)
      assert(shown === "-0.0")
    }

  for {
    (dataType, key) <- Seq(
      "array<double>" -> "array(1.0d, %s)",
      "array<array<float>>" -> "array(array(%s), null)",
      "struct<a:double,b:struct<c:float>>" -> "struct(1.0d, struct(%s))",
      "array<struct<a:double>>" -> "array(struct(%s))")
  } test(s"matches equal floats with different bytes in $dataType") {
    val joined = checkFullJoin("k")(
      input(0, dataType, Seq("-0.0d", "double('NaN')", "1.0", "null").map(key.format(_)): _*),
      input(1, dataType, Seq("0.0d", "double('NaN')", "2.0", "null").map(key.format(_)): _*),
      input(2, dataType, Seq("-0.0d", "2.0").map(key.format(_)): _*))
    assert(joined.count() === 5)
  }

  test("joins on a float key beside other key columns") {
    checkFullJoin("k", "l")(
      table("k, l, a", "('x', -0.0d, 1), ('x', 0.0d, 2), ('y', double('NaN'), 3)"),
      table("k, l, b", "('x', 0.0d, 10), ('z', 0.0d, 20), ('y', double('NaN'), 30)"))
  }

  for (ansi <- Seq(false, true)) {
    def ansiTest(name: String)(body: => Unit): Unit =
      test(
        s"$name, ANSI ${if (ansi) "on" else "off"}",
        Slow(
          "joins dates with timestamps in a time zone with summer time, ANSI off",
          "joins dates with timestamps in a time zone with summer time, ANSI on",
          "joins decimals of different widths with integers, ANSI off",
          "joins decimals of different widths with integers, ANSI on",
          "joins integers of different widths, ANSI off",
          "joins integers of different widths, ANSI on")) {
        withSQLConf("spark.sql.ansi.enabled" -> ansi.toString)(body)
      }

    ansiTest("joins integers of different widths") {
      val tiny = input(0, "tinyint", "1", "2", "-128")
      val int = input(1, "int", "2", "2147483647", "-128")
      val long = input(2, "bigint", "2", "2147483647", "9223372036854775807", "4294967298")
      assert(keyType(checkFullJoin("k")(int, long)) === DataTypes.LongType)
      assert(keyType(checkFullJoin("k")(tiny, int)) === DataTypes.IntegerType)
      for (inputs <- some(1, orders(tiny, int, long))) {
        assert(keyType(checkFullJoin("k")(inputs: _*)) === DataTypes.LongType)
      }
    }

    ansiTest("joins decimals of different widths with integers") {
      val short = input(0, "decimal(5,2)", "1.5", "2", "999.99")
      val long = input(1, "decimal(20,4)", "1.5", "2.0001", "2")
      val int = input(2, "int", "2", "999")
      assert(keyType(checkFullJoin("k")(short, long)) === DecimalType(20, 4))
      assert(keyType(checkFullJoin("k")(short, int)) === DecimalType(12, 2))
      for (inputs <- some(2, orders(short, long, int))) {
        assert(keyType(checkFullJoin("k")(inputs: _*)) === DecimalType(20, 4))
      }
    }

    ansiTest("joins dates with timestamps in a time zone with summer time") {
      withSQLConf("spark.sql.session.timeZone" -> "America/Sao_Paulo") {
        // Summer time began at midnight of this day: it has no 00:00.
        val date = input(0, "date", "'2018-11-04'", "'2020-01-01'", "null")
        val ts = input(1, "timestamp", "'2018-11-04 01:00:00'", "'2020-01-01 00:00:01'", "null")
        val ntz = input(1, "timestamp_ntz", "'2018-11-04 00:00:00'", "'2020-01-01'")
        val date2 = input(2, "date", "'2020-01-01'", "'2018-11-04'")
        assert(keyType(checkFullJoin("k")(date, ts)) === DataTypes.TimestampType)
        assert(keyType(checkFullJoin("k")(date, ntz)) === DataTypes.TimestampNTZType)
        assert(keyType(checkFullJoin("k")(date, ts, date2)) === DataTypes.TimestampType)
        assert(keyType(checkFullJoin("k")(date, date2, ts)) === DataTypes.TimestampType)
      }
    }

    ansiTest("joins float with double, and int with double") {
      val float = input(0, "float", "0.1", "0.5", "'NaN'", "-0.0")
      val double = input(1, "double", "0.1", "0.5", "'NaN'", "0")
      val int = input(2, "int", "0", "1")
      assert(keyType(checkFullJoin("k")(float, double)) === DataTypes.DoubleType)
      assert(keyType(checkFullJoin("k")(double, int)) === DataTypes.DoubleType)
      checkFullJoin("k")(float, double, int)
    }

    ansiTest("compares two inputs in a type in which different values may be equal") {
      // 2^53 and 2^53 + 1 are one double.
      checkFullJoin("k")(
        input(0, "bigint", "9007199254740992", "9007199254740993"),
        input(1, "double", "9007199254740992", "1"))
    }

    ansiTest("refuses such types for three inputs, because their order would matter") {
      val long = input(0, "bigint", "9007199254740992", "9007199254740993")
      val double = input(1, "double", "9007199254740992")
      refused(long, double, input(2, "bigint", "9007199254740993"))
      refused(input(2, "bigint", "9007199254740993"), long, double)
    }

    ansiTest("joins a string with a number only if Spark compares and returns one type") {
      val string = input(0, "string", "'1'", "'01'", "'2'")
      val int = input(1, "int", "1", "3")
      if (ansi) {
        assert(keyType(checkFullJoin("k")(string, int)) === DataTypes.LongType)
      } else {
        // Spark compares numbers and returns strings: '1' and '01' would be one key with two
        // values.
        refused(string, int)
      }
      refused(string, input(2, "string", "'01'"), int)
      refused(string, int, input(2, "bigint", "1"))
    }

    ansiTest("joins arrays and structs whose elements have different widths") {
      checkFullJoin("k")(
        input(0, "array<int>", "array(1, null)", "array(2)"),
        input(1, "array<bigint>", "array(1, null)", "array(4294967298)"),
        input(2, "array<bigint>", "array(4294967298)", "array(2)"))
      checkFullJoin("k")(
        input(0, "struct<a:int,b:date>", "struct(1, date'2020-01-01')"),
        input(1, "struct<a:bigint,b:date>", "struct(1L, date'2020-01-01')", "struct(2L, null)"))
    }
  }

  test("joins on a key of type void") {
    checkFullJoin("k")(table("k, a", "(null, 1), (null, 2)"), table("k, b", "(null, 3)"))
    checkFullJoin("k")(table("k, a", "(null, 1)"), table("k, b", "(1, 3)"), table("k, c", "(1, 4)"))
  }

  private def charTable(name: String, dataType: String, values: String*)(
      f: DataFrame => Unit): Unit =
    withTable(name) {
      sql(s"CREATE TABLE $name (k $dataType, v_$name INT) USING parquet")
      val rows = values.zipWithIndex.map { case (v, i) => s"('$v', $i)" }
      sql(s"INSERT INTO $name VALUES ${rows.mkString(", ")}")
      f(spark.table(name))
    }

  test("joins char(n) of one length with strings and varchar", Slow) {
    charTable("c3", "char(3)", "a", "abc") { c3 =>
      charTable("d3", "char(3)", "a", "xyz") { d3 =>
        charTable("v3", "varchar(3)", "a", "a  ", "abc") { v3 =>
          val string = input(9, "string", "'a'", "'a  '", "'abc'")
          checkFullJoin("k")(c3, d3)
          checkFullJoin("k")(c3, string)
          checkFullJoin("k")(v3, c3)
          checkFullJoin("k")(c3, d3, v3, string)
        }
      }
    }
  }

  test("the key of a required first input has its type and comment", Slow) {
    charTable("c3", "char(3) COMMENT 'a code'", "a", "abc") { c3 =>
      charTable("d3", "char(3)", "a", "xyz") { d3 =>
        for (how <- Seq("left", "inner")) {
          val joined = multiJoin(Seq(c3, d3), Seq("k"), roles = Seq(how))
          val stock = c3.join(d3, Seq("k"), how)
          assert(joined.schema("k").metadata === stock.schema("k").metadata)
          // Spark pads the literal, if it knows the type.
          checkSame(joined.where("k = 'a'"))
          assert(joined.where("k = 'a'").count() === stock.where("k = 'a'").count())
          assert(joined.where("k = 'a'").count() === 1)
        }
        assert(
          multiJoin(Seq(c3, d3), Seq("k"), roles = Seq("full")).schema("k").getComment().isEmpty)
      }
    }
  }

  test("compares char(n) of two lengths with padding, and returns it without", Slow) {
    charTable("c3", "char(3)", "a", "abc", "b") { c3 =>
      charTable("c5", "char(5)", "a", "abc", "abcde") { c5 =>
        for (inputs <- Seq(Seq(c3, c5), Seq(c5, c3))) {
          val joined = checkFullJoin("k")(inputs: _*)
          assert(joined.count() === 4)
          // The output does not contain the compared values, so a group-by must shuffle again.
          val grouped = joined.groupBy("k").count()
          checkJoin(grouped)
          assert(exchanges(grouped).size === 3)
        }
        val e = intercept[AnalysisException](fullJoin("k")(c3, c5, c3))
        assert(e.getMessage.contains("'k' is char(n) with different lengths"))
      }
    }
  }

  test("joins char(n) of two lengths and a string as Spark does, or refuses", Slow) {
    charTable("c3", "char(3)", "a", "abc") { c3 =>
      charTable("c5", "char(5)", "a", "abcde") { c5 =>
        val string = input(9, "string", "'a  '", "'a    '", "'abc'")
        for (inputs <- Seq(c3, c5, string).permutations) {
          Try(fullJoin("k")(inputs: _*)) match {
            case Failure(e) => assert(e.getMessage.contains("char(n) with different lengths"))
            case Success(_) => checkFullJoin("k")(inputs: _*)
          }
        }
      }
    }
  }

  test("joins struct keys with char(n) as Spark does, or refuses") {
    withTable("s3", "s5") {
      sql("CREATE TABLE s3 (k STRUCT<c: CHAR(3)>, a INT) USING parquet")
      sql("CREATE TABLE s5 (k STRUCT<c: CHAR(5)>, b INT) USING parquet")
      sql("INSERT INTO s3 SELECT named_struct('c', 'a'), 1")
      sql("INSERT INTO s5 SELECT named_struct('c', 'a'), 2")
      val inputs = Seq(spark.table("s3"), spark.table("s5"))
      Try(fullJoin("k")(inputs: _*)).foreach(_ => checkFullJoin("k")(inputs: _*))
    }
  }

  test("user-defined types of floating-point numbers, in which Spark does not normalize -0.0") {
    val point = new ExamplePointUDT
    for (t <- Seq[DataType](point, ArrayType(point), new StructType().add("p", point)))
      assert(ComparedByBytes.mayDiffer(t), t)
    for (t <- Seq[DataType](DoubleType, ArrayType(DoubleType), IntegerType))
      assert(!ComparedByBytes.mayDiffer(t), t)
  }
}
