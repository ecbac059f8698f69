package io.github.skewext.explain.report

import scala.util.Try

import io.github.skewext.asof.exec.AsOfJoinExec
import io.github.skewext.join.exec.MultiFullJoinExec
import io.github.skewext.skew.plan.{SkewReason, SkewSplits}
import io.github.skewext.skew.run.SplitJoinExec

import org.apache.spark.sql.execution.ui.SparkPlanGraphNode

/**
 * A join of a plan that has run, read from the data of Spark's UI.
 *
 * @param name the name of the operator, without the suffixes for a split.
 * @param keys the names of the key columns on the left, if they are plain columns.
 * @param split a description of the split by the extension or by Spark.
 * @param notSplit the reason why the extension has not split it, although it is skewed.
 * @param limit the reason why a split has no shorter tasks.
 * @param metrics the metrics by name: numbers, or text if they have units.
 */
private[skewext] case class ExecutedJoin(
    name: String,
    text: String,
    keys: Option[Seq[String]],
    split: Option[String],
    notSplit: Option[String],
    limit: Option[String],
    metrics: Seq[(String, Either[String, Long])]) {

  /** Whether it joins partitions of all sides by its keys. Skewed ones can be split. */
  def joinsPartitions: Boolean =
    ExecutedJoin.Names(name) || name == "SortMergeJoin" || name == "ShuffledHashJoin"

  /** What a user can do about the reason. */
  def advice: Option[String] = notSplit.orElse(limit).flatMap(SkewReason.adviceIn)
}

private[skewext] object ExecutedJoin {

  /** The operators of skewext: a multi-way join, the split form of Spark's joins, an as-of join. */
  val Names: Set[String] = Set(MultiFullJoinExec.Name, SplitJoinExec.Name, AsOfJoinExec.Name)

  private val Split = """\(skew: (.*)\)$""".r.unanchored
  private val SplitBySpark = "(skew=true)"
  private val NotSplit = ", not split: (.*)$".r.unanchored
  private val Limited = s", ${SkewSplits.Limited}: (.*)$$".r.unanchored
  private val FirstKeys = """^[^\[]*\[([^\]]*)\]""".r.unanchored
  private val Column = """(?:`?\w+`?\.)*`?(\w+)`?(?:#\d+L?)?""".r
  private val Id = """#\d+L?""".r

  /** @param values the values of metrics, by the ids of their accumulators. */
  def of(node: SparkPlanGraphNode, values: Map[Long, String]): ExecutedJoin = ExecutedJoin(
    node.name.takeWhile(_ != '(').trim,
    Id.replaceAllIn(node.desc, ""),
    keys(node.desc),
    node.name match {
      case Split(how) => Some(how)
      case name if name.contains(SplitBySpark) => Some("by Spark")
      case _ => None
    },
    node.desc match {
      case NotSplit(why) => Some(why)
      case _ => None
    },
    node.desc match {
      case Limited(why) => Some(why)
      case _ => None
    },
    node.metrics.toSeq
      .flatMap(metric => values.get(metric.accumulatorId).map(metric.name -> value(_)))
      .sortBy(_._1))

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
