package io.github.skewext.facts

import java.io.File
import java.lang.reflect.Modifier
import java.nio.file.Files
import java.util.jar.JarFile

import scala.collection.JavaConverters._

import io.github.skewext.SkewExtensions
import io.github.skewext.asof.AsOfTest
import io.github.skewext.platform.SkewConf
import io.github.skewext.technique.TechniqueTest

import org.apache.spark.network.util.JavaUtils
import org.apache.spark.sql.catalyst.expressions.{AttributeSet, PythonUDF}
import org.apache.spark.sql.catalyst.plans.physical.UnknownPartitioning
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive.{AdaptiveSparkPlanExec, QueryStageExec}
import org.apache.spark.sql.execution.datasources.v2.V2CommandExec
import org.apache.spark.sql.execution.exchange.{ReusedExchangeExec, ShuffleExchangeExec}
import org.apache.spark.sql.functions._
import org.apache.spark.sql.skewext.{SparkShims, TestShims}
import org.apache.spark.sql.types.LongType
import org.apache.spark.sql.{DataFrame, Dataset, Encoder, Encoders}

/**
 * The table of operators, and whether their rows are repeatable: read twice, they are the same. Each row
 * has a query that is planned with the operator. It runs on every line of Spark that has the operator.
 * An operator that a line adds or renames fails the last test until it has its place here.
 */
class RepeatableOperatorsSuite extends TechniqueTest with AsOfTest {

  /** An operator with a query; the columns whose values are repeatable, if not all are. */
  private case class Operator(
      name: String,
      repeatable: Boolean,
      conf: Seq[(String, String)],
      columns: Option[String],
      query: () => DataFrame,
      dependsOnColumns: Boolean = false)

  private var table = Vector.empty[Operator]

  private def same(name: String, conf: (String, String)*)(query: => DataFrame): Unit =
    table :+= Operator(name, repeatable = true, conf, None, () => query)

  private def other(name: String, conf: (String, String)*)(query: => DataFrame): Unit =
    table :+= Operator(name, repeatable = false, conf, None, () => query)

  /** The columns that a query reads may decide which of several rows it is. */
  private def sameIfWhole(name: String)(query: => DataFrame): Unit =
    table :+= Operator(name, repeatable = true, Nil, None, () => query, dependsOnColumns = true)

  private def sameColumn(name: String, column: String)(query: => DataFrame): Unit =
    table :+= Operator(name, repeatable = true, Nil, Some(column), () => query)

  private val Broadcast = "spark.sql.autoBroadcastJoinThreshold" -> "10MB"
  private val Compiled = "spark.sql.codegen.wholeStage" -> "true"
  private val Generated = "spark.sql.codegen.factoryMode" -> "FALLBACK"
  private val Probes = SkewConf.JOIN_ENABLED.key -> "true"
  private val Adaptive = "spark.sql.adaptive.enabled" -> "true"
  private val Static = "spark.sql.adaptive.enabled" -> "false"

  private def rows: DataFrame = spark.range(0, 20, 1, 2).selectExpr("id % 4 AS k", "id AS v")

  private def more: DataFrame = rows.toDF("k", "w")

  private val folder = Files.createTempDirectory("repeatable").toFile

  override protected def beforeAll(): Unit = {
    super.beforeAll()
    rows.write.mode("append").parquet(folder.getPath)
  }

  override protected def afterAll(): Unit =
    try JavaUtils.deleteRecursively(folder)
    finally super.afterAll()

  private def parquet: DataFrame = spark.read.parquet(folder.getPath)

  /** The query, done: its plan is the last one of adaptive execution. */
  private def done(df: DataFrame): DataFrame = {
    df.collect()
    df
  }

  private implicit val longs: Encoder[Long] = Encoders.scalaLong

  private def objects: Dataset[Long] = rows.select("v").as[Long]

  private def unknown: DataFrame = spark.createDataFrame(rows.rdd, rows.schema)

  // As Spark numbers them, in an object of its own.
  private val (batched, pandas) = (100, 200)

  private def pythonUdf(evalType: Int): DataFrame = rows.withColumn(
    "p",
    TestShims.column(
      PythonUDF("f", null, LongType, Seq(SparkShims.expression(col("v"))), evalType, true)))

  private def over(function: String): DataFrame =
    rows.selectExpr("*", s"$function OVER (PARTITION BY k ORDER BY v % 2) AS w")

  private def preserving(a: DataFrame, b: DataFrame, side: String): DataFrame =
    skewJoin(a, b, "k", "full", "broadcast_map", Map("side" -> side))

