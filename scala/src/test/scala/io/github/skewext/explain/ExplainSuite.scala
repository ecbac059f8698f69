package io.github.skewext.explain

import io.github.skewext.PythonApi
import io.github.skewext.asof.AsOfTest
import io.github.skewext.join.probe.ProbeReason
import io.github.skewext.join.range.RangeReason
import io.github.skewext.join.{JoinOrigin, MultiFullJoin}
import io.github.skewext.platform.{GuardedRule, Reason, SkewConf}
import io.github.skewext.rewrite.RewriteReason
import io.github.skewext.skew.plan.SkewReason

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.{Join, LogicalPlan}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.{SparkPlan, UnaryExecNode}
import org.apache.spark.sql.functions._
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.skewext.{SqlInternals, TestSessions}

private case class PhotonScanExec(child: SparkPlan) extends UnaryExecNode {
  override def output: Seq[Attribute] = child.output
  override protected def doExecute(): RDD[InternalRow] = child.execute()
  override protected def withNewChildInternal(changed: SparkPlan): PhotonScanExec =
    copy(child = changed)
}

/** What `explain` says of the joins of a query. */
class ExplainSuite extends ExplainTest with AsOfTest {

  private class FailingRule extends Rule[LogicalPlan] {
    override val ruleName: String = "a rule that fails"
    override def apply(plan: LogicalPlan): LogicalPlan =
      throw new IllegalStateException("such a plan\nwas never seen")
  }

  test("a join by name that is planned but not run") {
    val ran = udf((v: Long) => if (v >= 0) throw new IllegalStateException("run") else v)
    val df = three.withColumn("x", ran(col("v0")))
    val join = one(df)
    assert(join.title === "full outer join of 3 inputs on [k]")
    assert(join.place === Place.Query)
    assert(join.operators === Seq("MultiFullJoin"))
    assert(join.origin.status === Origin.AskedFor)
    assert(join.inputs.map(_.role) === Seq.fill(3)(Some("optional")))
    assert(join.inputs.map(_.source) === Seq.fill(3)("Range"))
    assert(join.execution.get.exchanges === 3)
    assert(join.execution.get.columns === 3)
    assert(join.execution.get.counted === 3)
    assert(join.execution.get.nullKeys === "spread over all tasks")
    assert(join.execution.get.rows === "hash")
    assert(join.skew.map(_.status) === Seq(ExplainedSkew.NotRun))
    // Explaining changes nothing: the plan is still the one that was explained, and not run.
    val plan = df.queryExecution.executedPlan
    assert(explain(df).joins === Seq(join))
    assert(df.queryExecution.executedPlan eq plan)
    intercept[Exception](df.collect())
    assert(one(df).title === join.title)
  }

  test("as-of joins, and the latest rows of keys") {
    val versions = Versions(skewed(2, 60), "v2", "nearest", exact = false)
    val df = asOf(skewed(0, 1600, hot = 2), "v0")(Versions(skewed(1, 60), "v1"), versions)
    val join = one(df.where("k > 2"))
    assert(
      join.title === "left as-of join with 2 tables on [k] at v0: v1 backward; " +
        "v2 nearest, not at the same time")
    assert(join.operators === Seq("AsOfJoin"))
    assert(join.origin.status === Origin.AskedFor)
    assert(join.inputs.map(_.role) === Seq("spine", "versions", "versions").map(Some(_)))
    assert(join.inputs.map(_.key) === Seq.fill(3)(Seq("k")))
    assert(join.inputs.forall(_.filters.exists(_.contains("> 2"))), join)
    assert(join.execution.map(e => (e.exchanges, e.columns)) === Some((3, 3)))
    assert(join.skew.map(_.status) === Seq(ExplainedSkew.NotRun))
    df.collect()
    assert(
      one(df).skew.map(s => (s.status, s.partitions, s.pieces > 1)) ===
        Seq((ExplainedSkew.Split, 1, true)))
    assert(
      ExplanationText
        .of(JoinOutlines.of(df.queryExecution.executedPlan, spark))
        .contains("skew: split, 1 partition in"))
    val report = PythonApi.queryReport(df)
    val told = Seq("\"operator\":\"AsOfJoin\"", "\"explained\":[\"left as-of join with 2 tables")
    assert(told.forall(report.contains), report)
    val even = asOf(skewed(0, 60), "v0")(versions)
    even.collect()
    assert(
      one(even).skew.map(s => (s.status, s.text)) ===
        Seq((ExplainedSkew.Whole, SkewReason.NotSkewed.text)))
    val days = skewed(1, 60).selectExpr("k", "DATE'2024-01-01' + cast(v1 AS int) AS day")
    val times = skewed(0, 60).selectExpr("k", "timestamp_seconds(v0) AS at")
    assert(
      one(
        asOf(times, "at")(Versions(days, "day"))).title === "left as-of join with 1 table on [k] " +
        "at at: day (a date, compared as midnight at its beginning) backward")
    val newest = one(latest(skewed(1, 60), "k")(col("v1"))(col("s1")))
    assert(newest.title === "latest row of each key [k] by v1, s1")
    assert(newest.skew.isEmpty && newest.execution.map(_.exchanges) === Some(1))
  }

