package io.github.skewext

import java.util.concurrent.ConcurrentLinkedQueue
import java.util.concurrent.atomic.AtomicInteger

import scala.collection.JavaConverters._
import scala.collection.mutable
import scala.util.Random

import io.github.skewext.join.exec.MultiJoinExec
import io.github.skewext.join.optimizer.{DropUnusedInputs, PropagateEmptyInputs}
import io.github.skewext.platform.SkewConf
import org.scalactic.source.Position
import org.scalatest.Tag

import org.apache.spark.SparkConf
import org.apache.spark.scheduler.{SparkListener, SparkListenerJobStart}
import org.apache.spark.sql.catalyst.plans.logical.{LocalRelation, LogicalPlan, Range}
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanHelper
import org.apache.spark.sql.execution.exchange.ShuffleExchangeLike
import org.apache.spark.sql.execution.{QueryExecution, SparkPlan}
import org.apache.spark.sql.functions.col
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.skewext.{SqlInternals, TestSessions}
import org.apache.spark.sql.test.SharedSparkSession
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.QueryExecutionListener
import org.apache.spark.sql.{Column, DataFrame, QueryTest, Row}

/**
 * A session with the extension on, and the two oracles: the same logical plan with skewext switched
 * off, which Spark plans as its own joins, and for full outer joins also a chain of `DataFrame.join`s
 * that shares no code with us.
 */
trait MultiJoinTest extends QueryTest with SharedSparkSession with AdaptiveSparkPlanHelper {

  override protected def sparkConf: SparkConf =
    super.sparkConf
      .set("spark.sql.extensions", classOf[SkewExtensions].getName)
      .set("spark.ui.enabled", "false")
      // Spark's writer for few partitions opens a file for each of them; a page of its own size, 16 MB, is
      // much for a sort of a few rows.
      .set("spark.shuffle.sort.bypassMergeThreshold", "1")
      .set("spark.buffer.pageSize", "1m")
      // Each query, and each step of an adaptive one, tells listeners its plan as text.
      .set(SQLConf.UI_EXPLAIN_MODE.key, "simple")
      // Spark 4.1 and later remove the shuffles of ended queries in tests, which some tests lose.
      .set("spark.sql.classic.shuffleDependency.fileCleanup.enabled", "false")
      // All inputs here are small.
      .set(SkewConf.MULTI_JOIN_BROADCAST.key, "false")
      // Joins are tested as they are written, also one of Spark's above ours, or ours above ours.
      .set(SkewConf.MULTI_JOIN_REWRITE.key, "false")
      .set(SkewConf.JOIN_ENABLED.key, "false")
      .set(SkewConf.LATEST_REWRITE.key, "false")
      .setAll(if (generatesCode) Nil else Interpreted)

  /** Whether `make test-all` runs, which tries all cases of what `make test` tries some of. */
  protected def testAll: Boolean = sys.env.get("SKEWEXT_TEST_ALL").contains("1")

  /** So many of the cases, chosen as it happens but always the same; `make test-all` has them all. */
  protected def some[A](n: Int, cases: Seq[A]): Seq[A] =
    if (testAll) cases else new Random(n).shuffle(cases).take(n)

  /** A fixed sample in which each value of each column occurs; `make test-all` has all cases. */
  protected def covering[A <: Product](cases: Seq[A]): Seq[A] = {
    def values(of: A) = of.productIterator.zipWithIndex.toSet
    def chosen(from: Seq[A], missing: Set[(Any, Int)]): Seq[A] =
      if (missing.isEmpty) Nil
      else {
        val next = from.maxBy(values(_).count(missing))
        next +: chosen(from, missing -- values(next))
      }
    if (testAll) cases
    else chosen(new Random(cases.size).shuffle(cases), cases.flatMap(values).toSet)
  }

  /** Whether tests run that take long. */
  protected def testSlow: Boolean =
    testAll || sys.env.get("SKEWEXT_TEST_SLOW").contains("1")