  // Sources.
  same("RangeExec")(rows)
  same("LocalTableScanExec")(table("k", "(1), (2)"))
  same("FileSourceScanExec")(parquet)
  same("BatchScanExec", "spark.sql.sources.useV1SourceList" -> "")(parquet)
  same("InMemoryTableScanExec")(done(rows.cache()).select("v"))
  same("OneRowRelationExec")(spark.sql("SELECT 1"))
  same("RDDScanExec")(unknown.localCheckpoint())
  same("CommandResultExec")(spark.sql("SHOW TABLES"))
  same("EmptyRelationExec")(done(rows.where("v * 2 < 0").join(more, "k").agg(count(lit(1)))))
  other("RDDScanExec")(unknown)
  other("ExternalRDDScanExec")(spark.createDataset(spark.sparkContext.range(0, 3)).toDF())
  other("RowDataSourceScanExec")(
    spark.baseRelationToDataFrame(new StableRowsSuite.OtherSystem(spark.sqlContext)))

  // One row after the other.
  same("ProjectExec")(rows)
  same("FilterExec")(rows.where("v > 3"))
  same("SortExec")(rows.sort(col("v").desc))
  same("UnionExec")(rows.union(more))
  same("CoalesceExec")(rows.coalesce(1))
  same("ExpandExec")(rows.rollup("k").count())
  same("GenerateExec")(rows.select(explode(array(col("v"), col("k")))))
  same("CollectMetricsExec")(rows.observe("seen", count(lit(1)).as("n")))
  same("BatchEvalPythonExec")(pythonUdf(batched))
  same("ArrowEvalPythonExec")(pythonUdf(pandas))
  same("WholeStageCodegenExec", Compiled, Generated, Static)(rows)
  same("InputAdapter", Compiled, Generated, Static)(rows.groupBy("k").count())
  same("ColumnarToRowExec", Compiled, Generated, Static)(parquet)
  other("SampleExec")(rows.sample(0.5, 1))
  other("LocalLimitExec")(rows.limit(5).where("v > 1"))
  other("GlobalLimitExec")(rows.limit(5).where("v > 1"))
  other("CollectLimitExec", Static)(rows.limit(5))
  other("TakeOrderedAndProjectExec", Static)(rows.sort("k").limit(5))
  other("UnionLoopExec", "spark.sql.cteRecursionLevelLimit" -> "9")(
    spark.sql(
      "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 3) TABLE t"))
  other("SparkScriptTransformationExec")(
    spark.sql("SELECT TRANSFORM(id) USING 'cat' AS (t) FROM range(3)"))
  for (name <- Seq("DeserializeToObjectExec", "MapElementsExec", "SerializeFromObjectExec")) {
    other(name)(objects.map(_ + 1).toDF())
  }
  other("MapPartitionsExec")(objects.mapPartitions(_.take(1)).toDF())
  for (name <- Seq("AppendColumnsExec", "MapGroupsExec")) {
    other(name)(objects.groupByKey(_ % 2).mapGroups((k, all) => k + all.size).toDF())
  }
  other("CoGroupExec") {
    val groups = objects.groupByKey(_ % 2)
    groups.cogroup(groups)((k, a, b) => Iterator(k + a.size + b.size)).toDF()
  }

  // Groups, windows, joins.
  same("HashAggregateExec")(rows.groupBy("k").count())
  same("SortAggregateExec")(rows.groupBy("k").agg(max(col("v").cast("string"))))
  sameColumn("ObjectHashAggregateExec", "k")(rows.groupBy("k").agg(collect_list("v")))
  other("ObjectHashAggregateExec")(rows.groupBy("k").agg(collect_list("v")))
  other("MergingSessionsExec")(
    rows
      .groupBy(session_window(timestamp_seconds(col("v")), "5 seconds"))
      .agg(sum(col("v").cast("double"))))
  same("WindowExec")(over("rank()"))
  other("WindowExec")(over("row_number()"))
  same("WindowGroupLimitExec")(over("rank()").where("w < 2"))
  other("WindowGroupLimitExec")(over("row_number()").where("w < 2"))
  same("SortMergeJoinExec")(rows.join(more.hint("merge"), "k"))
  same("ShuffledHashJoinExec")(rows.join(more.hint("shuffle_hash"), "k"))
  same("BroadcastHashJoinExec", Broadcast)(rows.join(more, "k"))
  same("BroadcastNestedLoopJoinExec", Broadcast)(rows.join(more, col("v") < col("w"), "left"))
  same("CartesianProductExec")(rows.crossJoin(more))

