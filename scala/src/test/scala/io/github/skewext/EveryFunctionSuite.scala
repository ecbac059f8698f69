package io.github.skewext

import io.github.skewext.FunctionCalls.Group
import io.github.skewext.asof.AsOfTest
import io.github.skewext.platform.SkewConf
import io.github.skewext.shuffle.ColumnarFilterProjectExec

import scala.util.Try


import org.apache.spark.SparkConf
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.analysis.FunctionRegistry
import org.apache.spark.sql.catalyst.expressions.BindReferences.bindReference
import org.apache.spark.sql.catalyst.expressions.codegen.{Block, CodegenContext, ExprCode}
import org.apache.spark.sql.catalyst.expressions.{Cast, Expression, Nondeterministic, UnaryExpression}
import org.apache.spark.sql.catalyst.plans.logical.{OneRowRelation, Project}
import org.apache.spark.sql.functions.{col, expr}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.{BooleanType, DataType, StringType, StructType}

/**
 * All of Spark's functions over columns with nulls inside arrays, maps and structs, wherever a
 * user's expression meets rows of ours: in filters below joins, in keys, in conditions of joins, in
 * orders, and in columns above. Interpreted, compiled, and where the compiler fails.
 */
class EveryFunctionSuite extends StoredTables with AsOfTest {

  override protected def sparkConf: SparkConf = super.sparkConf
    .set(SkewConf.MULTI_JOIN_REWRITE.key, "true")
    .set(SkewConf.JOIN_ENABLED.key, "true")
    .set(SkewConf.LATEST_REWRITE.key, "true")
    .set(SkewConf.SKEW_OUTPUT_SAMPLE_EVERY.key, "1")
    .set(SQLConf.ADAPTIVE_EXECUTION_ENABLED.key, "true")
    // A function that fails for a null would end the query.
    .set(SQLConf.ANSI_ENABLED.key, "false")
    // Wide tables are read by column, too.
    .set(SQLConf.WHOLESTAGE_MAX_NUM_FIELDS.key, "100000")
    .set("spark.sql.parquet.enableNestedColumnVectorizedReader", "true")
    .set("spark.sql.orc.enableNestedColumnVectorizedReader", "true")

  private val Rows = 36

  override protected def beforeAll(): Unit = {
    super.beforeAll()
    spark.sessionState.functionRegistry.createOrReplaceTempFunction(
      "uncompiled",
      arguments => Uncompiled(arguments.head),
      "scala_udf")
  }

  // Where expressions are

  /** A part of a query: `expression` in one text, over the columns of a table. */
  private case class Parts(group: Group, calls: Seq[String], format: String, way: Way) {

    /** A number that depends on each call, so that a wrong value of one is a wrong row. */
    def hash(table: String = ""): String =
      s"xxhash64(${calls.map(FunctionCalls.of(_, table)).mkString(", ")})"

    def where: String = way.wrapped(s"${hash()} % 2 = 0")
  }

  private case class Way(name: String, settings: (String, String)*)(val wrapped: String => String)

  private val Ways = Seq(
    Way(
      "interpreted",
      "spark.sql.codegen.wholeStage" -> "true",
      "spark.sql.codegen.factoryMode" -> "NO_CODEGEN")(identity),
    Way(
      "compiled",
      "spark.sql.codegen.wholeStage" -> "true",
      "spark.sql.codegen.factoryMode" -> "FALLBACK")(identity),
    Way(
      "compiled in vain",
      "spark.sql.codegen.wholeStage" -> "true",
      "spark.sql.codegen.factoryMode" -> "FALLBACK")(condition => s"uncompiled($condition)"))

  private type Form = Parts => DataFrame

  private def keys(table: DataFrame): DataFrame = table.select("k", "id", "ts")

  private def filtered(parts: Parts): DataFrame = keys(all(parts).where(parts.where))

