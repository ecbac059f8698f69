package io.github.skewext.facts

import scala.collection.JavaConverters._

import org.apache.spark.sql.catalyst.FileSourceOptions
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Project}
import org.apache.spark.sql.catalyst.util.{CaseInsensitiveMap, DropMalformedMode}
import org.apache.spark.sql.execution.datasources.v2.{DataSourceV2Relation, FileTable}
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation, TextBasedFileFormat}
import org.apache.spark.sql.internal.SQLConf

/**
 * Whether a plan reads files whose reader drops records that it cannot read, or evaluates the column
 * of such records. The reader reads only columns that the query needs, so other records may be
 * malformed for another query of the same plan.
 */
private[skewext] object DropsRecords {

  def apply(plan: LogicalPlan): Boolean = {
    val scans = plan.collect {
      case scan: LogicalRelation =>
        scan.relation match {
          case files: HadoopFsRelation => Some(Scan(scan, files.fileFormat.getClass, files.options))
          case _ => None
        }
      case scan: DataSourceV2Relation =>
        scan.table match {
          case files: FileTable =>
            Some(Scan(scan, files.fallbackFileFormat, scan.options.asScala.toMap))
          case _ => None
        }
    }.flatten
    scans.exists(_.drops) || evaluates(plan, AttributeSet(scans.flatMap(_.corrupt)))
  }

  /** Whether a node does more with a column than to pass it on. */
  private def evaluates(plan: LogicalPlan, columns: AttributeSet): Boolean =
    columns.nonEmpty && plan.exists {
      case Project(list, _) =>
        list.exists(e => !e.isInstanceOf[Attribute] && e.references.intersect(columns).nonEmpty)
      case other => other.references.intersect(columns).nonEmpty
    }

  private case class Scan(plan: LogicalPlan, format: Class[_], options: Map[String, String]) {

    private val given = CaseInsensitiveMap(options)

    def drops: Boolean = {
      val ofFiles = new FileSourceOptions(given)
      ofFiles.ignoreCorruptFiles || ofFiles.ignoreMissingFiles ||
      given.get("mode").exists(_.equalsIgnoreCase(DropMalformedMode.name))
    }

    /** The column in which the reader returns malformed records. */
    def corrupt: Option[Attribute] =
      if (classOf[TextBasedFileFormat].isAssignableFrom(format)) {
        val name = given
          .getOrElse("columnNameOfCorruptRecord", SQLConf.get.columnNameOfCorruptRecord)
        plan.output.find(_.name.equalsIgnoreCase(name))
      } else {
        None
      }
  }
}
