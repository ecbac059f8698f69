package io.github.skewext.function

import java.nio.charset.StandardCharsets.UTF_8
import java.util.Locale

import io.github.skewext.asof.AsOfDirection.Backward
import io.github.skewext.asof.{AsOfJoinBuilder, AsOfTable}
import io.github.skewext.bucket.{BucketedWrite, BucketedWriter}
import io.github.skewext.explain.report.{QueryReport, SkewReport}
import io.github.skewext.explain.{Doctor, Explainer, ExplanationJson}
import io.github.skewext.internal.BuildInfo
import io.github.skewext.join.{InputRole, MultiFullJoinBuilder}
import io.github.skewext.latest.LatestRowsBuilder
import io.github.skewext.profile.KeyPass
import io.github.skewext.technique.hint.{HotKey, TechniqueOptions}
import io.github.skewext.technique.{AutoJoin, SkewJoinBuilder, SkewTechniques}

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.FunctionIdentifier
import org.apache.spark.sql.catalyst.analysis.{UnresolvedAttribute, UnresolvedRegex}
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.types.DataTypeUtils.toAttributes

/**
 * The functions of skewext for SQL and Python: each turns a [[Request]] into calls of the builders of
 * plans. In SQL they are table-valued functions, which stand in FROM and take tables as arguments.
 */
object TableFunctions {

  /** The form in which Spark registers a function. */
  type Description = (FunctionIdentifier, ExpressionInfo, Seq[Expression] => LogicalPlan)

  /**
   * @param signature its arguments, as DESCRIBE FUNCTION shows them: first tables, where `...` stands
   *                  for any number, then the names of the others.
   */
  private case class Function(name: String, signature: String, purpose: String)(
      plan: Request => LogicalPlan) {

    private val (tables, parameters) =
      signature
        .split(", ")
        .toSeq
        .filter(_.nonEmpty)
        .span(word => TablesFirst.exists(word.startsWith))

    def apply(request: Request): LogicalPlan = {
      val least = if (tables.contains("...")) 1 else tables.count(!_.startsWith("["))
      val most = if (tables.contains("...")) Int.MaxValue else tables.size
      val found = request.tables.size
      if (found < least || found > most) {
        val wanted = if (most > 2) s"$least or more" else (least to most).mkString(" or ")
        request.fail(s"it takes $wanted arguments like TABLE(t), got $found.")
      }
      plan(request)
    }

    def description: Description = described(name, signature, purpose) { given =>
      apply(Request.ofSql(name, parameters, given))
    }
  }

  private val TablesFirst = Seq("TABLE", "[TABLE", "...")

  private def described(name: String, signature: String, purpose: String)(
      plan: Seq[Expression] => LogicalPlan): Description = {
    val (full, usage) = (s"skewext_$name", s"_FUNC_($signature) - $purpose")
    val info = new ExpressionInfo(getClass.getName, null, full, usage, "", "", "", "", "", "", "")
    (FunctionIdentifier(full), info, plan)
  }

  private val functions: Seq[Function] = Seq(
    Function(
      "multi_join",
      "TABLE(a), TABLE(b), ..., keys, roles, indicator, suffixes, names",
      "Joins the tables on one key, in one pass.")(multiJoin),
    Function(
      "asof_join",
      "TABLE(spine), TABLE(v1), ..., keys, time, times, directions, tolerances, exact, ties, how, " +
        "suffixes, spine_keys",
      "Joins each row of the spine with one version of each other table, by time.")(asOfJoin),
    Function("latest", "TABLE(t), keys, by, ties", "The latest row of each key.")(latest),
    Function(
      "skew_join",
      s"TABLE(join), technique, ${SkewTechniques.optionNames.mkString(", ")}",
      "Does the uppermost join of a query by a technique against skew.")(skewJoin),
    Function(
      "explain",
      "TABLE(query)",
      "Says what became of the joins of a query, as JSON; it is planned, and not run.")(
      relation(
        _,
        Finding.json("Explanation", "explanation") { (_, inputs) =>
          ExplanationJson.withEntries(Explainer.explain(inputs.head.queryExecution))
        })),
    Function(
      "skew_report",
      "TABLE(t), [TABLE(other)], keys, partitions, min_share, sizes",
      "Finds the keys that make a shuffle uneven.")(skewReport),
    Function(
      "query_report",
      "query",
      "Says how the tasks of a query were, as JSON; by default of the last one with a join.") {
      request =>
        val query = request.whole("query", 0, Long.MaxValue)
        relation(
          request,
          Finding.json(s"QueryReport(${query.mkString})", "report")((session, _) =>
            QueryReport.of(session, query)))
    },
    Function(
      "write_bucketed",
      "TABLE(query), table, by, buckets, sort, mode, partition_by, format, options",
      "Writes a bucketed table with one file per bucket, once for each execution plan.")(
      writeBucketed),
    Function(
      "doctor",
      "",
      "The parts of skewext, as JSON: which are active, and why others are off.")(
      relation(_, Finding.json("Doctor", "parts")((session, _) => Doctor.json(session)))),
    Function("version", "", "The version of skewext, and the line of Spark it is for.") { _ =>
      val columns = Seq("version" -> BuildInfo.version, "spark_line" -> BuildInfo.sparkLine)
      Project(columns.map { case (name, value) => Alias(Literal(value), name)() }, OneRowRelation())
    })

