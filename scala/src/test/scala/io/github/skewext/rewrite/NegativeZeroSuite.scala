package io.github.skewext.rewrite

import io.github.skewext.platform.SkewConf


import org.apache.spark.SparkConf

/**
 * -0.0 equals 0.0, but it is another value. A query returns the value of the table, whatever its
 * predicates are. Rows are compared by bits.
 */
class NegativeZeroSuite extends RewriteTest {

  override protected def sparkConf: SparkConf =
    super.sparkConf.set(SkewConf.JOIN_ENABLED.key, "true")

  /** Values of a key with every value of a column. Each of the three tables lacks other keys. */
  private def withTables(dataType: String)(body: => Unit): Unit = withTempView("za", "zb", "zc") {
    Seq("za", "zb", "zc").zipWithIndex.foreach { case (name, i) =>
      val rows = for {
        (k, n) <- Seq("0.0D", "-0.0D", "double('NaN')", "1.0D", "null").zipWithIndex
        if (n + i) % 4 != 3
        v <- Seq("0.0D", "-0.0D", "2.0D")
      } yield s"($dataType($k), $dataType($v))"
      table("k, v", rows.mkString(", ")).createOrReplaceTempView(name)
    }
    withSQLConf("spark.sql.autoBroadcastJoinThreshold" -> "-1")(body)
  }

  private val Shown = "SELECT k, a.k, b.k, c.k, a.v, b.v, c.v"

  private def chain(how: String): String =
    s"FROM za a $how JOIN zb b USING (k) $how JOIN zc c USING (k)"

  for (dataType <- Seq("double", "float"))
    test(s"keeps the values of a $dataType column that is <=> a constant") {
      withTables(dataType) {
        checkRewritten(s"$Shown ${chain("FULL")} WHERE a.v <=> 0.0D", 3)
        checkSame(sql(s"$Shown ${chain("LEFT")} WHERE a.k <=> -0.0D AND b.v <=> 0.0D"))
        val filtered = sql("SELECT * FROM za WHERE v <=> 0.0D AND k <=> 0.0D")
        val joined = multiJoin(
          Seq(filtered, spark.table("zb"), spark.table("zc")),
          Seq("k"),
          roles = Seq("required", "optional", "optional"),
          suffixes = Seq("_a", "_b", "_c"))
        assert(checkJoin(joined).exists(_.toString.contains("-0.0")))
      }
    }

  test("keeps the value of the table that a key names first, below multi_join") {
    withTables("double") {
      val others = Seq(
        "SELECT coalesce(b.k, a.k) AS k, a.v, b.v AS w FROM za a FULL JOIN zb b ON a.k = b.k",
        "SELECT c.k, a.v, b.v AS w FROM za a FULL JOIN zb b ON a.k = b.k RIGHT JOIN zc c ON b.k = c.k")
      for (other <- others;
        roles <- Seq(Seq("optional", "optional"), Seq("required", "required"))) {
        val joined = multiJoin(
          Seq(sql(other), spark.table("zc").withColumnRenamed("v", "u")),
          Seq("k"),
          roles = roles)
        checkSame(joined.selectExpr("string(k)", "v", "w", "u"))
      }
    }
  }

  test("keeps the values of keys that are <=> a constant, in every type of join", Slow) {
    withTables("double") {
      for (how <- some(2, Seq("FULL", "LEFT", "RIGHT", "INNER"))) {
        val chosen = s"$Shown ${chain(how)} WHERE k <=> 0.0D"
        if (how == "FULL") checkRewritten(chosen, 3) else checkSame(sql(chosen))
        checkSame(sql(s"$Shown ${chain(how)} WHERE a.k <=> b.k AND c.v <=> a.k"))
      }
    }
  }
}
