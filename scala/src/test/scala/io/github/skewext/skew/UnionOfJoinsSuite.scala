package io.github.skewext.skew

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.functions.{count, sum}

/** Since Spark 4.1 a union of alike partitioned inputs is partitioned as they are. */
class UnionOfJoinsSuite extends SkewTest {

  private def join(rows: Int): DataFrame =
    fullJoin("k")(skewed(0, rows, hot = 3), skewed(1, 40)).select("k", "v0", "v1")

  test("skewed joins in a UNION ALL") {
    val union = join(900).union(join(800))
    val rows = union.collect().toSeq
    assert(splitJoins(union).size === 2)
    assertSameRows(rows, rowsWhenOff(union), "the same query with skewext off")
  }

  test("skewed joins in a UNION ALL whose rows are brought together by the key", Slow) {
    val grouped = join(900).union(join(800)).groupBy("k").agg(count("*"), sum("v0"))
    val rows = grouped.collect().toSeq
    assert(rows.map(_.get(0)).distinct.size === rows.size)
    assertSameRows(rows, rowsWhenOff(grouped), "the same query with skewext off")
    val joined = join(900).union(join(800)).join(skewed(2, 60), Seq("k"), "left")
    assertSameRows(joined.collect().toSeq, rowsWhenOff(joined), "the same query with skewext off")
  }
}
