package org.apache.spark.sql.skewext

import scala.util.Try

import org.apache.spark.sql.catalyst.analysis.{NoSuchDatabaseException, NoSuchNamespaceException, NoSuchTableException}
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.optimizer.NormalizeFloatingNumbers
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.connector.catalog.CatalogV2Implicits._
import org.apache.spark.sql.connector.catalog.{CatalogManager, Identifier, V1Table}
import org.apache.spark.sql.execution.datasources.v2.FileDataSourceV2
import org.apache.spark.sql.execution.datasources.{DataSource, FileFormat}
import org.apache.spark.sql.{AnalysisException, DataFrame, SparkSession}
import org.apache.spark.util.ThreadUtils

/** The few calls into `private[sql]` members that need no class of their own. */
object SqlInternals {

  /** A DataFrame of a logical plan: analyzes it. */
  def dataFrame(session: SparkSession, plan: LogicalPlan): DataFrame =
    SparkShims.dataFrame(session, plan)

  /** Runs `body` with the session, and so with its settings, as the active one. */
  def withActive[T](session: SparkSession)(body: => T): T = session.withActive(body)

  /** As Spark's joins compare floating-point values: -0.0 = 0.0 and all NaNs are one. */
  def normalizeFloats(expr: Expression): Expression = NormalizeFloatingNumbers.normalize(expr)

  /** Whether a table of the provider is made of files that Spark's own writer makes. */
  def writesByBucket(session: SparkSession, provider: String): Boolean =
    Try(DataSource.lookupDataSource(provider, session.sessionState.conf)).toOption.exists {
      source =>
        classOf[FileFormat].isAssignableFrom(source) ||
        classOf[FileDataSourceV2].isAssignableFrom(source)
    }

  /** Whether a name, without that of the catalog, is that of a table that is not Spark's own. */
  def isOfOtherCatalog(session: SparkSession, name: Seq[String]): Boolean = {
    val catalog = session.sessionState.catalogManager
      .catalog(CatalogManager.SESSION_CATALOG_NAME)
      .asTableCatalog
    val namespace = if (name.size > 1) name.init else session.catalog.currentDatabase :: Nil
    val found =
      try {
        Some(catalog.loadTable(Identifier.of(namespace.toArray, name.last)))
      } catch {
        case _: NoSuchTableException | _: NoSuchNamespaceException | _: NoSuchDatabaseException =>
          None
      }
    found.exists(!_.isInstanceOf[V1Table])
  }

  /** What `f` gives of each, in the same order; several are asked at a time, in threads of their own. */
  def inThreads[A, B](all: Seq[A], name: String, threads: Int)(f: A => B): Seq[B] =
    ThreadUtils.parmap(all, name, threads)(f)

  /**
   * The error that users know for a query that cannot be analyzed. With an error class of Spark's, as
   * PySpark 4 fails over one without, and of those one that adds nothing to the message.
   */
  def analysisError(message: String, cause: Option[Throwable] = None): AnalysisException =
    new AnalysisException("_LEGACY_ERROR_TEMP_1332", Map("errorMessage" -> message), cause)
}