  private def other(parts: Parts, name: String): DataFrame = stored(
    s"$name-${parts.format}",
    spark.range(0, 20, 1, 2).selectExpr("(id * 5) % 7 AS k", s"id AS $name", "id * 2 AS ts"),
    parts.format)

  // Inputs of the same DataFrame would have aliases between them and the join.
  private def all(parts: Parts): DataFrame = read(parts.format)

  private var rotation = 0
  private var schema = new StructType

  private def read(format: String): DataFrame =
    spark.read.schema(schema).format(format).load(folder.resolve(s"$format-$rotation").toString)

  private def withColumns(parts: Parts): DataFrame =
    all(parts).select((Seq("k", "id", "ts") ++ parts.group.columns).map(col): _*)

  private val Forms: Seq[(String, Form)] = Seq(
    "a filter below a chain" -> { parts =>
      fullJoin("k")(
        filtered(parts).select("k", "id"),
        other(parts, "b").drop("ts"),
        other(parts, "c").drop("ts"))
    },
    "a column and a filter above a chain" -> { parts =>
      fullJoin("k")(
        withColumns(parts).drop("id", "ts"),
        other(parts, "b").drop("ts"),
        other(parts, "c").drop("ts"))
        .where(s"pmod(${parts.hash()}, 3) <> 0 OR c % 2 = 0")
        .selectExpr("k", "b", "c", s"${parts.hash()} AS h")
    },
    "a key of a chain" -> { parts =>
      val keyed = all(parts).selectExpr(s"pmod(${parts.hash()}, 5) AS k", "id")
      fullJoin("k")(keyed, other(parts, "b").drop("ts"), other(parts, "c").drop("ts"))
    },
    "a filter below a join of two" -> { parts =>
      filtered(parts).join(other(parts, "b"), Seq("k"), "full")
    },
    "a condition of a join of two" -> { parts =>
      val (a, b) = (withColumns(parts).as("a"), withColumns(parts).as("b"))
      a.join(
        b,
        expr(s"a.k = b.k AND (${parts.hash("a.")} + ${parts.hash("b.")}) % 2 = 0 " +
          s"AND ${parts.hash("a.")} % 5 <> 0"),
        "left")
        .selectExpr("a.id AS i", "b.id AS j", s"${parts.hash("b.")} AS h")
    },
    "a key of a join of two" -> { parts =>
      val (a, b) = (withColumns(parts).as("a"), other(parts, "j").as("b"))
      a.join(b, expr(s"pmod(${parts.hash("a.")}, 5) = b.k"), "full")
        .selectExpr("a.id AS i", "b.j AS j")
    },
    "filters below an as-of join" -> { parts =>
      val versions = Versions(filtered(parts).withColumnRenamed("id", "v"), "ts")
      asOf(filtered(parts).withColumnRenamed("ts", "t"), "t")(versions)
    },
    "columns above an as-of join, and an order of versions" -> { parts =>
      val spine = other(parts, "b").withColumnRenamed("ts", "t")
      val versions = withColumns(parts).withColumn("ts", expr("ts - ts % 4"))
      asOf(spine, "t")(Versions(versions, "ts", ties = Seq(expr(parts.hash()), col("id"))))
        .selectExpr("k", "b", "id", s"${parts.hash()} AS h")
    },
    "a filter below the latest rows" -> { parts =>
      latest(filtered(parts), "k")(col("ts"))(col("id"))
    },
    "an order of the latest rows" -> { parts =>
      latest(withColumns(parts), "k")(expr(parts.hash()))(col("id"))
        .selectExpr("k", "id", s"${parts.hash()} AS h")
    },
    "an order of row numbers" -> { parts =>
      all(parts)
        .where(parts.where)
        .selectExpr(
          "k",
          "id",
          s"row_number() OVER (PARTITION BY k ORDER BY ${parts.hash()}, id) AS n")
        .where("n = 1")
    })