  /** The functions that docs/sql.md describes. */
  val public: Seq[Description] = functions.map(_.description)

  /** With that of `pyspark_skewext`, which sends requests of any function by Spark Connect. */
  val all: Seq[Description] = public :+
    described("request", "TABLE(t), ..., request", "A call of pyspark_skewext.") { given =>
      val call = Request.ofSql("request", Seq("request"), given)
      call.arguments.get("request") match {
        case Some(Literal(json: Array[Byte], _)) =>
          apply(Request.ofJson(new String(json, UTF_8), call.tables, runsJobs = false))
        case _ => call.fail("only pyspark_skewext calls it.")
      }
    }

  /** The plan of the function's result. */
  def apply(request: Request): LogicalPlan =
    functions
      .find(_.name == request.function)
      .getOrElse(request.fail("there is no such function."))(request)

  private def relation(request: Request, finding: Finding): LogicalPlan =
    FindingRelation(finding, request.tables, toAttributes(finding.schema))

  private def multiJoin(request: Request): LogicalPlan = {
    val keys = keysOf(request)
    new MultiFullJoinBuilder(
      SparkSession.active,
      request.tables,
      keys,
      request.names("names").getOrElse(keys.headOption.getOrElse(Nil)),
      InputRole.ofAll(request.texts("roles").getOrElse(Seq("full")), request.tables.size),
      request.texts("suffixes").map(_.map(Option(_).getOrElse(""))),
      request.text("indicator")).build()
  }

  /**
   * The key of each table: `'k'`, `array('a', 'b')`, or an array with one of these for each table.
   */
  private def keysOf(request: Request): Seq[Seq[String]] =
    lists(request, "keys", request.tables.size, request.required("keys", None))

  /** One list for all tables, or an array with a list for each. */
  private def lists(
      request: Request,
      name: String,
      tables: Int,
      default: => Seq[Seq[String]]): Seq[Seq[String]] =
    request.nested(name) match {
      case Some(lists) =>
        lists.map {
          case Request.Texts(list) if !list.contains(null) => list
          case _ => request.fail(s"a name in '$name' is NULL or no string.")
        }
      case None => request.names(name).fold(default)(Seq.fill(tables)(_))
    }

  private def asOfJoin(request: Request): LogicalPlan = {
    val (spine, versions) = (request.tables.head, request.tables.tail)
    def ofEach[T](name: String, values: Option[Seq[T]], default: => T): Seq[T] = values match {
      case None => versions.map(_ => default)
      case Some(Seq(one)) => versions.map(_ => one)
      case Some(several) => ofAll(name, several)
    }
    def ofAll[T](name: String, values: Seq[T]): Seq[T] = {
      if (values.size != versions.size) {
        request.fail(
          s"there are ${versions.size} tables of versions, and '$name' has ${values.size} values.")
      }
      values
    }
    val n = versions.size
    val keys = ofAll("keys", lists(request, "keys", n, request.required("keys", None)))
    val spineKeys = ofAll("spine_keys", lists(request, "spine_keys", n, keys))
    val time = request.required("time", request.text("time"))
    val times = ofEach("times", request.texts("times"), time)
    val directions = ofEach("directions", request.texts("directions"), Backward.name)
    val tolerances = ofEach("tolerances", request.constants("tolerances"), Literal(null))
    val exact = ofEach("exact", request.flags("exact"), default = true)
    val ties: Seq[Option[Seq[Any]]] = request.nested("ties") match {
      case Some(each) =>
        ofAll("ties", each).map(Option(_).map { case orders: collection.Seq[_] => orders.toVector })
      case None => versions.map(_ => request.texts("ties").filterNot(_.forall(_ == null)))
    }
    val tables = versions.indices.map { i =>
      AsOfTable(
        versions(i),
        spineKeys(i),
        keys(i),
        times(i),
        directions(i),
        Some(tolerances(i)),
        exact(i),
        ties(i).map(_.map(order(request, _))))
    }
    new AsOfJoinBuilder(
      SparkSession.active,
      spine,
      tables,
      time,
      request.text("how").getOrElse("left").toLowerCase(Locale.ROOT),
      request.texts("suffixes")).build()
  }