  test("predicates pushed into the inputs and predicates written there") {
    val above = three.where("k > 5")
    val join = one(above)
    assert(join.inputs.forall(_.filters.exists(_.contains("> 5"))), join)
    val own = join.inputs(1).filters.filterNot(_.contains("> 5"))
    assert(own.size === 1 && own.head.contains("> 3"), join.inputs(1))
    assert(join.inputs(0).filters.forall(_.contains("> 5")), join.inputs(0))
    assert(one(three).inputs.map(_.filters.size) === Seq(0, 1, 0), one(three))
    // No row with a null key can come out of an inner join.
    val inner =
      multiJoin(Seq(skewed(0, 9), skewed(1, 9)), Seq("k"), roles = Seq.fill(2)("required"))
    assert(one(inner).inputs.forall(_.filters.exists(_.contains("IS NOT NULL"))), one(inner))
    assert(one(inner).execution.get.nullKeys === "none in the result")
  }

  test("filters that are pushed to files") {
    withTempPath { path =>
      val dir = path.getCanonicalPath
      def rows(i: Int) = spark.range(20).selectExpr("int(id % 5) AS k", s"id AS v$i")
      rows(0).write.partitionBy("k").parquet(s"$dir/t0")
      rows(1).write.parquet(s"$dir/t1")
      val tables = Seq("t0", "t1").map(name => spark.read.parquet(s"$dir/$name"))
      val join = one(fullJoin("k")(tables: _*).where("k = 3"))
      assert(join.inputs.map(_.source) === Seq("parquet t0", "parquet t1"))
      assert(join.inputs(0).read.exists(r => r.startsWith("partitions: ") && r.contains("3")))
      assert(join.inputs(1).read.exists(r => r.startsWith("row groups: ") && r.contains("3")))
      assert(join.inputs.forall(_.filters.exists(_.endsWith("= 3"))), join.inputs)
    }
  }

  test("rewritten, and left alone: what rules have left on the nodes") {
    val rewritten = three
    rewritten.queryExecution.optimizedPlan.foreach {
      case join: MultiFullJoin => JoinOrigin.set(join, JoinOrigin.Rewritten("2 full outer joins"))
      case _ =>
    }
    assert(one(rewritten).origin.status === Origin.Rewritten)
    assert(one(rewritten).origin.text === "2 full outer joins became one operator")
    assert(
      rewritten.queryExecution.toString.contains("3 inputs, rewritten from 2 full outer joins"))
    rewritten.collect()
    assert(one(rewritten).origin.status === Origin.Rewritten)

    val alone = stock(stock(left(), "full").drop("k"), "full")
    alone.queryExecution.optimizedPlan.foreach {
      case join: Join =>
        RewriteReason.set(join, RewriteReason.PartialKey("l = k"))
      case _ =>
    }
    for (run <- Seq(false, true)) {
      if (run) alone.collect()
      val origin = one(alone).origin
      assert(origin.status === Origin.LeftAlone)
      assert(origin.text === RewriteReason.PartialKey.text)
      assert(origin.detail === Some("l = k"))
      assert(origin.advice === Some(RewriteReason.PartialKey.advice))
    }
  }

  test("SQL: rewritten, pushed and split, or why not", Slow) {
    skewed(0, 800, hot = 2).createOrReplaceTempView("t0")
    Seq(1, 2).foreach(i => skewed(i, 60).createOrReplaceTempView(s"t$i"))
    val from = "SELECT k, v0, v1, v2 FROM t0 FULL JOIN t1 USING (k) FULL JOIN t2 USING (k)"
    byRow {
      val chain = spark.sql(from)
      assert(
        one(chain).origin ===
          Origin(Origin.Rewritten, "2 full outer joins became one operator"))
      assert(one(chain).title === "full outer join of 3 inputs on [k]")
      assert(one(chain).inputs.forall(_.filters.isEmpty), one(chain))
      checkSplit(chain)
      assert(one(chain).skew.map(_.status) === Seq(ExplainedSkew.Split))
      assert(one(chain).origin.status === Origin.Rewritten)
    }
    val pushed = one(spark.sql(s"$from WHERE k = 5"))
    assert(pushed.inputs.forall(_.filters.exists(_.contains("= 5"))), pushed.inputs)

    // Without a projection above, Spark makes new joins of the same kind in its last rules.
    for (columns <- Seq("v0, v1, v2", "*"); run <- Seq(false, true)) {
      val first = spark.sql(
        s"SELECT $columns FROM t0 FULL JOIN t1 ON t0.k = t1.k FULL JOIN t2 ON t0.k = t2.k")
      if (run) first.collect()
      val origin = one(first).origin
      // When it has run, what was done comes first.
      val (status, text) =
        if (run) (Origin.Split, "several tasks share its skewed partitions; not rewritten: ")
        else (Origin.LeftAlone, "")
      assert(origin.status === status)
      assert(origin.text === text + RewriteReason.PartialKey.text)
      assert(origin.detail.exists(_.contains("k")))
      assert(origin.advice === Some(RewriteReason.PartialKey.advice))
      assert(first.queryExecution.optimizedPlan.collect { case j: MultiFullJoin => j }.isEmpty)
    }
  }