  /** The cases of a slow test: none in `make test`. */
  protected def slow[A](cases: A*): Seq[A] = if (testSlow) cases else Nil

  protected def Slow: io.github.skewext.Slow.type = io.github.skewext.Slow

  private def leavesOut(test: String, tags: Seq[Tag]): Boolean =
    sys.env.get("SKEWEXT_TEST_QUICK").contains("1") && !testSlow &&
      tags.exists { case slow: SlowTag => slow.includes(test); case _ => false }

  /** `make test` leaves out slow tests. */
  override protected def test(name: String, tags: Tag*)(body: => Any)(implicit
      position: Position): Unit =
    if (leavesOut(name, tags)) {
      ignore(name, tags: _*)(body)
      allRun = false
    } else {
      super.test(name, tags: _*)(body)
    }

  private var allRun = true

  /** A test of what all tests before it have seen. */
  protected def testOfAll(name: String)(body: => Any): Unit =
    if (allRun) test(name)(body) else ignore(name)(body)

  private var turns = 0

  /** With adaptive execution and without it: in turns, and both each time in `make test-all`. */
  protected def withAdaptive(body: => Unit): Unit = {
    val ways = Seq("true", "false")
    turns += 1
    for (adaptive <- if (testAll) ways else ways.drop(turns % 2).take(1)) {
      withClue(s"adaptive execution $adaptive: ") {
        withSQLConf(SQLConf.ADAPTIVE_EXECUTION_ENABLED.key -> adaptive)(body)
      }
    }
  }

  /** The rows, with some that take a while. */
  protected def slowly(df: DataFrame, id: String): DataFrame =
    df.selectExpr("*", s"if($id % 100 = 0, reflect('java.lang.Thread', 'sleep', 300L), null) AS w")

  /**
   * Whether queries are compiled, which takes longer than such small queries run. Suites about
   * generated code always do it, and `make test-all` does it everywhere.
   */
  protected def generatesCode: Boolean = testAll

  /** A query where generated code is what is tested. */
  protected def inGeneratedCode(body: => Unit): Unit = withSQLConf(GeneratedCode: _*)(body)

  protected def GeneratedCode: Seq[(String, String)] = Seq(
    "spark.sql.codegen.wholeStage" -> "true",
    "spark.sql.codegen.factoryMode" -> "CODEGEN_ONLY",
    "spark.sql.codegen.fallback" -> "false")

  // It warns of the threads of Spark's own pools, after every suite.
  override protected def doThreadPostAudit(): Unit = ()

  // Small data: a few partitions are enough to tell right from wrong.
  protected val shufflePartitions = 3

  override protected def beforeAll(): Unit = {
    super.beforeAll()
    spark.conf.set("spark.sql.shuffle.partitions", shufflePartitions.toLong)
    // Spark looks for its caller at each RDD and each query, in a stack that is deep here.
    spark.sparkContext.setCallSite(suiteName)
  }

  protected val Off: (String, String) = SkewConf.ENABLED.key -> "false"

  protected def Interpreted: Seq[(String, String)] =
    Seq("spark.sql.codegen.wholeStage" -> "false", "spark.sql.codegen.factoryMode" -> "NO_CODEGEN")

  // Oracles need no speed: they run in the way that starts soonest, with as few tasks as may be.
  private def AsOracle: Seq[(String, String)] = Interpreted ++ Seq(
    SQLConf.ADAPTIVE_EXECUTION_ENABLED.key -> "false",
    SQLConf.SHUFFLE_PARTITIONS.key -> "1",
    SQLConf.LEAF_NODE_DEFAULT_PARALLELISM.key -> "1",
    Off)

