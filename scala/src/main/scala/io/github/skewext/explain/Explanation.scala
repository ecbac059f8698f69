package io.github.skewext.explain

/**
 * What became of the joins of a query, and of its scans of bucketed tables, and why.
 *
 * @param notes what holds for the whole query: why nothing of skewext is in it, for instance
 * @param joins the joins of the query, those above first; what is below a join has its own entry
 * @param scans the scans of bucketed tables
 */
case class Explanation(
    notes: Seq[String],
    joins: Seq[ExplainedJoin],
    scans: Seq[ExplainedScan] = Nil) {

  def json: String = ExplanationJson.of(this)
}

/**
 * A join of ours, or a tree of Spark's joins that follow each other.
 *
 * @param number what other entries call it
 * @param place the part of the query that it is in, see [[Place]]
 * @param title what is joined
 * @param operators the names of the operators that do it, the uppermost first; none where the query
 *                  could not be planned
 * @param origin how it came to be planned like that
 * @param execution how our operator works; none for Spark's joins
 * @param skew a line for each operator that could be split
 */
case class ExplainedJoin(
    number: Int,
    place: String,
    title: String,
    operators: Seq[String],
    origin: Origin,
    inputs: Seq[ExplainedInput],
    execution: Option[Execution],
    skew: Seq[ExplainedSkew])

object Place {
  val Query = "query"
  val Subquery = "subquery"
  val Cached = "cached data"
  val Command = "command"
}

/**
 * How a join came to be planned as it is.
 *
 * @param status one of the words of [[Origin]]
 * @param text a sentence for users
 * @param detail what the sentence is about in this query: a join or an expression
 * @param advice what a user can do about it
 */
case class Origin(
    status: String,
    text: String,
    detail: Option[String] = None,
    advice: Option[String] = None)

object Origin {

  /** Asked for by name: `multi_join` and the like. */
  val AskedFor = "asked for"

  /** Made of other joins of the query. */
  val Rewritten = "rewritten"

  /** Left to Spark, for a reason. */
  val LeftAlone = "not rewritten"

  /** Asked for by name, and planned as Spark's joins, as skewext is switched off. */
  val SwitchedOff = "switched off"
}

/**
 * @param role the name of its role; none for an input of Spark's joins
 * @param narrowedFrom its role as it was asked for, where the query above made it another one
 * @param source the table or whatever its rows come from
 * @param filters conditions on its rows, as they are in the plan
 * @param pushed those of them that are not written in the query there, but above or nowhere
 * @param read what the scan does with conditions: for files, partitions and buckets
 */
case class ExplainedInput(
    position: Int,
    role: Option[String],
    narrowedFrom: Option[String],
    source: String,
    key: Seq[String],
    filters: Seq[String],
    pushed: Seq[String],
    read: Seq[String])

/**
 * How our operator works.
 *
 * @param rows how it brings the rows of a key together
 * @param nullKeys where rows with a null key go
 * @param exchanges how many of its inputs are shuffled for it
 * @param bulk how many of these exchanges write rows by the buffer
 * @param columns how many write columns
 * @param byRow why others do not
 * @param counted below how many of them keys are counted
 */
case class Execution(
    rows: String,
    nullKeys: String,
    exchanges: Int,
    bulk: Int,
    columns: Int,
    byRow: Seq[String],
    counted: Int)

/**
 * @param operator the operator that the line is about
 * @param status one of the words of [[ExplainedSkew]]
 * @param partitions how many partitions were split, in how many pieces, with how many residuals
 * @param advice what a user can do about a skewed partition that was left whole
 */
case class ExplainedSkew(
    operator: String,
    status: String,
    text: String,
    partitions: Int = 0,
    pieces: Int = 0,
    residuals: Int = 0,
    advice: Option[String] = None)

object ExplainedSkew {
  val Split = "split"
  val Whole = "whole"
  val NotRun = "not run"

  /** Nothing looks at it: it is not shuffled, or the rules are off. */
  val Ignored = "not looked at"
}

/**
 * A scan of a bucketed table.
 *
 * @param number what comes after the joins, from 1
 * @param source the table
 * @param by the bucket columns
 * @param read how many buckets are read
 * @param partitions in how many partitions, if by the bucket; none if without regard to buckets
 * @param why what chose the buckets, or why all are read
 * @param advice what a user can do about it
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
