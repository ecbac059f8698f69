package io.github.skewext.function

import java.util.Locale

import io.github.skewext.asof.AsOfDirection.Backward
import io.github.skewext.asof.{AsOfJoinBuilder, AsOfTable}
import io.github.skewext.explain.report.SkewReport
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
import org.apache.spark.sql.types.StructType

/**
 * Table-valued functions for SQL clients: functions in FROM that take tables as arguments. Each one
 * returns a plan that no longer contains the call.
 */
object TableFunctions {

  /** The form in which Spark registers a function. */
  type Description = (FunctionIdentifier, ExpressionInfo, Seq[Expression] => LogicalPlan)

  val all: Seq[Description] = Seq(
    function(
      "skewext_multi_join",
      "TABLE(t1), TABLE(t2), ..., keys, [roles, indicator, suffixes, names]",
      "Joins the tables on one key, in one pass.")(
      Seq("keys", "roles", "indicator", "suffixes", "names"))(multiJoin),
    function(
      "skewext_asof_join",
      "TABLE(spine), TABLE(v1), ..., keys, time, " +
        "[times, directions, tolerances, exact, ties, how, suffixes, spine_keys]",
      "Joins each row of the spine with one version of each other table, by time.")(
      Seq(
        "keys",
        "time",
        "times",
        "directions",
        "tolerances",
        "exact",
        "ties",
        "how",
        "suffixes",
        "spine_keys"))(asOfJoin),
    function("skewext_latest", "TABLE(t), keys, by, [ties]", "The latest row of each key.")(
      Seq("keys", "by", "ties"))(latest),
    function(
      "skewext_skew_join",
      "TABLE(join), [technique, hot_keys], [option => value, ...]",
      "Does the uppermost join of a query by a technique against skew.")(
      "technique" +: SkewTechniques.optionNames)(skewJoin),
    function(
      "skewext_explain",
      "TABLE(query)",
      "Says what became of the joins of a query, as JSON; it is planned, and not run.")(Nil) {
      arguments =>
        requireTables(arguments, 1, 1)
        relation(ExplanationFinding, arguments)
    },
    function(
      "skewext_skew_report",
      "TABLE(t), [TABLE(other),] keys, [partitions, min_share, sizes]",
      "Finds the keys that make a shuffle uneven.")(
      Seq("keys", "partitions", "min_share", "sizes"))(skewReport),
    function(
      "skewext_query_report",
      "[query]",
      "Says how the tasks of a query were, as JSON; by default of the last one with a join.")(
      Seq("query")) { arguments =>
      requireTables(arguments, 0, 0)
      relation(QueryFinding(arguments.whole("query", 0, Long.MaxValue)), arguments)
    },
    function(
      "skewext_write_bucketed",
      "TABLE(query), table, by, buckets, [sort, mode, partition_by, format, options]",
      "Writes a bucketed table with one file per bucket, once for each execution plan.")(
      Seq("table", "by", "buckets", "sort", "mode", "partition_by", "format", "options"))(
      writeBucketed),
    function(
      "skewext_doctor",
      "",
      "The parts of skewext, as JSON: which are active, and why others are off.")(Nil) {
      arguments =>
        requireTables(arguments, 0, 0)
        relation(DoctorFinding, arguments)
    },
    function("skewext_version", "", "The version of skewext, and the line of Spark it is for.")(
      Nil) { arguments =>
      requireTables(arguments, 0, 0)
      val columns = Seq("version" -> BuildInfo.version, "spark_line" -> BuildInfo.sparkLine)
      Project(columns.map { case (name, value) => Alias(Literal(value), name)() }, OneRowRelation())
    })

  private def function(name: String, arguments: String, purpose: String)(parameters: Seq[String])(
      plan: TableArguments => LogicalPlan): Description = {
    val usage = s"_FUNC_($arguments) - $purpose"
    val info =
      new ExpressionInfo(getClass.getName, null, name, usage, "", "", "", "", "", "", "")
    (FunctionIdentifier(name), info, given => plan(new TableArguments(name, parameters, given)))
  }

  private def requireTables(arguments: TableArguments, least: Int, most: Int): Unit = {
    val found = arguments.tables.size
    if (found < least || found > most) {
      val wanted = if (least == most) s"$least" else s"$least or $most"
      arguments.fail(s"it takes $wanted arguments like TABLE(t), got $found.")
    }
  }

