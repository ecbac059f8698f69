package io.github.skewext.stable

import scala.collection.JavaConverters._

import org.apache.spark.sql.catalyst.FileSourceOptions
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.util.{CaseInsensitiveMap, DropMalformedMode}
import org.apache.spark.sql.execution.datasources.v2.{DataSourceV2Relation, FileTable}
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}

/**
 * Whether a plan reads files whose reader drops records that it cannot read. It reads only columns
 * that the query needs, so it may drop other records for another query of the same plan.
 */
private[skewext] object DropsRecords {

  def apply(plan: LogicalPlan): Boolean = plan.exists {
    case scan: LogicalRelation =>
      scan.relation match {
        case files: HadoopFsRelation => drops(files.options)
        case _ => false
      }
    case scan: DataSourceV2Relation if scan.table.isInstanceOf[FileTable] =>
      drops(scan.options.asScala.toMap)
    case _ => false
  }

  private def drops(options: Map[String, String]): Boolean = {
    val given = CaseInsensitiveMap(options)
    val ofFiles = new FileSourceOptions(given)
    ofFiles.ignoreCorruptFiles || ofFiles.ignoreMissingFiles ||
    given.get("mode").exists(_.equalsIgnoreCase(DropMalformedMode.name))
  }
}
