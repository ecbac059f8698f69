package io.github.skewext.explain.ui

import scala.xml.{Node, NodeSeq}

import io.github.skewext.explain.{ExplainedSkew, Explanation, Origin}

import org.apache.spark.sql.execution.ui.SQLExecutionUIData
import org.apache.spark.sql.skewext.{QueryStatus, UiFormats}

/** The queries with joins, one row for each. */
object QueriesView {

  /** The columns. The second value is the tooltip that describes a column of figures. */
  private val Columns = Seq(
    "Query" -> "the number that it has in the tab of SQL",
    "Description" -> "",
    "Submitted" -> "",
    "Duration" -> "",
    "Joins" -> "joins of ours, and trees of Spark's joins that follow each other",
    "One operator" -> "joins of any number of inputs, asked for or made of Spark's joins",
    "Split" -> "joins with skewed partitions that were split",
    "Skewed, left whole" -> "joins with skewed partitions that could not be split")

  /** @param link a function that returns the address of a page of Spark's UI. */
  def apply(
      explained: Seq[(Long, Explanation)],
      status: QueryStatus,
      link: String => String): NodeSeq =
    if (explained.isEmpty) {
      <p>No query with a join has come to its end yet.</p>
    } else {
      <div class="table-responsive">
        <table class="table table-bordered table-sm table-striped">
          <thead>
            <tr>{Columns.map { case (name, what) => <th title={what}>{name}</th> }}</tr>
          </thead>
          <tbody>
            {
        explained.map { case (id, explanation) => row(id, explanation, status.query(id), link) }
      }
          </tbody>
        </table>
      </div>
    }

  private def row(
      id: Long,
      explanation: Explanation,
      query: Option[SQLExecutionUIData],
      link: String => String): Node = {
    def count(status: String)(origin: Explanation): Int =
      origin.joins.count(_.skew.exists(skew => skew.status == status && isSkewed(skew)))
    val one = explanation.joins.count { join =>
      join.origin.status == Origin.Rewritten || join.origin.status == Origin.AskedFor
    }
    val address = link(s"/skewext/query/?id=$id")
    <tr>
      <td><a href={address}>{id}</a></td>
      <td class="text-break"><a href={address}>{query.fold("")(_.description)}</a></td>
      <td>{query.fold("")(q => UiFormats.time(q.submissionTime))}</td>
      <td>{query.flatMap(durationOf(_)).fold("")(UiFormats.duration(_))}</td>
      <td>{explanation.joins.size}</td>
      <td>{one}</td>
      <td>{count(ExplainedSkew.Split)(explanation)}</td>
      <td>{count(ExplainedSkew.Whole)(explanation)}</td>
    </tr>
  }

  private[ui] def durationOf(query: SQLExecutionUIData): Option[Long] =
    query.completionTime.map(_.getTime - query.submissionTime)

  /** A join that is not split has advice if it is skewed. */
  private def isSkewed(skew: ExplainedSkew): Boolean =
    skew.status == ExplainedSkew.Split || skew.advice.isDefined
}