  private def relation(finding: JsonFinding, arguments: TableArguments): LogicalPlan =
    relation(finding, arguments, finding.output)

  private def relation(
      finding: Finding,
      arguments: TableArguments,
      columns: StructType): LogicalPlan =
    FindingRelation(finding, arguments.tables, toAttributes(columns))

  private def multiJoin(arguments: TableArguments): LogicalPlan = {
    val inputs = arguments.tables
    val keys = keysOf(arguments)
    new MultiFullJoinBuilder(
      SparkSession.active,
      inputs,
      keys,
      arguments.names("names").getOrElse(keys.headOption.getOrElse(Nil)),
      rolesOf(arguments),
      arguments.texts("suffixes").map(_.map(Option(_).getOrElse(""))),
      arguments.text("indicator")).build()
  }

  /**
   * The key of each table: `'k'`, `array('a', 'b')`, or an array with one of these for each table.
   */
  private def keysOf(arguments: TableArguments): Seq[Seq[String]] =
    lists(arguments, "keys", arguments.tables.size, arguments.required("keys", None))

  /** One list for all tables, or an array with a list for each. */
  private def lists(
      arguments: TableArguments,
      name: String,
      tables: Int,
      default: => Seq[Seq[String]]): Seq[Seq[String]] = {
    val lists =
      if (arguments.isNested(name)) arguments.nested(name).get
      else arguments.texts(name).fold(default)(Seq.fill(tables)(_))
    if (lists.exists(list => list == null || list.contains(null))) {
      arguments.fail(s"a name in '$name' is NULL.")
    }
    lists
  }

  private def asOfJoin(arguments: TableArguments): LogicalPlan = {
    val (spine, versions) = arguments.tables match {
      case spine +: versions if versions.nonEmpty => (spine, versions)
      case tables =>
        arguments.fail(s"it takes 2 or more arguments like TABLE(t), got ${tables.size}.")
    }
    def ofEach[T](name: String, values: Option[Seq[T]], default: => T): Seq[T] = values match {
      case None => versions.map(_ => default)
      case Some(Seq(one)) => versions.map(_ => one)
      case Some(several) => ofAll(name, several)
    }
    def ofAll[T](name: String, values: Seq[T]): Seq[T] = {
      if (values.size != versions.size) {
        arguments.fail(
          s"there are ${versions.size} tables of versions, and '$name' has ${values.size} values.")
      }
      values
    }
    val n = versions.size
    val keys = ofAll("keys", lists(arguments, "keys", n, arguments.required("keys", None)))
    val spineKeys = ofAll("spine_keys", lists(arguments, "spine_keys", n, keys))
    val time = arguments.required("time", arguments.text("time"))
    val times = ofEach("times", arguments.texts("times"), time)
    val directions = ofEach("directions", arguments.texts("directions"), Backward.name)
    val tolerances = ofEach("tolerances", arguments.constants("tolerances"), Literal(null))
    val exact = ofEach("exact", arguments.flags("exact"), default = true)
    val ties =
      if (arguments.isNested("ties")) ofAll("ties", arguments.nested("ties").get.map(Option(_)))
      else versions.map(_ => arguments.texts("ties").filterNot(_.forall(_ == null)))
    val tables = versions.indices.map { i =>
      AsOfTable(
        versions(i),
        spineKeys(i),
        keys(i),
        times(i),
        directions(i),
        Some(tolerances(i)),
        exact(i),
        ties(i).map(_.map(order(arguments, _))))
    }
    new AsOfJoinBuilder(
      SparkSession.active,
      spine,
      tables,
      time,
      arguments.text("how").getOrElse("left").toLowerCase(Locale.ROOT),
      arguments.texts("suffixes")).build()
  }

  private def latest(arguments: TableArguments): LogicalPlan = {
    requireTables(arguments, 1, 1)
    LatestRowsBuilder.build(
      SparkSession.active,
      arguments.tables.head,
      keysOf(arguments).head,
      arguments.required("by", arguments.texts("by")).map(order(arguments, _)),
      arguments.texts("ties").map(_.map(order(arguments, _))))
  }

