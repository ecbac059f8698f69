package org.apache.spark.sql.skewext

import java.util.concurrent.atomic.AtomicReference

import scala.util.Try

import org.apache.spark.internal.config.EXECUTOR_MEMORY
import org.apache.spark.sql.catalyst.analysis.{NoSuchDatabaseException, NoSuchNamespaceException, NoSuchTableException}
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.optimizer.{EliminateResolvedHint, NormalizeFloatingNumbers}
import org.apache.spark.sql.catalyst.plans.logical.{HintInfo, LogicalPlan}
import org.apache.spark.sql.connector.catalog.CatalogV2Implicits._
import org.apache.spark.sql.connector.catalog.{CatalogManager, Identifier, V1Table}
import org.apache.spark.sql.connector.write.RowLevelOperationTable
import org.apache.spark.sql.execution.adaptive.{ExchangeQueryStageExec, QueryStageExec}
import org.apache.spark.sql.execution.datasources.v2.{DataSourceV2Relation, DataSourceV2ScanRelation, FileDataSourceV2}
import org.apache.spark.sql.execution.datasources.{DataSource, FileFormat, PruneFileSourcePartitions}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.DataType
import org.apache.spark.sql.{AnalysisException, DataFrame, SparkSession}
import org.apache.spark.util.{ThreadUtils, Utils}
import org.apache.spark.{PartitionIdPassthrough, Partitioner, SparkConf}

/** Calls of `private[sql]` members that need no class of their own. */
object SqlInternals {

  /** Analyzes a logical plan and returns its DataFrame. */
  def dataFrame(session: SparkSession, plan: LogicalPlan): DataFrame =
    SparkShims.dataFrame(session, plan)

  /** Runs `body` with the session, and so with its settings, as the active session. */
  def withActive[T](session: SparkSession)(body: => T): T = session.withActive(body)

  /** An object as bytes, by Java's serialization. */
  def toBytes(value: AnyRef): Array[Byte] = Utils.serialize(value)

  def fromBytes[T](bytes: Array[Byte]): T =
    Utils.deserialize[T](bytes, getClass.getClassLoader)

  /** Normalizes floating-point values as Spark's joins do: -0.0 = 0.0, and all NaNs are equal. */
  def normalizeFloats(expr: Expression): Expression = NormalizeFloatingNumbers.normalize(expr)

  /** Prunes partitions of tables in the catalog, as Spark does later in the optimizer. */
  def prunePartitions(plan: LogicalPlan): LogicalPlan = PruneFileSourcePartitions(plan)

  /** Whether a plan reads the table that a MERGE, UPDATE or DELETE writes. */
  def readsWrittenTable(plan: LogicalPlan): Boolean = plan.exists {
    case relation: DataSourceV2Relation => relation.table.isInstanceOf[RowLevelOperationTable]
    case scan: DataSourceV2ScanRelation =>
      scan.relation.table.isInstanceOf[RowLevelOperationTable]
    case _ => false
  }

  /** Whether a type, or one inside of it, is such a type. */
  def contains(dataType: DataType)(isSuch: DataType => Boolean): Boolean =
    dataType.existsRecursively(isSuch)

  /** The plan without the hints that Spark would apply to a join above, and these hints as one. */
  def withoutHints(plan: LogicalPlan): (LogicalPlan, Option[HintInfo]) = {
    val (bare, hints) = EliminateResolvedHint.extractHintsFromPlan(plan)
    if (plan.analyzed) bare.setAnalyzed()
    (bare, hints.reduceOption(_.merge(_, SQLConf.get.hintErrorHandler)))
  }

  /** Whether Spark's own writer creates the files of the provider's tables. */
  def writesByBucket(session: SparkSession, provider: String): Boolean =
    Try(DataSource.lookupDataSource(provider, session.sessionState.conf)).toOption.exists {
      source =>
        classOf[FileFormat].isAssignableFrom(source) ||
        classOf[FileDataSourceV2].isAssignableFrom(source)
    }

  /**
   * Whether a name in the session catalog refers to a table that is not Spark's own. The name has
   * no catalog.
   */
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

  /** The partitioner of keys that are numbers of partitions. */
  def byNumber(numPartitions: Int): Partitioner = new PartitionIdPassthrough(numPartitions)

  /** The results of `f` in the same order. Separate threads compute several at a time. */
  def inThreads[A, B](all: Seq[A], name: String, threads: Int)(f: A => B): Seq[B] =
    ThreadUtils.parmap(all, name, threads)(f)

  /** The memory of an executor in bytes. The setting is in MiB if it has no unit. */
  def executorMemory(conf: SparkConf): Long = conf.get(EXECUTOR_MEMORY) << 20

  /** What Spark does with secrets in texts of plans. */
  def redacted(conf: SQLConf): String => String = Utils.redact(conf.stringRedactionPattern, _)

  /**
   * The error that users know from a query that cannot be analyzed. It has an error class of
   * Spark's, because PySpark 4 fails on an error without one. The chosen class adds nothing to the
   * message.
   */
  def analysisError(message: String, cause: Option[Throwable] = None): AnalysisException =
    new AnalysisException("_LEGACY_ERROR_TEMP_1332", Map("errorMessage" -> message), cause)

  /**
   * Ends a stage of a query as adaptive execution does after an error. A further execution of the
   * plan throws the same error.
   */
  def failStage(stage: ExchangeQueryStageExec, error: Throwable): Unit = {
    // Spark cancels all stages after an error, whatever happens to one of them.
    Try(SparkShims.cancel(stage, error.getMessage))
    // Visible in the package of adaptive execution only.
    Try(errorOf.invoke(stage).asInstanceOf[AtomicReference[Option[Throwable]]].set(Some(error)))
  }

  private lazy val errorOf = classOf[QueryStageExec].getMethod("error")
}