  test("advice for joins of few inputs") {
    (0 until 3).foreach(i => skewed(i, 60).createOrReplaceTempView(s"t$i"))
    val two = Seq("FULL", "LEFT", "LEFT SEMI").map(t => s"SELECT * FROM t0 $t JOIN t1 USING (k)") ++
      Seq("t0.k <=> t1.k", "t0.k < t1.k", "t0.k = t1.k AND v0 < v1").map { on =>
        s"SELECT * FROM t0 FULL JOIN t1 ON $on"
      }
    def reason(query: String) = {
      val origin = one(spark.sql(query)).origin
      assert(origin.status === Origin.LeftAlone)
      (origin.text, origin.advice)
    }
    def whole(reason: Reason) = (reason.text, Some(reason.advice))
    for (query <- two) {
      // That one has no equal keys.
      val why =
        if (query.endsWith("t0.k < t1.k")) RangeReason.OneSided else ProbeReason.SwitchedOff
      assert(reason(query) === whole(why), query)
    }
    val three = "SELECT * FROM t0 JOIN t1 USING (k) JOIN t2 USING (k)"
    assert(reason(three) === whole(RewriteReason.NoShuffleSaved))
  }

  test("Spark's joins that follow each other are one entry") {
    val df = stock(stock(left(), "inner").drop("k"), "left_semi").where("l > 1")
    val join = one(df)
    // Spark has put the semi join below the other.
    assert(join.title === "SortMergeJoin inner [l = k], SortMergeJoin left semi [l = k]")
    assert(join.operators.size === 2)
    assert(join.inputs.size === 3)
    assert(join.execution.isEmpty)
    withSQLConf("spark.sql.codegen.wholeStage" -> "true") {
      val run = again(df)
      run.collect()
      assert(one(run).copy(skew = Nil) === join.copy(skew = Nil))
      assert(one(run).skew.map(_.status) === Seq(ExplainedSkew.Whole, ExplainedSkew.Whole))
    }
    // An aggregate makes other rows.
    val grouped = stock(stock(left(), "inner").groupBy("l").agg(max("v1").as("m")), "inner")
    val joins = explain(grouped).joins
    assert(joins.map(_.inputs.size) === Seq(2, 2))
    assert(joins.head.inputs.map(_.source).contains("aggregate of join 2"))
  }

  test("small inputs beside a large one are broadcast") {
    withSQLConf(
      SkewConf.MULTI_JOIN_BROADCAST.key -> "true",
      "spark.sql.autoBroadcastJoinThreshold" -> "1MB") {
      val df = multiJoin(
        Seq(skewed(0, 60), skewed(1, 20), skewed(2, 20)),
        Seq("k"),
        roles = Seq("required", "optional", "excluded"))
      for (run <- Seq(false, true)) {
        if (run) df.collect()
        val join = one(df)
        assert(join.title === "join of 3 inputs on [k]")
        assert(join.operators === Seq("BroadcastHashJoin", "BroadcastHashJoin"))
        assert(join.origin.status === Origin.AskedFor)
        assert(join.origin.text.contains("broadcast"))
        assert(join.skew.isEmpty)
      }
    }
  }

  test("columns that use other columns twice, again and again") {
    val stacked = (0 until 40).foldLeft(skewed(0, 60)) { (rows, i) =>
      rows.withColumn("s0", when(col("s0") === s"$i", "x").otherwise(col("s0")))
    }
    val cached = stacked.cache()
    try {
      val join = one(cached.where("s0 = 'x'").join(skewed(1, 60), Seq("k"), "full"))
      assert(join.inputs.head.filters.exists(_.contains("s0 = 'x'")), join)
    } finally cached.unpersist(blocking = true)
  }

