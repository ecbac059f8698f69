package io.github.skewext.join.exec

import io.github.skewext.{MultiJoinTest, RandomSeed}
import io.github.skewext.platform.SkewConf

import org.scalacheck.Gen
import org.scalacheck.rng.Seed

import org.apache.spark.sql.{DataFrame, Row}

/** Random inputs, roles and settings against Spark's own joins; a failure names its seed. */
class RandomJoinsSuite extends MultiJoinTest {

  // All of the operator as users have it.
  override protected def generatesCode: Boolean = true

  private case class Case(
      keyTypes: Seq[String],
      inputs: Seq[Seq[Row]],
      roles: Seq[String],
      indicator: Boolean,
      conf: Seq[(String, String)])

  private val values: Map[String, Gen[Any]] = Map(
    "int" -> Gen.choose(-2, 3),
    "bigint" -> Gen.oneOf(0L, 1L, Long.MaxValue, Long.MinValue),
    "string" -> Gen.oneOf("", "a", "b", "a longer key than sixteen bytes"),
    "double" -> Gen.oneOf(0.0, -0.0, Double.NaN, 1.5),
    "boolean" -> Gen.oneOf(true, false),
    "decimal(25,3)" -> Gen
      .oneOf(BigDecimal("1.500"), BigDecimal("-7"), BigDecimal("1e20"))
      .map(_.bigDecimal.setScale(3)),
    "binary" -> Gen.oneOf(Array[Byte](), Array[Byte](1), Array[Byte](1, 0)),
    "struct<a:int,b:string>" -> Gen.oneOf(Row(1, "x"), Row(1, null), Row(null, "x")))

  private val cases: Gen[Case] = for {
    keyTypes <- Gen.choose(1, 3).flatMap(Gen.listOfN(_, Gen.oneOf(values.keys.toSeq.sorted)))
    n <- Gen.choose(2, 5)
    nulls <- Gen.oneOf(0, 1, 4)
    key = Gen.sequence[List[Any], Any](
      keyTypes.map(t => Gen.frequency(8 -> values(t), nulls -> Gen.const(null))))
    rows = for {
      size <- Gen.oneOf(0, 1, 6, 14)
      keys <- Gen.listOfN(size, key)
      tags <- Gen.listOfN(size, Gen.option(Gen.choose(0, 9)))
    } yield keys.zip(tags).map { case (k, v) => Row.fromSeq(k :+ v.getOrElse(null)) }
    inputs <- Gen.listOfN(n, rows)
    roles <- Gen.oneOf(
      Gen.const(List.fill(n)("optional")),
      Gen.listOfN(n - 1, Gen.oneOf("optional", "required", "excluded")).map("optional" :: _))
    indicator <- Gen.oneOf(true, false)
    grouping <- Gen.oneOf("hash", "sort")
    maxRows <- Gen.oneOf("5", Long.MaxValue.toString)
    bits <- Gen.oneOf("64", "64", "1")
    order <- Gen.oneOf("auto", "natural")
    adaptive <- Gen.oneOf("true", "false")
  } yield Case(
    keyTypes,
    inputs,
    roles,
    indicator,
    KeepEmptyInputs ++ Seq(
      SkewConf.MULTI_JOIN_GROUPING.key -> grouping,
      SkewConf.MULTI_JOIN_MAX_ROWS_IN_MEMORY.key -> maxRows,
      SkewConf.MULTI_JOIN_HASH_BITS.key -> bits,
      SkewConf.MULTI_JOIN_ORDER.key -> order,
      "spark.sql.adaptive.enabled" -> adaptive))

  private def frames(c: Case): Seq[DataFrame] = c.inputs.zipWithIndex.map { case (rows, i) =>
    val columns = c.keyTypes.zipWithIndex.map { case (t, j) => s"k$j $t" } :+ s"v$i int"
    frame(columns.mkString(", "))(rows: _*)
  }

  private val runs = if (testAll) 40 else 12

  test("random joins", Slow) {
    (RandomSeed.first until RandomSeed.first + runs).foreach { seed =>
      val c = cases.pureApply(Gen.Parameters.default, Seed(seed))
      withClue(s"seed $seed, $c: ") {
        val on = c.keyTypes.indices.map(j => s"k$j")
        withSQLConf(c.conf: _*) {
          val inputs = frames(c)
          val joined =
            multiJoin(inputs, on, roles = c.roles, indicator = if (c.indicator) "sources" else null)
          checkJoin(joined)
          if (c.roles.forall(_ == "optional") && !c.indicator) {
            assertSameRows(
              joined.collect().toSeq,
              stockChain(on: _*)(inputs: _*).collect().toSeq,
              "Spark's chain of full outer joins")
          }
        }
      }
    }
  }
}