  // Exchanges and stages.
  same("ShuffleExchangeExec")(rows.repartition(3, col("k")))
  other("ShuffleExchangeExec")(rows.repartition(3, rand()))
  same("BroadcastExchangeExec", Broadcast)(rows.join(more, "k"))
  same("AdaptiveSparkPlanExec")(rows.groupBy("k").count())
  same("ShuffleQueryStageExec")(done(rows.groupBy("k").count()))
  same("AQEShuffleReadExec")(done(rows.groupBy("k").count()))
  same("ResultQueryStageExec")(done(rows.groupBy("k").count()))
  same("TableCacheQueryStageExec")(done(rows.where("v < 7").cache().groupBy("k").count()))
  same("BroadcastQueryStageExec", Broadcast)(done(rows.join(more, "k")))
  same("ReusedExchangeExec", Static)(rows.groupBy("k").count().join(rows.groupBy("k").count(), "k"))

  // Ours.
  same("MultiFullJoinExec")(fullJoin("k")(rows, more))
  same("SplitJoinExec")(done(fullJoin("k")(hotFirst(2): _*)))
  same("KeySketchExec")(fullJoin("k")(rows, more))
  same("ColumnShuffleOfRowsExec")(fullJoin("k")(rows, more))
  same("BuildProbeJoinExec", Probes)(rows.join(more, "k"))
  other("BuildProbeJoinExec", Probes)(rows.join(more.withColumn("r", rand(3)), "k"))
  same("BroadcastRangeJoinExec", Broadcast)(
    rows.join(more.toDF("lo", "hi"), col("v").between(col("lo"), col("hi"))))
  same("BroadcastRowsExec", Broadcast, Adaptive)(
    done(rows.join(more.where("w < 9").toDF("lo", "hi"), col("v").between(col("lo"), col("hi")))))
  same("RangeProductExec")(rows.join(more.toDF("lo", "hi"), col("v").between(col("lo"), col("hi"))))
  same("SeparateInput", Probes, Static, Compiled)(
    rows.join(more, "k").join(rows.toDF("k", "u"), "k"))
  for (name <- Seq("ColumnShuffleOfBatchesExec", "ColumnarFilterProjectExec")) {
    same(name, Compiled, Generated)(fullJoin("k")(parquet.where("v > 0"), parquet.toDF("k", "w")))
  }
  same("AsOfJoinExec")(asOf(rows, "v")(Versions(more, "w")))
  same("AsOfJoinExec")(done(asOf(skewed(0, 800, hot = 2), "v0")(Versions(more, "w"))))
  other("AsOfJoinExec")(asOf(rows, "v")(Versions(more.withColumn("r", rand(3)), "w")))
  same("BroadcastAsOfJoinExec")(asOf(rows, "v")(Versions(broadcast(more), "w")))
  same("LatestRowsExec")(latest(rows, "k")(col("v"))())
  sameIfWhole("LatestRowsExec")(latest(rows.withColumn("x", col("v") % 2), "k")(col("x"))(col("x")))
  sameIfWhole("AsOfJoinExec")(
    asOf(rows, "v")(Versions(more.withColumn("x", col("w")), "w", ties = Seq(col("k")))))
  other("LatestRowsExec")(latest(rows.withColumn("r", rand(3)), "k")(col("v"))())
  same("SaltKeysExec")(
    skewJoin(rows, more, "k", "inner", "salted", Map("salts" -> "2"), Seq(Seq(lit(3L)))))
  same("MarkedBroadcastJoinExec")(preserving(rows, more, "right"))
  other("MarkedBroadcastJoinExec")(preserving(rows, more, "right").withColumn("r", rand(3)))

  /** Operators without a query, none of whose rows are taken for repeatable. */
  private val withoutQuery = Set(
    // Rows of objects, and of Python's and R's functions over partitions or groups.
    "AppendColumnsWithObjectExec AggregateInPandasExec ArrowAggregatePythonExec WindowInPandasExec",
    "ArrowWindowPythonExec ArrowEvalPythonUDTFExec BatchEvalPythonUDTFExec MapInPandasExec",
    "PythonMapInArrowExec MapInArrowExec AttachDistributedSequenceExec PythonWorkerLogsExec",
    "FlatMapGroupsInPandasWithStateExec FlatMapGroupsInPandasExec FlatMapGroupsInArrowExec",
    "FlatMapCoGroupsInPandasExec FlatMapCoGroupsInArrowExec FlatMapGroupsInRExec",
    "FlatMapGroupsInRWithArrowExec MapPartitionsInRWithArrowExec MapPartitionsExternalUDFExec",
    // The end of a plan, or a part of a command or of planning.
    "CollectTailExec DataWritingCommandExec ExecutedCommandExec WriteFilesExec MultiResultExec",
    "BegunBroadcast",
    "MergeRowsExec ExplainOnlySparkPlan PlanLater DebugExec SkewJoinChildWrapper",
    "WriteToContinuousDataSourceExec",
    // Of streams, of sessions, of storage partitions; reports and parts of ours; new in Spark 4.3.
    "ContinuousScanExec MicroBatchScanExec RealTimeStreamScanExec UpdatingSessionsExec",
    "GroupPartitionsExec FindingExec OneFile SortMergeAsOfJoinExec BinByExec ProjectAggregationBufferExec")
    .flatMap(_.split(' '))

