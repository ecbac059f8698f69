package io.github.skewext.explain

import io.github.skewext.platform.SkewConf
import io.github.skewext.skew.SkewTest

import org.apache.spark.SparkConf
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.functions._
import org.apache.spark.sql.skewext.SqlInternals

/** Joins of two and three inputs, and what `explain` says of them. */
trait ExplainTest extends SkewTest {

  override protected def generatesCode: Boolean = false

  override protected def byColumn: Boolean = true

  override protected def sparkConf: SparkConf =
    super.sparkConf.set(SkewConf.MULTI_JOIN_REWRITE.key, "true")

  protected def explain(df: DataFrame): Explanation =
    SqlInternals.withActive(df.sparkSession)(Explainer.explain(df.queryExecution))

  protected def one(df: DataFrame): ExplainedJoin = explain(df).joins match {
    case Seq(join) => join
    case several => fail(s"${several.size} joins in\n${explain(df)}")
  }

  protected def three: DataFrame =
    fullJoin("k")(skewed(0, 60), skewed(1, 60).where("v1 > 3"), skewed(2, 60))

  protected def left(hot: Int = 0) =
    skewed(0, if (hot > 0) 800 else 60, hot).withColumnRenamed("k", "l")

  protected def stock(l: DataFrame, how: String): DataFrame =
    l.join(skewed(1, 60), col("l") === col("k"), how)
}