  /** Joins stay joins, whatever is known of inputs without rows. */
  protected val KeepEmptyInputs: Seq[(String, String)] = Seq(
    SQLConf.OPTIMIZER_EXCLUDED_RULES.key ->
      Seq(PropagateEmptyInputs, DropUnusedInputs).map(_.ruleName).mkString(","),
    SQLConf.ADAPTIVE_OPTIMIZER_EXCLUDED_RULES.key -> PropagateEmptyInputs.AtRuntime.ruleName)

  /** `table("k, v", "(1, 'a'), (2, null)")`: an inline table. */
  protected def table(columns: String, values: String): DataFrame =
    spark.sql(s"SELECT * FROM VALUES $values AS t($columns)")

  /** The rows in partitions by the keys, sorted by them, and cached like this. */
  protected def sortedBy(df: DataFrame, keys: String*): DataFrame = {
    val partitions = spark.conf.get("spark.sql.shuffle.partitions").toInt
    df.repartition(partitions, keys.map(col): _*).sortWithinPartitions(keys.map(col): _*).cache()
  }

  /** A DataFrame of rows that are objects until Spark converts them. */
  protected def frame(schema: String, partitions: Int = 2)(rows: Row*): DataFrame =
    spark.createDataFrame(
      spark.sparkContext.parallelize(rows, partitions),
      StructType.fromDDL(schema))

  protected def multiJoin(
      inputs: Seq[DataFrame],
      on: Seq[String],
      keys: Seq[Seq[String]] = Nil,
      roles: Seq[String] = Nil,
      suffixes: Seq[String] = null,
      indicator: String = null): DataFrame =
    Joins.multiJoin(
      inputs.zipAll(keys, null, Nil).map { case (df, names) => JoinInput(df, names) },
      on,
      if (roles.isEmpty) Seq("full") else roles,
      Option(suffixes),
      Option(indicator))

  protected def fullJoin(on: String*)(inputs: DataFrame*): DataFrame = multiJoin(inputs, on)

  protected def stockChain(on: String*)(inputs: DataFrame*): DataFrame =
    inputs.reduceLeft(_.join(_, on, "full"))

  protected def operators(df: DataFrame): Seq[MultiJoinExec] = operators(
    df.queryExecution.executedPlan)

  protected def operators(plan: SparkPlan): Seq[MultiJoinExec] =
    collectWithSubqueries(plan) { case join: MultiJoinExec => join }

  /** The one multi-way join of a plan. */
  protected def operator(df: DataFrame): MultiJoinExec = operators(df) match {
    case Seq(one) => one
    case several => fail(s"${several.size} multi-way joins in ${df.queryExecution.executedPlan}")
  }

  protected def exchanges(df: DataFrame): Seq[ShuffleExchangeLike] =
    collectWithSubqueries(df.queryExecution.executedPlan) { case e: ShuffleExchangeLike => e }

  /** The same analyzed plan in a new query, which is optimized and planned under the conf of now. */
  protected def again(df: DataFrame): DataFrame =
    SqlInternals.dataFrame(spark, df.queryExecution.analyzed)

  /** How many jobs are started meanwhile. */
  protected def jobsOf(body: => Unit): Int = {
    val jobs = new AtomicInteger
    val listener = new SparkListener {
      override def onJobStart(job: SparkListenerJobStart): Unit = jobs.incrementAndGet()
    }
    TestSessions.drainEvents(spark)
    spark.sparkContext.addSparkListener(listener)
    try {
      body
      TestSessions.drainEvents(spark)
    } finally spark.sparkContext.removeSparkListener(listener)
    jobs.get
  }

  /** The plans of the queries that are run meanwhile, also inside of commands. */
  protected def plansOf(body: => Unit): Seq[SparkPlan] = {
    val plans = new ConcurrentLinkedQueue[SparkPlan]
    val listener = new QueryExecutionListener {
      override def onSuccess(name: String, query: QueryExecution, nanos: Long): Unit =
        plans.add(query.executedPlan)
      override def onFailure(name: String, query: QueryExecution, error: Exception): Unit = ()
    }
    spark.listenerManager.register(listener)
    try {
      body
      TestSessions.drainEvents(spark)
    } finally spark.listenerManager.unregister(listener)
    plans.asScala.toSeq
  }

