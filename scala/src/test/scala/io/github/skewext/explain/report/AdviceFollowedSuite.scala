package io.github.skewext.explain.report

import io.github.skewext.explain.ExplanationJson
import io.github.skewext.platform.SkewConf
import io.github.skewext.skew.SkewTest

import org.apache.spark.sql.functions._
import org.apache.spark.sql.skewext.{QueryStatus, TestExplained}

/** Users change the settings that advice names, and run the query again. */
class AdviceFollowedSuite extends SkewTest {

  private val Setting = """(spark\.[\w.]+)=(\w+)""".r
  private val Limit = """maxRereadFactor is [0-9.]+, ([0-9.]+) is enough""".r

  private def run(): ExecutedQuery = {
    val text = sha2(col("id").cast("string").cast("binary"), 512)
    val hot = spark
      .range(0, 60000, 1, 32)
      .select(when(col("id") % 10 < 9, 7L).otherwise(col("id")).as("k"), text.as("a"))
    val other = spark
      .range(0, 45000, 1, 8)
      .select(col("id").as("k"), text.as("b"))
      .where("pmod(hash(k), 3) = pmod(hash(7L), 3)")
    hot.join(other, Seq("k"), "left").write.format("noop").mode("overwrite").save()
    val status = QueryStatus.of(spark)
    val id = TestExplained.lastQuery(spark)
    val explained = ExplanationJson.stored(status, id).toSeq.flatMap(_.joins)
    new ExecutedQuery(status, status.query(id).get, explained)
  }

  /** The tasks of the join, as slow as they are large: the query is too fast for advice. */
  private def slowed(ran: ExecutedQuery): (StageTasks, Seq[ExecutedJoin]) = {
    val (tasks, joins) = ran.stages.filterNot(_._1.prepares).last
    (tasks.copy(ran = tasks.ran.map(t => t.copy(run = t.readBytes)).sortBy(-_.run)), joins)
  }

  test("following the advice makes tasks smaller, and ends") {
    val reread = SkewConf.SKEW_MAX_REREAD_FACTOR
    val plain = Seq(
      SkewConf.ENABLED.key -> "false",
      reread.key -> reread.defaultValueString,
      Threshold -> "256MB",
      Factor -> "5",
      Advisory -> "64MB",
      "spark.sql.adaptive.coalescePartitions.enabled" -> "false",
      "spark.sql.shuffle.partitions" -> "3")
    withSQLConf(plain: _*) {
      def followed(largest: Seq[Long], names: Seq[Seq[String]]): (Seq[Long], Seq[Seq[String]]) = {
        val ran = run()
        val (tasks, joins) = slowed(ran)
        val advice =
          new TaskAdvice(Seq(tasks -> joins), 1, ran.settings).sentences.mkString("\n")
        val found = Setting.findAllMatchIn(advice).map(m => m.group(1) -> m.group(2)).toSeq ++
          Limit.findAllMatchIn(advice).map(reread.key -> _.group(1))
        val sizes = largest :+ tasks.ran.head.readBytes
        if (found.isEmpty || sizes.size > 6) (sizes, names)
        else {
          found.foreach { case (key, value) => spark.conf.set(key, value) }
          followed(sizes, names :+ found.map(_._1))
        }
      }
      val (largest, names) = followed(Nil, Nil)
      // All that keeps the partition whole is named at once.
      assert(names.head === Seq(SkewConf.ENABLED.key, Threshold, Advisory))
      assert(largest.size === names.size + 1 && largest.size <= 6, names)
      assert(largest === largest.sorted.reverse && largest.distinct === largest)
      assert(largest.last < largest.head / 1.25)
    }
  }
}
