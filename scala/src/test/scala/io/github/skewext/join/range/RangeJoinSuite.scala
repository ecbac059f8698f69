package io.github.skewext.join.range

import io.github.skewext.platform.SkewConf

import org.apache.spark.sql.internal.SQLConf

/** The rows of range joins with a broadcast side, in all dimensions that decide about them. */
class RangeJoinSuite extends RangeJoinTest {

  private val names = Map(
    "byte" -> "TINYINT",
    "short" -> "SMALLINT",
    "int" -> "INT",
    "long" -> "BIGINT",
    "float" -> "FLOAT",
    "double" -> "DOUBLE",
    "dec" -> "DECIMAL(10, 2)")

  // For each type.
  private val ofAll = Seq(
    "a.T_s >= b.T_s AND a.T_s < b.T_e",
    "a.T_s BETWEEN b.T_s AND b.T_e AND a.k <> b.k",
    "b.T_s > a.T_s AND b.T_e <= a.T_e",
    "a.T_s < b.T_e AND b.T_s < a.T_e",
    "a.T_s <= b.T_e AND b.T_s <= a.T_e AND (a.k < b.k OR b.id % 2 = 0)",
    "a.T_s >= b.T_s AND (b.T_e IS NULL OR a.T_s < b.T_e)",
    "(b.T_s IS NULL OR a.T_s >= b.T_s) AND (a.T_s <= b.T_e OR b.T_e IS NULL)",
    "(a.T_s IS NULL OR a.T_s < b.T_e) AND (b.T_s <= a.T_e OR a.T_e IS NULL)",
    "a.T_s >= b.T_s AND (b.T_e IS NULL OR a.T_s < b.T_e OR a.T_s IS NULL)",
    "(a.T_s >= b.T_s OR a.T_s IS NULL OR b.T_s IS NULL) AND " +
      "(b.T_e IS NULL OR a.T_s < b.T_e OR a.T_s IS NULL)",
    "(a.T_s <= b.T_e OR b.T_e IS NULL OR b.T_e IS NULL) AND b.T_s <= a.T_s")

  private val ofNumbers = Seq(
    "abs(a.T_s - b.T_s) <= CAST(2 AS TYPE)",
    "a.T_s - b.T_s BETWEEN CAST(-1 AS TYPE) AND CAST(3 AS TYPE)",
    "a.T_s - b.T_s BETWEEN CAST(2 AS TYPE) AND CAST(3 AS TYPE)",
    "a.T_s - b.T_s BETWEEN CAST(-3 AS TYPE) AND CAST(-2 AS TYPE)",
    "abs(a.T_s - b.T_s) <= CAST(2 AS TYPE) OR b.T_s IS NULL",
    "abs(a.T_s - b.T_s) <= CAST(2 AS TYPE) OR a.T_s IS NULL OR b.T_s IS NULL",
    "a.T_s BETWEEN b.T_s - CAST(2 AS TYPE) AND b.T_s + CAST(2 AS TYPE)")

  private val others = Seq(
    "a.ts_s BETWEEN b.ts_s - INTERVAL 2 HOURS AND b.ts_s + INTERVAL 2 HOURS",
    "a.ntz_s >= b.ntz_s AND a.ntz_s <= b.ntz_s + INTERVAL 3 HOURS",
    "abs(datediff(a.date_s, b.date_s)) <= 2",
    "a.date_s BETWEEN b.date_s - INTERVAL 2 DAYS AND b.date_s",
    "a.date_s >= b.ts_s AND a.date_s < b.ts_e",
    "a.int_s >= b.long_s AND a.int_s < b.double_e",
    "abs(a.dec_s - CAST(b.wide_s AS DECIMAL(20, 3))) <= 2",
    // The lower ends have a common prefix, and the upper ends have another one.
    "a.text_s BETWEEN concat('beg', b.text_s) AND concat('czz', b.text_e)",
    "CAST(a.text_s AS BINARY) BETWEEN CAST(b.text_s AS BINARY) AND CAST(concat('d', b.id) AS BINARY)",
    "a.text_s < concat('d', b.text_s) AND concat('c', a.text_s) > concat('a', b.text_e)")

  // Each type with a form of it, and the conditions without a type.
  private val conditions: Seq[(String, String)] = for {
    name <- types.keys.toSeq.sorted :+ ""
    form <- if (name.isEmpty) others else ofAll ++ names.get(name).toSeq.flatMap(_ => ofNumbers)
  } yield (name, form)

  private val cases = for {
    (name, form) <- conditions
    joinType <- joinTypes
    hint <- Seq("", "/*+ BROADCAST(a) */", "/*+ BROADCAST(b) */", "no broadcast", "cut")
    adaptive <- Seq("true", "false")
    isCompiled <- Seq(true, false)
    ansi <- Seq("true", "false")
  } yield (name, form, joinType, hint, adaptive, isCompiled, ansi)

  test("rows are those of Spark's join for each condition, join type, side and setting") {
    (covering(cases) ++ some(if (testSlow) 60 else 5, cases)).foreach {
      case given @ (name, form, joinType, hint, adaptive, isCompiled, ansi) =>
        val on = form.replace("T_", s"${name}_").replace("TYPE", names.getOrElse(name, ""))
        val compiled = if (isCompiled) GeneratedCode else Interpreted
        withClue(s"$given: ") {
          withSQLConf(
            compiled ++ Seq(
              SQLConf.ADAPTIVE_EXECUTION_ENABLED.key -> adaptive,
              SQLConf.AUTO_BROADCASTJOIN_THRESHOLD.key ->
                (if (hint == "no broadcast" || hint == "cut") "-1" else "10MB"),
              SkewConf.RANGE_JOIN_MIN_PAIRS.key -> (if (hint == "cut") "0" else "100000000"),
              SQLConf.ANSI_ENABLED.key -> ansi): _*) {
            checkRange(query(joinType, on, if (hint.startsWith("/*")) hint else ""))
          }
        }
    }
  }
}