  private def check(form: Form, parts: Parts): Unit = {
    val df = form(parts)
    assertSameRows(df.collect().toSeq, rowsWhenOff(df), s"the same query with skewext off")
  }

  /** The calls whose rows are wrong, each by itself. */
  private def wrong(form: Form, parts: Parts): Seq[String] =
    parts.calls.filter(call => Try(check(form, parts.copy(calls = Seq(call)))).isFailure)

  // Tables and calls

  private def typeOf(text: String): Option[DataType] =
    Try(sql(s"SELECT $text").queryExecution.analyzed).toOption.collect {
      case plan @ Project(Seq(value), _: OneRowRelation) if plan.deterministic => value.dataType
    }

  /** Writes the columns of all groups, and reads them in both formats. */
  private def write(groups: Seq[Group], rotation: Int): Unit = {
    this.rotation = rotation
    val columns =
      Seq("id", "if(id % 9 = 5, null, id % 7) AS k", "id * 7 % 31 AS ts") ++ groups.flatMap(
        _.select)
    withSQLConf(Interpreted: _*) {
      val rows = spark.range(0, Rows, 1, 2).selectExpr(columns: _*)
      schema = stored(s"parquet-$rotation", rows).schema
      stored(s"orc-$rotation", read("parquet"), "orc")
    }
  }

  /** Calls that Spark can run over the columns, and the functions that they call. */
  private def runnable(groups: Seq[Group], each: Boolean): Seq[(Group, Seq[(String, String)])] = {
    val resolved = for {
      group <- groups
      // A relation of few columns, as each call is analyzed by itself.
      columns = frame(StructType(schema.filter(f => group.columns.contains(f.name))).toDDL)()
      call <- group.calls
    } yield (group, call.function, call.texts.flatMap(shown(columns, _)))
    val fail = failing(read("parquet"), resolved.flatMap(_._3).distinct)
    resolved.groupBy(_._1.number).toSeq.sortBy(_._1).map { case (_, calls) =>
      val texts = calls.flatMap { case (_, function, texts) =>
        val good = texts.filterNot(fail).map(function -> _)
        if (each) good else good.take(1)
      }
      (calls.head._1, texts)
    }
  }

  /** The call with a result that can be hashed, None if it has none. */
  private def shown(table: DataFrame, text: String): Option[String] = {
    val call = FunctionCalls.of(text, "")
    val whole = Try(analyzed(table, call)).toOption.collect {
      case plan @ Project(Seq(value), _)
          if plan.deterministic && !Now.findFirstIn(call).isDefined =>
        val result = value.dataType
        if (Cast.canCast(result, StringType)) s"string($text)" else s"($text) IS NULL"
    }
    // A generator may not be a part of an expression.
    whole.filter(w => Try(analyzed(table, FunctionCalls.of(w, ""))).isSuccess)
  }

  private def analyzed(table: DataFrame, call: String) =
    table.selectExpr(s"$call AS r").queryExecution.analyzed

  private val Now = "(?i)current_|now\\(|localtimestamp|uuid|rand".r

  /** Evaluates calls for each row, to find those that fail for some. */
  private def failing(table: DataFrame, texts: Seq[String]): Set[String] = {
    var fail = Set.empty[String]
    withSQLConf(
      (Interpreted :+ Off :+ (SQLConf.NESTED_SCHEMA_PRUNING_ENABLED.key -> "false")): _*) {
      // Spark 4 computes common parts of some functions in a projection below.
      val (withCommon, alone) = texts.partition { text =>
        val calls = table.selectExpr(s"${FunctionCalls.of(text, "")} AS c")
        calls.queryExecution.optimizedPlan.exists(_.output.exists(_.name.startsWith("_common")))
      }
      fail = withCommon.filterNot { text =>
        val calls = table.selectExpr(s"${FunctionCalls.of(text, "")} AS c")
        Try(calls.queryExecution.toRdd.count()).isSuccess
      }.toSet
      val columns = alone.zipWithIndex.map { case (text, i) => s"$text AS c$i" }
      val calls = columns.map(FunctionCalls.of(_, ""))
      val plan = table.selectExpr(calls: _*).queryExecution.optimizedPlan
      val Project(list, relation) = plan.collectFirst { case project: Project => project }.get
      val rows = table
        .select(relation.output.map(a => col(a.name)): _*)
        .queryExecution
        .toRdd
        .map(_.copy())
        .collect()
      fail ++= alone
        .zip(list)
        .collect {
          case (text, value)
              if !evaluates(bindReference(value: Expression, relation.output), rows) =>
            text
        }
    }
    fail
  }

