package io.github.skewext.merge

import scala.collection.JavaConverters._

import io.github.skewext.RandomSeed
import io.github.skewext.platform.SkewConf
import org.apache.iceberg.catalog.TableIdentifier
import org.apache.iceberg.spark.Spark3Util
import org.scalacheck.Gen
import org.scalacheck.rng.Seed

import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.{DataFrame, Row}

/**
 * Random MERGEs into random tables, by random settings, against [[MergeModel]]; a failure names its
 * seed. SKEWEXT_RANDOM_MERGES says how many.
 */
class RandomMergeSuite extends MergeTest {

  private val runs =
    sys.env.get("SKEWEXT_RANDOM_MERGES").fold(if (testAll) 1000 else 10)(_.toInt)

  /** MERGEs into one table, one after the other: to make a table takes as long as a MERGE. */
  private case class Case(
      target: Seq[MergeRow],
      targetFiles: Int,
      mode: String,
      distribution: String,
      merges: Seq[Merge]) {
    override def toString: String =
      s"$mode, $distribution, ${target.size} rows in $targetFiles files"
  }

  private case class Merge(model: MergeModel, source: Seq[MergeRow], conf: Seq[(String, String)]) {
    override def toString: String = s"${model.sql("t", "s")}\n${source.size} rows, $conf"
  }

  private def condition(sql: String)(holds: (MergeRow, MergeRow) => Boolean) =
    MergeCondition(sql, holds)

  private val ofTarget = Gen.oneOf(
    condition("t.a % 2 = 0")((t, _) => t.a % 2 == 0),
    condition("t.a > 6")((t, _) => t.a > 6))

  private val ofSource = Gen.oneOf(
    condition("s.a % 2 = 0")((_, s) => s.a % 2 == 0),
    condition("s.a < 7")((_, s) => s.a < 7))

  private val ofBoth = Gen.oneOf(
    condition("t.a < s.a")((t, s) => t.a < s.a),
    condition("t.a % 4 = s.a % 4")((t, s) => t.a % 4 == s.a % 4))

  /** Only the last of a kind may be without a condition. */
  private def actions(
      conditions: Gen[MergeCondition],
      action: Gen[(String, (MergeRow, MergeRow) => Option[MergeRow])]): Gen[Seq[MergeAction]] =
    for {
      n <- Gen.frequency(1 -> 0, 2 -> 1, 1 -> 2)
      given <- Gen.listOfN(n, conditions)
      isLastFree <- Gen.oneOf(true, false)
      done <- Gen.listOfN(n, action)
    } yield given.zip(done).zipWithIndex.map { case ((c, (sql, result)), i) =>
      MergeAction(if (i == n - 1 && isLastFree) None else Some(c), sql, result)
    }

  private type Result = (MergeRow, MergeRow) => Option[MergeRow]

  private val delete: (String, Result) = (MergeModel.Delete, (_, _) => None)

  private val onMatched: Gen[(String, Result)] = Gen.oneOf(
    delete,
    ("UPDATE SET a = s.a, txt = s.txt", (t, s) => Some(t.copy(a = s.a, txt = s.txt))): (
        String,
        Result),
    (
      "UPDATE SET k = s.a, a = t.a + s.a",
      (t, s) => Some(t.copy(k = Some(s.a.toLong), a = t.a + s.a))): (String, Result))

  private val onlySource: Gen[(String, Result)] = Gen.oneOf(
    ("INSERT (id, k, a, txt) VALUES (s.id, s.k, s.a, s.txt)", (_, s) => Some(s)): (String, Result),
    ("INSERT (id, k, a, txt) VALUES (s.id, s.k, -1, s.txt)", (_, s) => Some(s.copy(a = -1))): (
        String,
        Result))

  private val onlyTarget: Gen[(String, Result)] = Gen.oneOf(
    delete,
    ("UPDATE SET a = t.a + 100", (t, _) => Some(t.copy(a = t.a + 100))): (String, Result))