  private def latest(request: Request): LogicalPlan = {
    def orders(name: String) =
      request.list(name).filter(_.nonEmpty).map(_.map(order(request, _)))
    LatestRowsBuilder.build(
      SparkSession.active,
      request.tables.head,
      keysOf(request).head,
      request.required("by", orders("by")),
      orders("ties"))
  }

  private val Order = """(?is)(.*?)(?:\s+(asc|desc))?(?:\s+nulls\s+(first|last))?""".r

  /** A column, or an order as in ORDER BY. */
  private def order(request: Request, given: Any): Expression = given match {
    case text: String => order(request, text)
    case place: Map[_, _] => request.column(place)
    case null => request.fail("a column to order by is NULL.")
    case other => request.fail(s"a column to order by must be a string, not $other.")
  }

  private def order(request: Request, text: String): Expression = {
    val Order(column, direction, nulls) = text.trim
    val e = SparkSession.active.sessionState.sqlParser.parseExpression(column).transform {
      // With quotedRegexColumnNames, a quoted name is a pattern. No pattern is an order.
      case UnresolvedRegex(name, table, _) =>
        UnresolvedAttribute(table.toSeq :+ name.replace("``", "`"))
    }
    // The parser takes a misspelt direction for the name of the column.
    e match {
      case Alias(_, name) =>
        request.fail(s"the order '$text' has '$name', which is neither ASC nor DESC.")
      case _ =>
    }
    // ORDER BY reads a column as ascending, and here the greatest value comes first.
    if (direction == null && nulls != null) {
      request.fail(s"the order '$text' has NULLS, but neither ASC nor DESC.")
    }
    if (direction == null) {
      e
    } else {
      val by = if ("asc".equalsIgnoreCase(direction)) Ascending else Descending
      val default = by.defaultNullOrdering
      val order =
        if (nulls == null) default
        else if (nulls.equalsIgnoreCase("first")) NullsFirst
        else NullsLast
      SortOrder(e, by, order, Nil)
    }
  }

  private def skewJoin(request: Request): LogicalPlan = {
    val words = SkewTechniques.optionNames.filterNot(_ == TechniqueOptions.HotKeys)
    val given = TechniqueOptions(
      words.flatMap(name => request.word(name).map(name -> _)).toMap,
      request.rows(TechniqueOptions.HotKeys).map(_.map(HotKey(_))))
    AnalysisHelper.allowInvokingTransformsInAnalyzer {
      SkewJoinBuilder.byTechnique(
        SparkSession.active,
        request.tables.head,
        request.text("technique").getOrElse(AutoJoin.name),
        given,
        request.runsJobs)
    }
  }

  private def writeBucketed(request: Request): LogicalPlan = {
    val by = request.required("by", request.names("by"))
    if (by.isEmpty) request.fail("the argument 'by' must have at least one name.")
    val write = BucketedWrite(
      request.required("table", request.text("table")),
      by,
      request.required("buckets", request.whole("buckets", 1, Int.MaxValue)).toInt,
      request.namesOrFlag("sort", by).getOrElse(by),
      request.text("mode").getOrElse("error"),
      request.names("partition_by").getOrElse(Nil),
      request.text("format"),
      request.pairs("options").getOrElse(Map.empty))
    val shown = s"BucketedWrite(${write.table}, ${by.mkString("[", ", ", "]")}, " +
      s"${write.buckets}, ${write.mode})"
    relation(
      request,
      Finding.json(shown, "written")((_, inputs) =>
        new BucketedWriter(inputs.head, write).write().json))
  }

  private def skewReport(request: Request): LogicalPlan = {
    val keys = keysOf(request)
    val share = request.number("min_share").getOrElse(BigDecimal("0.001"))
    if (share < BigDecimal("0.00001") || share > BigDecimal("0.5")) {
      request.fail(s"the argument 'min_share' must be between 0.00001 and 0.5, not $share.")
    }
    val partitions = request.whole("partitions", 1, 1000000).map(_.toInt)
    val withBytes = request.flag("sizes").getOrElse(false)
    val compared = KeyPass.compared(SparkSession.active, request.tables, keys)._1
    val shown = s"SkewReport(${keys.map(_.mkString("[", ", ", "]")).mkString(", ")})"
    relation(
      request,
      new Finding(shown, SkewReport.schema(compared))((session, inputs) =>
        SkewReport.of(session, inputs, keys, partitions, share.toDouble, withBytes).rows))
  }
}
