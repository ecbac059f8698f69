package io.github.skewext.technique

import java.net.URI

import scala.util.Try

import org.apache.hadoop.fs.Path
import org.apache.parquet.hadoop.ParquetFileReader
import org.apache.parquet.hadoop.util.HadoopInputFile

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.{IsNotNull, PredicateHelper}
import org.apache.spark.sql.catalyst.plans.logical.statsEstimation.EstimationUtils
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan}
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}

/**
 * How many rows a plan has, as far as that can be told without a job: by statistics, or by the footers
 * of a few Parquet files, of which the others are taken to have as many rows a byte. Of conditions
 * nobody knows how many rows they leave, but of the `IS NOT NULL` that Spark infers from the join.
 */
private[technique] object FileRows extends PredicateHelper {

  /** Of so many files the footers are read. */
  private val Footers = 4

  def of(session: SparkSession, plan: LogicalPlan): Option[Double] =
    plan.stats.rowCount.map(_.toDouble).orElse {
      plan.collectLeaves() match {
        case Seq(LogicalRelation(files: HadoopFsRelation, _, _, _)) if keepsRows(plan) =>
          files.fileFormat match {
            case _: ParquetFileFormat => Try(inParquet(session, files)).toOption.flatten
            case _ => None
          }
        case _ => None
      }
    }

  /** What the size of the plan says. */
  def bySize(plan: LogicalPlan): Double =
    (plan.stats.sizeInBytes / EstimationUtils.getSizePerRow(plan.output).max(1)).toDouble

  private def keepsRows(plan: LogicalPlan): Boolean = AutoJoin.isTable(plan) && !plan.exists {
    case Filter(condition, _) =>
      splitConjunctivePredicates(condition).exists(!_.isInstanceOf[IsNotNull])
    case _ => false
  }

  private def inParquet(session: SparkSession, files: HadoopFsRelation): Option[Double] = {
    val names = files.location.inputFiles
    val conf = session.sessionState.newHadoopConf()
    val some = math.min(names.length, Footers)
    val seen = (0 until some).map { n =>
      val file =
        HadoopInputFile.fromPath(new Path(new URI(names(n * names.length / some))), conf)
      val reader = ParquetFileReader.open(file)
      try {
        (reader.getRecordCount.toDouble, file.getLength.toDouble)
      } finally {
        reader.close()
      }
    }
    val bytes = seen.map(_._2).sum
    if (bytes > 0) Some(seen.map(_._1).sum / bytes * files.location.sizeInBytes) else None
  }
}