  private val models: Gen[MergeModel] = (for {
    on <- Gen.frequency(
      3 -> Gen.const(Nil),
      1 -> Gen.oneOf(ofTarget, ofSource, ofBoth).flatMap(g => g).map(Seq(_)))
    matched <- actions(Gen.oneOf(ofTarget, ofSource, ofBoth).flatMap(g => g), onMatched)
    notMatched <- actions(ofSource, onlySource)
    notMatchedBySource <- actions(ofTarget, onlyTarget)
  } yield MergeModel(on, matched, notMatched, notMatchedBySource)).retryUntil { model =>
    model.matched.nonEmpty || model.notMatched.nonEmpty || model.notMatchedBySource.nonEmpty
  }

  private val NotInTarget = 3000L

  /** A key that only one side has, or one of both, or none. */
  private val hotKeys = Gen.frequency(
    3 -> Gen.const(Some(1000L)),
    2 -> Gen.const(Some(2000L)),
    2 -> Gen.choose(0L, 40L).map(Some(_)),
    1 -> Gen.const(None))

  private def rows(keys: Seq[Option[Long]], first: Long): Gen[Seq[MergeRow]] =
    Gen.listOfN(keys.size, Gen.choose(0, 12)).map { as =>
      keys.zip(as).zipWithIndex.map { case ((k, a), i) =>
        MergeRow(first + i, k, a, f"${(first + i) * 2654435761L}%040d")
      }
    }

  private def shuffled(keys: Seq[Option[Long]]): Gen[Seq[Option[Long]]] =
    Gen.long.map(seed => new scala.util.Random(seed).shuffle(keys))

  private val targets: Gen[Seq[MergeRow]] = for {
    n <- Gen.choose(0, 60)
    keys <- Gen.listOfN(n, Gen.frequency(10 -> Gen.choose(0L, 40L).map(Option(_)), 1 -> None))
    key <- hotKeys
    hot <- Gen.oneOf(0, 0, 150)
    all <- shuffled(keys ++ Seq.fill(hot)(key))
    made <- rows(all, 0)
  } yield made

  private val sources: Gen[Seq[MergeRow]] = for {
    n <- Gen.choose(0, 40)
    distinct <- shuffled((0L to 40L).map(Option(_)))
    repeated <- Gen.oneOf(0, 0, 1, 2)
    nulls <- Gen.oneOf(0, 3)
    // Mostly one that matches nothing, or there would be few legal MERGEs.
    key <- Gen.frequency(4 -> Gen.const(Some(NotInTarget)), 4 -> Gen.const(None), 1 -> hotKeys)
    hot <- Gen.oneOf(0, 150, 150)
    keys = distinct.take(n)
    all <- shuffled(keys ++ keys.take(repeated) ++ Seq.fill(nulls)(None) ++ Seq.fill(hot)(key))
    made <- rows(all, 100000)
  } yield made

  /** The rows, of which no row of the target, as it is by now, is matched by two. */
  private def matchingOnce(source: Seq[MergeRow], target: Seq[MergeRow]): Seq[MergeRow] = {
    val keys = target.flatMap(_.k).toSet
    val (met, others) = source.partition(_.k.exists(keys))
    others ++ met.groupBy(_.k).values.map(_.head)
  }

  private val merges: Gen[Merge] = for {
    model <- models
    source <- sources
    sourceTasks <- Gen.choose(1, 4)
    partitions <- Gen.choose(1, 4)
    coalesce <- Gen.oneOf("true", "false")
    hash <- Gen.oneOf("0", "100MB")
    gain <- Gen.oneOf("1.0", "1.5")
    force <- Gen.oneOf("true", "false", "false")
    spread <- Gen.oneOf("true", "true", "false")
  } yield Merge(
    model,
    source,
    Seq(
      SQLConf.LEAF_NODE_DEFAULT_PARALLELISM.key -> sourceTasks.toString,
      Threshold -> "600",
      Factor -> "1.2",
      Advisory -> "600",
      "spark.sql.shuffle.partitions" -> partitions.toString,
      "spark.sql.adaptive.coalescePartitions.enabled" -> coalesce,
      "spark.sql.adaptive.maxShuffledHashJoinLocalMapThreshold" -> hash,
      SkewConf.SKEW_MIN_GAIN.key -> gain,
      SkewConf.MULTI_JOIN_SPREAD_NULL_KEYS.key -> spread,
      SQLConf.ADAPTIVE_FORCE_OPTIMIZE_SKEWED_JOIN.key -> force))

  private val MergesOfTable = 4

