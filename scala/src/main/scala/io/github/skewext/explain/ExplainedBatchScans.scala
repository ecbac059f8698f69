package io.github.skewext.explain

import org.apache.spark.sql.catalyst.expressions.{DynamicPruningExpression, Literal}
import org.apache.spark.sql.execution.InSubqueryExec
import org.apache.spark.sql.execution.datasources.v2.BatchScanExec
import org.apache.spark.sql.internal.connector.SupportsMetadata

/**
 * The predicates that a DataSource V2 scan uses to skip data: scans of Iceberg, and of Spark's own
 * files read through V2.
 */
private[skewext] object ExplainedBatchScans {

  def of(scan: BatchScanExec): Seq[String] = {
    val pushed: Seq[String] = scan.scan match {
      case described: SupportsMetadata =>
        val metadata = described.getMetaData()
        Seq("PartitionFilters" -> "partitions", "PushedFilters" -> "row groups").flatMap {
          case (key, what) => metadata.get(key).filter(isSome).map(value => s"$what: $value")
        }
      // Such a scan has its predicates only in its description.
      case other =>
        Filters
          .findFirstMatchIn(Option(other.description()).getOrElse(""))
          .map(_.group(1).trim)
          .filter(isSome)
          .map(filters => s"files: $filters")
          .toSeq
    }
    val atRuntime = scan.runtimeFilters.collect {
      case DynamicPruningExpression(in: InSubqueryExec) => ExplainedInputs.sql(in.child)
      case DynamicPruningExpression(e) if e != Literal.TrueLiteral => ExplainedInputs.sql(e)
    }
    pushed ++ atRuntime.distinct.map(column => s"files, by keys of another input: $column")
  }

  private def isSome(value: String): Boolean = value.nonEmpty && value != "[]"

  /**
   * The predicates in the description of Iceberg's scan: `db.t (branch=null) [filters=k IS NOT
   * NULL, k > 3, groupedBy=k_bucket]`, and in Iceberg 1.12 `IcebergScan(table=db.t, ..., filters=k
   * > 3, runtimeFilters=, groupedBy=k_bucket)`.
   */
  private val Filters =
    """[\[ ]filters=(.*?)(?:, runtimeFilters=.*)?(?:, groupedBy=.*)?[\])]$""".r
}