  private def evaluates(value: Expression, rows: Seq[InternalRow]): Boolean = Try {
    value.foreach {
      case n: Nondeterministic => n.initialize(0)
      case _ =>
    }
    rows.foreach(value.eval)
  }.isSuccess

  // Tests

  private val rotations = if (testAll) 0 until 6 else Seq(0)

  for (rotation <- rotations) {
    lazy val groups = {
      val calls = new FunctionCalls(typeOf, if (testAll) Int.MaxValue else 1, rotation).groups
      write(calls, rotation)
      runnable(calls, each = testAll)
    }

    test(s"functions over columns with nulls inside, rotation $rotation", Slow) {
      val functions = groups.flatMap(_._2.map(_._1)).distinct
      info(s"${functions.size} functions in ${groups.map(_._2.size).sum} calls")
      if (rotation == 0) {
        val all = FunctionRegistry.builtin.listFunction().map(_.funcName).distinct
        info(s"without: ${all.diff(functions).sorted.mkString(" ")}")
        assert(functions.size > 280)
      }
      val cases = for {
        ((group, calls), g) <- groups.zipWithIndex
        (way, w) <- Ways.zipWithIndex
        ((name, form), f) <- Forms.zipWithIndex
        // All functions in a filter below, and each form in each way.
        if testAll || (if (f == 0) w == g % 3 else g == (3 * f + w) % groups.size)
      } yield (group, calls, way, name, form, if ((g + w + f) % 2 == 0) "parquet" else "orc")
      val begin = System.nanoTime
      for ((group, calls, way, name, form, format) <- cases) {
        val parts = Parts(group, calls.map(_._2), format, way)
        withSQLConf(way.settings: _*) {
          try check(form, parts)
          catch {
            case e: org.scalatest.exceptions.TestFailedException =>
              fail(s"$name, ${way.name}, $format: ${wrong(form, parts).mkString("\n")}", e)
          }
        }
      }
      info(s"${cases.size} queries in ${(System.nanoTime - begin) / 1000000} ms")
    }
  }

  test("filters are evaluated on columns", Slow) {
    val first = new FunctionCalls(typeOf, examples = 1, rotation = 0).groups.take(1)
    write(first, -1)
    val (group, calls) = runnable(first, each = false).head
    for (way <- Ways; format <- Seq("parquet", "orc")) withSQLConf(way.settings: _*) {
      val df = Forms.head._2(Parts(group, calls.map(_._2), format, way))
      df.collect()
      val filters = collect(df.queryExecution.executedPlan) {
        case filter: ColumnarFilterProjectExec if filter.condition.isDefined => filter
      }
      assert(filters.size === 1, df.queryExecution.executedPlan)
    }
  }
}

/** A condition whose generated code does not compile. */
private[skewext] case class Uncompiled(child: Expression) extends UnaryExpression {
  override def dataType: DataType = BooleanType
  override def nullable: Boolean = child.nullable
  override def eval(row: InternalRow): Any = child.eval(row)
  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode =
    ev.copy(code = Block.BlockHelper(StringContext("this is not Java;")).code())
  override protected def withNewChildInternal(newChild: Expression): Uncompiled = copy(newChild)
}