  private val MergesOfTest = 200

  private val cases: Gen[Case] = for {
    target <- targets
    targetFiles <- Gen.choose(1, 4)
    mode <- Gen.oneOf(CopyOnWrite, MergeOnRead)
    distribution <- Gen.oneOf("none", "none", "hash")
    several <- Gen.listOfN(MergesOfTable, merges)
  } yield Case(target, targetFiles, mode, distribution, several)

  /** Of as many partitions as the settings say; the same rows whenever they are read. */
  private def dataFrame(rows: Seq[MergeRow]): DataFrame =
    spark.createDataFrame(
      rows.map(asRow).asJava,
      StructType.fromDDL("id bigint, k bigint, a int, txt string"))

  private def asRow(row: MergeRow): Row =
    Row(row.id, row.k.map(Long.box).orNull, row.a, row.txt)

  /** Of these Spark by itself, without any skew, writes a target row once for each match. */
  private def isRepeating(mode: String, model: MergeModel): Boolean =
    mode == CopyOnWrite && model.matched.isEmpty && model.notMatchedBySource.nonEmpty

  private def run(c: Case): Seq[String] = {
    // Replaced, it would keep its files and its history; DROP TABLE looks for the files by queries.
    Spark3Util.loadIcebergCatalog(spark, "ice").dropTable(TableIdentifier.of("db", "t"), true)
    withSQLConf(SQLConf.LEAF_NODE_DEFAULT_PARALLELISM.key -> c.targetFiles.toString) {
      write(dataFrame(c.target), "ice.db.t", c.distribution)
    }
    setMode("ice.db.t", c.mode)
    var target = c.target
    c.merges.zipWithIndex.map { case (given, i) =>
      val merge =
        if (isRepeating(c.mode, given.model)) {
          given.copy(source = matchingOnce(given.source, target))
        } else {
          given
        }
      withClue(s"MERGE ${i + 1}, $merge: ") {
        var outcome = ""
        withSQLConf(merge.conf: _*) {
          outcome = run(merge, target)
        }
        target = merge.model.run(target, merge.source).getOrElse(target)
        outcome
      }
    }
  }

  private def run(m: Merge, target: Seq[MergeRow]): String = {
    dataFrame(m.source).createOrReplaceTempView("s")
    val before = iceberg("ice.db.t").currentSnapshot()
    var merge: Option[DataFrame] = None
    val twice = findsTwice { merge = Some(runMerge(m.model.sql("ice.db.t", "s"))) }
    val expected = m.model.run(target, m.source)
    assert(twice === expected.isEmpty)
    expected match {
      case Some(rows) => assertSameRows(rowsByIceberg("ice.db.t"), rows.map(asRow), "the model")
      case None => assert(iceberg("ice.db.t").currentSnapshot() === before)
    }
    merge.map(planOf) match {
      case None => "twice"
      case Some(plan) if isSplitByUs(plan) => "split by us"
      case Some(plan) if isSplitBySpark(plan) => "split by Spark"
      case _ => "whole"
    }
  }

  override protected def beforeAll(): Unit = {
    super.beforeAll()
    // Of each MERGE that must fail, several stack traces.
    spark.sparkContext.setLogLevel("OFF")
  }

  // Spark gives a test twenty minutes.
  for (start <- 0 until runs by MergesOfTest) {
    val n = math.min(MergesOfTest, runs - start)
    test(s"random MERGEs ${start + 1} to ${start + n}") {
      var counts = Map.empty[String, Int]
      // It goes on until one is split by us.
      def isEnough(i: Int) = i >= n && (counts.contains("split by us") || i >= 10 * n)
      Iterator.from(0).takeWhile(i => !isEnough(i * MergesOfTable)).foreach { i =>
        val seed = RandomSeed.first + start / MergesOfTable + i
        val c = cases.pureApply(Gen.Parameters.default, Seed(seed))
        withClue(s"seed $seed, $c: ") {
          run(c).foreach { outcome =>
            counts += outcome -> (counts.getOrElse(outcome, 0) + 1)
          }
        }
      }
      info(counts.toSeq.sorted.map { case (outcome, n) => s"$n $outcome" }.mkString(", "))
      assert(counts.contains("split by us") && counts.size > 1)
    }
  }
}