  private val Order = """(?is)(.*?)(?:\s+(asc|desc))?(?:\s+nulls\s+(first|last))?""".r

  /** A column, or an order as in ORDER BY. */
  private def order(arguments: TableArguments, text: String): Expression = text match {
    case Order(column, direction, nulls) =>
      val e = SparkSession.active.sessionState.sqlParser.parseExpression(column).transform {
        // With quotedRegexColumnNames, a quoted name is a pattern. No pattern is an order.
        case UnresolvedRegex(name, table, _) =>
          UnresolvedAttribute(table.toSeq :+ name.replace("``", "`"))
      }
      // ORDER BY reads a column as ascending, and here the greatest value comes first.
      if (direction == null && nulls != null) {
        arguments.fail(s"the order '$text' has NULLS, but neither ASC nor DESC.")
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
    case _ => arguments.fail("a column to order by is NULL.")
  }

  /** The roles: one name for all tables, like `how` in Python, or a role for each table. */
  private def rolesOf(arguments: TableArguments): Seq[InputRole] =
    InputRole
      .ofAll(arguments.texts("roles").getOrElse(Seq("full")), arguments.tables.size)
      .fold(
        name =>
          arguments.fail(
            s"there is no role '$name'; 'roles' is 'full', 'left' or 'inner', or an array that " +
              s"has for each table one of ${InputRole.public.map(_.name).mkString(", ")}."),
        identity)

  private def skewJoin(arguments: TableArguments): LogicalPlan = {
    requireTables(arguments, 1, 1)
    val words = SkewTechniques.optionNames.filterNot(_ == TechniqueOptions.HotKeys)
    val given = TechniqueOptions(
      words.flatMap(name => arguments.word(name).map(name -> _)).toMap,
      arguments.rows(TechniqueOptions.HotKeys).map(_.map(HotKey(_))))
    val joined = arguments.tables.head match {
      // A view hides the aliases of the sides. The query cannot name the view of a client.
      case SubqueryAlias(alias, view: View)
          if view.isTempViewStoringAnalyzedPlan && isOfClient(alias.name) =>
        view.child
      case table => table
    }
    AnalysisHelper.allowInvokingTransformsInAnalyzer {
      SkewJoinBuilder.byTechnique(
        SparkSession.active,
        joined,
        arguments.text("technique").getOrElse(AutoJoin.name),
        given,
        runsJobs = false)
    }
  }

  /** The views that clients of Connect make of DataFrames: PySpark 4 or later, and our package. */
  private val ViewOfClient = "(?i)(?:_pyspark_connect_temp_view_|skewext_)[0-9a-f]{32}".r.pattern

  private def isOfClient(view: String): Boolean = ViewOfClient.matcher(view).matches()

  private def writeBucketed(arguments: TableArguments): LogicalPlan = {
    requireTables(arguments, 1, 1)
    val by = arguments.required("by", arguments.names("by"))
    if (by.isEmpty) arguments.fail("the argument 'by' must have at least one name.")
    val finding = WriteFinding(
      arguments.required("table", arguments.text("table")),
      by,
      arguments.required("buckets", arguments.whole("buckets", 1, Int.MaxValue)).toInt,
      arguments.namesOrFlag("sort", by).getOrElse(by),
      arguments.text("mode").getOrElse("error"),
      arguments.names("partition_by").getOrElse(Nil),
      arguments.text("format"),
      arguments.pairs("options").getOrElse(Map.empty))
    relation(finding, arguments)
  }

  private def skewReport(arguments: TableArguments): LogicalPlan = {
    requireTables(arguments, 1, 2)
    val keys = keysOf(arguments)
    val share = arguments.number("min_share").getOrElse(BigDecimal("0.001"))
    if (share < BigDecimal("0.00001") || share > BigDecimal("0.5")) {
      arguments.fail(s"the argument 'min_share' must be between 0.00001 and 0.5, not $share.")
    }
    val finding = SkewFinding(
      keys,
      arguments.whole("partitions", 1, 1000000).map(_.toInt),
      share.toDouble,
      arguments.flag("sizes").getOrElse(false))
    val compared = KeyPass.compared(SparkSession.active, arguments.tables, keys)._1
    relation(finding, arguments, SkewReport.schema(compared))
  }
}