  /** Repeatable, but planned only by other software, or by sources that some lines have. */
  private val repeatableWithoutQuery =
    Set("RowToColumnarExec", "SortedFilesExec", "SlicedBucketsExec", "AlignPartitionsExec")

  /** All concrete operators of the jar, or folder, that a class is in. */
  private def operatorsBeside(of: Class[_]): Seq[Class[_]] = {
    val home = new File(of.getProtectionDomain.getCodeSource.getLocation.toURI)
    def below(file: File): Seq[File] =
      if (file.isDirectory) file.listFiles().toSeq.flatMap(below) else Seq(file)
    val names =
      if (home.isDirectory) below(home).map(file => home.toURI.relativize(file.toURI).getPath)
      else {
        val jar = new JarFile(home)
        try jar.entries.asScala.map(_.getName).toVector
        finally jar.close()
      }
    for {
      name <- names if name.endsWith(".class") && name.contains("/sql/") || name.contains("skewext")
      found = Class.forName(
        name.stripSuffix(".class").replace('/', '.'),
        false,
        getClass.getClassLoader)
      if classOf[SparkPlan].isAssignableFrom(found) && !Modifier.isAbstract(found.getModifiers)
    } yield found
  }

  private lazy val operators: Seq[Class[_]] =
    operatorsBeside(classOf[SparkPlan]) ++ operatorsBeside(classOf[SkewExtensions])

  private def nameOf(of: Class[_]): String = of.getName.split("[.$]").last

  private def isNoInput(of: Class[_]): Boolean =
    classOf[V2CommandExec].isAssignableFrom(of) || classOf[BaseSubqueryExec].isAssignableFrom(of) ||
      of.getName.contains(".streaming.")

  private def nodes(plan: SparkPlan): Seq[SparkPlan] = plan +: (plan match {
    case adaptive: AdaptiveSparkPlanExec => nodes(adaptive.executedPlan)
    case stage: QueryStageExec => nodes(stage.plan)
    case reused: ReusedExchangeExec => nodes(reused.child)
    case node => node.children.flatMap(nodes)
  })

  for ((row, i) <- table.zipWithIndex) {
    val Operator(name, repeatable, conf, columns, query, dependsOnColumns) = row
    val verdict =
      (if (repeatable) "repeatable" else "not repeatable") + columns.fold("")(" in " + _)
    test(s"${i + 1}: $name is $verdict") {
      assume(operators.exists(nameOf(_) == name), "this line of Spark does not have it")
      withSQLConf(conf: _*) {
        val df = query()
        val plan = df.queryExecution.executedPlan
        assert(nodes(plan).exists(node => nameOf(node.getClass) == name), plan)
        val shown = plan.output.filter(a => columns.forall(_ == a.name))
        assert(StableRows.areIn(plan, AttributeSet(shown)) === repeatable, plan)
        if (columns.isEmpty) {
          val inCopies = StableRows.areInCopies(spark, df.queryExecution.commandExecuted)
          assert(inCopies === (repeatable && !dependsOnColumns), plan)
        }
      }
    }
  }

  test("a shuffle that divides rows in a way of its own is not repeatable") {
    val own = ShuffleExchangeExec(UnknownPartitioning(2), rows.queryExecution.sparkPlan)
    assert(!StableRows.areIn(own))
    assert(!StableRows.areIn(own, AttributeSet(own.output.take(1))))
  }

  test("a preserving broadcast join of the result of another one", Slow) {
    withTempPath { path =>
      // With null keys and unmatched rows on each side.
      def file(i: Int): DataFrame = {
        skewed(i, 60 - i).write.parquet(s"$path/$i")
        spark.read.parquet(s"$path/$i")
      }
      val Seq(a, b, c) = (0 to 2).map(file)
      for (side <- Seq("left", "right")) {
        val df = preserving(preserving(a, b, side), c, side)
        assertStock(df, a.join(b, Seq("k"), "full").join(c, Seq("k"), "full"))
        assert(made(df).distinct === Seq("broadcast_map"))
      }
    }
  }

  test("every operator of this line is in the table") {
    val known = table.map(_.name).toSet ++ withoutQuery ++ repeatableWithoutQuery
    val unknown = operators.filterNot(of => isNoInput(of) || known(nameOf(of)))
    assert(unknown.isEmpty, "Say of each whether its rows are repeatable.")
  }
}
