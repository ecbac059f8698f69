package io.github.skewext.explain.report

import scala.util.Try

import io.github.skewext.asof.exec.AsOfJoinExec
import io.github.skewext.explain.ExplainedSkew
import io.github.skewext.join.exec.MultiFullJoinExec
import io.github.skewext.join.probe.BuildProbeJoinExec
import io.github.skewext.skew.run.SplitJoinExec

import org.apache.spark.sql.execution.ui.SparkPlanGraphNode

/**
 * A join of a plan that has run, read from the data of Spark's UI. What skewext did is read from the
 * explanation of the query.
 *
 * @param name the name of the operator, without the suffixes for a split.
 * @param keys the names of the key columns on the left, if they are plain columns.
 * @param split a description of the split by the extension or by Spark.
 * @param notSplit the reason why the extension has not split it, although it is skewed.
 * @param limit the reason why a split has no shorter tasks.
 * @param advice what a user can do about the reason.
 * @param metrics the metrics by name: numbers, or text if they have units.
 */
private[skewext] case class ExecutedJoin(
    name: String,
    text: String,
    keys: Option[Seq[String]],
    split: Option[String],
    notSplit: Option[String],
    limit: Option[String],
    advice: Option[String],
    metrics: Seq[(String, Either[String, Long])]) {

  /** For example, `SplitJoin on k, split 1 partition in 4 pieces`. */
  def named: String =
    name + keys.fold("")(_.mkString(" on ", ", ", "")) + split.fold("")(", split " + _)

  /** Whether it joins partitions of all sides by its keys. Skewed ones can be split. */
  def joinsPartitions: Boolean =
    ExecutedJoin.Names(name) || name == "SortMergeJoin" || name == "ShuffledHashJoin"
}

private[skewext] object ExecutedJoin {

  /** The operators of skewext that join partitions. */
  val Names: Set[String] =
    Set(MultiFullJoinExec.Name, BuildProbeJoinExec.Name, SplitJoinExec.Name, AsOfJoinExec.Name)

  private val SplitBySpark = "(skew=true)"
  private val FirstKeys = """^[^\[]*\[([^\]]*)\]""".r.unanchored
  private val Column = """(?:`?\w+`?\.)*`?(\w+)`?(?:#\d+L?)?""".r
  private val Id = """#\d+L?""".r

  /**
   * @param values the values of metrics, by the ids of their accumulators.
   * @param skew what is known of its split; None for stock Spark.
   */
  def of(
      node: SparkPlanGraphNode,
      values: Map[Long, String],
      skew: Option[ExplainedSkew]): ExecutedJoin = {
    def text(status: String) = skew.filter(_.status == status).map(_.text)
    val bySpark = if (node.name.contains(SplitBySpark)) Some("by Spark") else None
    val advice = skew.flatMap(_.advice)
    ExecutedJoin(
      node.name.takeWhile(_ != '(').trim,
      Id.replaceAllIn(node.desc, ""),
      keys(node.desc),
      text(ExplainedSkew.Split).orElse(bySpark),
      text(ExplainedSkew.Whole).filter(_ => advice.isDefined),
      skew.flatMap(_.limit),
      advice,
      node.metrics.toSeq
        .flatMap(metric => values.get(metric.accumulatorId).map(metric.name -> value(_)))
        .sortBy(_._1))
  }

  private def keys(text: String): Option[Seq[String]] = text match {
    case FirstKeys(listed) =>
      val columns = listed.split(", ").toSeq.map {
        case Column(name) => Some(name)
        case _ => None
      }
      if (columns.forall(_.isDefined)) Some(columns.flatten) else None
    case _ => None
  }

  /**
   * The value of a metric, such as `1,234`. Where tasks are compared, a line describes the figures,
   * and the next one has them: `1.5 KiB (0.0 B, ...)`.
   */
  def value(shown: String): Either[String, Long] = {
    val total = shown.split("\n").last.takeWhile(_ != '(').trim
    Try(total.replace(",", "").toLong).toOption.toRight(total)
  }
}