  test("a lambda over a field of a null") {
    val tagged = skewed(0, 60).selectExpr("*", "CAST(NULL AS struct<a: int>) AS x")
    val matching = tagged.where("coalesce(exists(array(1, 2), e -> x.a < e + k), false)")
    val join = one(matching.join(skewed(1, 60), Seq("k"), "full"))
    assert(join.inputs.head.filters.exists(_.contains("exists")), join)
  }

  test("sessions without the extension, and such that registered late") {
    val bare = TestSessions.withoutExtensions(spark)
    def joined = bare.range(3).join(bare.range(3), Seq("id"), "full")
    assert(explain(joined).notes.exists(_.startsWith("The session was started without skewext")))
    assert(one(joined).origin.text === "the session was started without skewext")
    PythonApi.register(bare)
    val note = explain(joined).notes
    assert(note.exists(_.startsWith("skewext was registered in a running session")))
    val inputs = Seq(3, 4).map(n => bare.range(n).select(when(col("id") > 0, col("id")).as("id")))
    val operator = one(multiJoin(inputs, Seq("id")))
    val why = "the session was started without skewext"
    assert(operator.skew.map(_.text) === Seq(why))
    assert(operator.execution.map(_.nullKeys) === Some(s"in one task, unless it is split ($why)"))
  }

  test("operators of Photon get a note") {
    val plan = PhotonScanExec(skewed(0, 60).queryExecution.executedPlan)
    assert(Photon.note(plan).exists(_.contains("not split")))
    assert(Photon.note(plan.child) === None)
    assert(explain(three).notes === Nil)
  }

  test("the rule that rewrites is excluded") {
    withSQLConf(SkewConf.EXCLUDED_RULES.key -> "RewriteJoinChains") {
      val chain = skewed(0, 60).join(skewed(1, 60), Seq("k"), "full").join(skewed(2, 60), "k")
      assert(one(chain).origin.text === "the rule RewriteJoinChains is excluded by a setting")
    }
  }

  test("secrets are hidden as in Spark's own plans") {
    withSQLConf(SQLConf.SQL_STRING_REDACTION_PATTERN.key -> "token[^)]*") {
      val explained = explain(stock(left().where("s0 <> 'token 123'"), "inner"))
      assert(!explained.toString.contains("123") && !explained.json.contains("123"))
      assert(explained.json.contains("redacted"))
    }
  }

  test("the samples of a join below are not those of the join above") {
    val below = fullJoin("v1")(skewed(1, 60), skewed(2, 60).withColumnRenamed("v2", "v1").drop("k"))
    // The one above must stay whole.
    val samples = explain(fullJoin("k")(skewed(0, 60), below).repartition(col("k"))).joins
      .flatMap(_.execution)
      .map(_.counted)
    assert(samples === Seq(0, 2))
  }

  test("a query that cannot be planned is explained as far as it came") {
    val bare = TestSessions.withoutExtensions(spark)
    val df = SqlInternals.withActive(bare) {
      SqlInternals.dataFrame(bare, three.queryExecution.analyzed)
    }
    val explanation = explain(df)
    assert(explanation.notes.exists(_.startsWith("The query could not be planned: ")))
    assert(explanation.notes.mkString.contains("No plan for MultiFullJoin"))
    assert(explanation.joins.map(_.title) === Seq("full outer join of 3 inputs on [k]"))
    // What is wrong with the query itself is an error as ever.
    val stream = spark.readStream.format("rate").load()
    intercept[AnalysisException](explain(stream))
  }

  test("a rule that failed in the session, and in no other") {
    val session = spark.newSession()
    def notes = explain(session.range(3).toDF()).notes
    assert(notes.isEmpty)
    val plan = spark.range(3).queryExecution.analyzed
    for (_ <- 0 until 2) SqlInternals.withActive(session) {
      assert(GuardedRule(new FailingRule)(plan) eq plan)
    }
    assert(notes.size === 1)
    assert(notes.head.contains("the rule a rule that fails failed"))
    assert(notes.head.contains("IllegalStateException: such a plan. "))
    assert(explain(spark.range(3).toDF()).notes.isEmpty)
  }

  test("the same for programs") {
    assert(explain(spark.range(3).toDF()).json === """{"notes":[],"joins":[],"scans":[]}""")
    val json = PythonApi.explain(three.where("k = 5"))
    assert(
      json.startsWith("""{"notes":[],"joins":[{"number":1,"place":"query","title":"full outer"""))
    assert(
      json.contains(""""position":0,"role":"optional","narrowed_from":null,"source":"Range""""))
    assert(json.contains(s""""status":"not run","text":"${ExplainedSkew.NotRunItself}""""))
    assert(json.contains(""""origin":{"status":"asked for","text":"one operator","detail":null"""))
  }
}
