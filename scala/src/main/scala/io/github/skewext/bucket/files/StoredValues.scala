package io.github.skewext.bucket.files

import java.time.LocalDate

import io.github.skewext.facts.ComparedByBytes

import org.apache.spark.sql.execution.FileSourceScanExec
import org.apache.spark.sql.execution.datasources.FileFormat
import org.apache.spark.sql.execution.datasources.orc.OrcFileFormat
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat
import org.apache.spark.sql.skewext.SparkShims
import org.apache.spark.sql.types._

/**
 * Whether the values that a scan reads are the values of the rows that were written. A writer
 * hashes and sorts the latter. If a file format changes a value, it has another hash, and rows that
 * differed before may be equal.
 */
private[skewext] object StoredValues {

  /**
   * Whether the files are Parquet or ORC, so that `ofType` and `isExact` apply. For example, CSV
   * files lose spaces, and CSV and JSON files lose the microseconds of timestamps.
   */
  def ofFormat(scan: FileSourceScanExec): Boolean = ofFormat(scan.relation.fileFormat)

  def ofFormat(format: FileFormat): Boolean = format match {
    case _: ParquetFileFormat | _: OrcFileFormat => true
    case _ => false
  }

  /**
   * Whether the values of a type are read in the order in which they were written. Local times of
   * ORC files are not: they repeat when clocks are set back. Nor are structs and arrays if values
   * inside may change: where these are equal then, the next ones decide.
   */
  def keepOrder(scan: FileSourceScanExec, dataType: DataType): Boolean = dataType match {
    case TimestampType => scan.relation.fileFormat.isInstanceOf[ParquetFileFormat]
    case _: StructType | _: ArrayType => areKeptIn(dataType)
    case _ => true
  }

  private def areKeptIn(dataType: DataType): Boolean = dataType match {
    case struct: StructType => struct.forall(field => areKeptIn(field.dataType))
    case ArrayType(element, _) => areKeptIn(element)
    case other => ofType(other)
  }

  /**
   * Whether equal values of a type have equal hashes, and are read as they were written, except for
   * the values that `isExact` excludes. Timestamps are not: Parquet files may store milliseconds,
   * and ORC files store local times, which are other instants in another time zone. Nor are values
   * of TIME, which have nanoseconds: Parquet files store microseconds.
   */
  def ofType(dataType: DataType): Boolean = dataType match {
    case TimestampType => false
    case time if SparkShims.isTime(time) => false
    case FloatType | DoubleType => true
    case other => ComparedByBytes(other)
  }

  /**
   * Whether a value of such a type was surely written with the same hash. Tables of older versions
   * of Spark have -0.0 and 0.0 in different buckets, although they are equal. Dates before the
   * Gregorian calendar may be stored in the Julian calendar, which changes some of them.
   */
  def isExact(value: Any, dataType: DataType): Boolean = (value, dataType) match {
    case (f: Float, _) => f != 0.0f
    case (d: Double, _) => d != 0.0d
    case (day: Int, DateType) => day > FirstGregorianDay
    case _ => true
  }

  /** Dates that the Julian calendar does not have are stored as this one. */
  private val FirstGregorianDay = LocalDate.of(1582, 10, 15).toEpochDay
}
