package io.github.skewext.explain

import io.github.skewext.skew.plan.SkewSplits

/**
 * How the joins of a query and its scans of bucketed tables are planned, and why.
 *
 * @param notes facts about the whole query, such as why skewext has not changed it.
 * @param joins the joins of the query, the topmost first. A join below a join has a separate entry.
 * @param scans the scans of bucketed tables.
 */
case class Explanation(
    notes: Seq[String],
    joins: Seq[ExplainedJoin],
    scans: Seq[ExplainedScan] = Nil) {

  def json: String = ExplanationJson.of(this)

  override def toString: String = ExplanationText.of(this)
}

/**
 * A multi-way join, or a tree of consecutive Spark joins.
 *
 * @param number the number that other entries use for it.
 * @param place the part of the query that contains it, see [[Place]].
 * @param title a description of the join.
 * @param operators the names of its operators, the topmost first; empty if the query could not be
 *                  planned.
 * @param origin the reason for its plan.
 * @param execution the execution of our operator; None for Spark's joins.
 * @param skew a line for each operator that could be split.
 */
case class ExplainedJoin(
    number: Int,
    place: String,
    title: String,
    operators: Seq[String],
    origin: Origin,
    inputs: Seq[ExplainedInput],
    execution: Option[Execution],
    skew: Seq[ExplainedSkew]) {

  /** Those that differ for readers. */
  def skews: Seq[ExplainedSkew] = skew.map(_.copy(metric = None)).distinct
}

object Place {
  val Query = "query"
  val Subquery = "subquery"
  val Cached = "cached data"
  val Command = "command"
}

/**
 * The reason for the plan of a join.
 *
 * @param status one of the words of [[Origin]].
 * @param text a sentence for users.
 * @param detail the part of the query that the sentence refers to, such as a join or an expression.
 * @param advice a change that a user can make.
 * @param concerns whether skewext has planned the join, or left it alone for a reason; false for a
 *                 join that none of its features is for.
 * @param isShort whether the reason is that there are too few joins on one key for one operator.
 */
case class Origin(
    status: String,
    text: String,
    detail: Option[String] = None,
    advice: Option[String] = None,
    concerns: Boolean = true,
    isShort: Boolean = false)

object Origin {

  /** The query calls the join by name, such as by `multi_join`. */
  val AskedFor = "asked for"

  /** Rewritten from other joins of the query. */
  val Rewritten = "rewritten"

  /** Spark plans the join, and skewext's operator runs it. */
  val Replaced = "run by skewext"

  /** Spark's joins with split partitions. */
  val Split = "split"

  /** Planned by Spark, for a reason. */
  val LeftAlone = "not rewritten"

  /**
   * The query calls the join by name, but it is planned as Spark's joins, because skewext is
   * switched off.
   */
  val SwitchedOff = "switched off"
}

/**
 * @param role the name of its role; None for an input of Spark's joins.
 * @param narrowedFrom the role in the query, if the query above the join changed it.
 * @param source the source of its rows, such as a table.
 * @param filters the predicates on its rows in the plan.
 * @param read what the scan does with conditions: for files, partitions and buckets
 * @param hint a join hint of the input that has no effect, and why
 */
case class ExplainedInput(
    position: Int,
    role: Option[String],
    narrowedFrom: Option[String],
    source: String,
    key: Seq[String],
    filters: Seq[String],
    read: Seq[String],
    hint: Option[String] = None)

/**
 * The execution of our operator.
 *
 * @param rows how it groups the rows of a key.
 * @param nullKeys the tasks for rows with a null key.
 * @param exchanges the number of inputs that are shuffled for it.
 * @param columns the number of columnar ones of these exchanges.
 * @param byRow the reasons why other exchanges do not.
 * @param counted the number of exchanges with key sampling.
 */
case class Execution(
    rows: String,
    nullKeys: String,
    exchanges: Int,
    columns: Int,
    byRow: Seq[String],
    counted: Int)

/**
 * @param operator the operator of the line.
 * @param status one of the words of [[ExplainedSkew]].
 * @param partitions the number of split partitions; `pieces` and `residuals` are their tasks.
 * @param advice a change that a user can make if a skewed partition is not split, or not enough.
 * @param limit the reason why the tasks of a split are not shorter.
 * @param metric the id of one of the operator's metrics, by which reports find it in a plan of the UI.
 */
case class ExplainedSkew(
    operator: String,
    status: String,
    text: String,
    partitions: Int = 0,
    pieces: Int = 0,
    residuals: Int = 0,
    advice: Option[String] = None,
    limit: Option[String] = None,
    metric: Option[Long] = None) {

  /** The text, with a limit that a user can raise. */
  def description: String =
    text + limit.filter(_ => advice.isDefined).fold("")(why => s"; ${SkewSplits.Limited}: $why")
}

object ExplainedSkew {
  val Split = "split"
  val Whole = "whole"
  val NotRun = "not run"

  /** Why nothing is known of the run of a DataFrame. */
  val NotRunItself: String =
    "this plan has not ended; count(), show(), commands and Connect run others"

  /** No rule applies to the operator: it is not shuffled, or the rules are off. */
  val Ignored = "not looked at"
}

/**
 * A scan of a bucketed table.
 *
 * @param number its number among the scans, from 1.
 * @param source the table.
 * @param by the bucket columns.
 * @param read the number of buckets that are read.
 * @param partitions the number of partitions if the scan reads by bucket; None if it does not.
 * @param why the reason for pruned buckets, or for reading all of them.
 * @param advice a change that a user can make.
 */
case class ExplainedScan(
    number: Int,
    place: String,
    source: String,
    by: Seq[String],
    buckets: Int,
    read: Int,
    partitions: Option[Int],
    why: String,
    advice: Option[String])