  /** The keys 0 to 999 with a value. Spark expects ten of them until their shuffle has run. */
  protected def underestimated(value: Column): DataFrame = spark
    .range(10)
    .selectExpr("explode(sequence(id * 100, id * 100 + 99)) AS k")
    .groupBy("k")
    .agg(value)

  private val oracles = mutable.Map.empty[Any, Seq[Row]]

  /** The rows of the same query when it is planned as Spark's joins; run once if they are fixed. */
  protected def rowsWhenOff(df: DataFrame): Seq[Row] = {
    var rows: Seq[Row] = Nil
    withSQLConf(AsOracle: _*) {
      val off = again(df)
      def run: Seq[Row] = {
        val found = off.collect().toSeq
        assert(operators(off).isEmpty, "switched off, our operator is still in the plan")
        found
      }
      val plan = off.queryExecution.analyzed
      val settings = spark.conf.getAll.filterNot(_._1.matches(NotOfOracles))
      rows =
        if (isFixed(plan)) oracles.getOrElseUpdate((plan.canonicalized, settings), run) else run
    }
    rows
  }

  // Files and random numbers may give a plan other rows the next time.
  private def isFixed(plan: LogicalPlan): Boolean =
    plan.deterministic && plan
      .collectWithSubqueries { case node if node.children.isEmpty => node }
      .forall(node => node.isInstanceOf[Range] || node.isInstanceOf[LocalRelation])

  private val NotOfOracles = "spark\\.(skewext|sql\\.adaptive|sql\\.shuffle)\\..*"

  protected def assertSameRows(actual: Seq[Row], expected: Seq[Row], oracle: String): Unit =
    QueryTest.sameRows(inOrder(expected), inOrder(actual), isSorted = true).foreach { message =>
      fail(s"The rows differ from those of $oracle.$message")
    }

  // As the comparison itself would sort them, which makes a text of both rows at each step.
  private def inOrder(rows: Seq[Row]): Seq[Row] =
    rows.map(row => (QueryTest.prepareRow(row).toString, row)).sortBy(_._1).map(_._2)

  /** Checks that the operator runs, and that its rows are those of the plan without it. */
  protected def checkJoin(df: DataFrame): Seq[Row] = {
    val rows = df.collect().toSeq
    assert(
      operators(df).nonEmpty,
      s"not planned as our operator: ${df.queryExecution.executedPlan}")
    assertSameRows(rows, rowsWhenOff(df), "the same query with skewext off")
    rows
  }

  /**
   * The rows, which are those of the plan without us, whether an operator of ours is left or not. What
   * matters is the optimized plan: it is run in the way that starts soonest.
   */
  protected def checkSame(df: DataFrame): Seq[Row] = {
    var rows: Seq[Row] = Nil
    withSQLConf(Interpreted :+ "spark.sql.adaptive.enabled" -> "false": _*) {
      rows = again(df).collect().toSeq
      assertSameRows(rows, rowsWhenOff(df), "the same query with skewext off")
    }
    rows
  }

  /** The full outer join of the inputs, checked against both oracles, columns included. */
  protected def checkFullJoin(on: String*)(inputs: DataFrame*): DataFrame = {
    val df = fullJoin(on: _*)(inputs: _*)
    val rows = checkJoin(df)
    val stock = stockChain(on: _*)(inputs: _*)
    withSQLConf(AsOracle: _*) {
      assertSameRows(rows, stock.collect().toSeq, "Spark's chain of full outer joins")
    }
    assert(operators(stock).isEmpty)
    assert(describe(df) === describe(stock))
    df
  }

  private def describe(df: DataFrame): Seq[String] =
    df.schema.map(f => s"${f.name} ${f.dataType.catalogString}")
}
