package io.github.skewext.skew.split

import scala.util.Try

import org.apache.spark.sql.connector.read.InputPartition

/**
 * The sizes of the splits of a scan. DataSource V2 has no interface for them, and Iceberg's class
 * for them is not public. Splits of other sources count as the average one.
 */
private[split] object SplitBytes {

  private final val Iceberg = "org.apache.iceberg."

  /**
   * The bytes of each split: not 0, which would mean that it has no rows.
   *
   * @param total the bytes of all splits, in the columns that are read, as the table reports.
   */
  def of(splits: Seq[InputPartition], total: Long): Seq[Long] = {
    val inFiles = splits.flatMap(inFilesOf)
    val sum = inFiles.map(_.toDouble).sum
    val bytes =
      if (inFiles.size == splits.size && sum > 0) inFiles.map(bytes => total * (bytes / sum))
      else splits.map(_ => total.toDouble / splits.size)
    bytes.map(each => math.max(1L, each.toLong))
  }

  /** Of Iceberg: the bytes of the parts of files, with their files of deletes. */
  private def inFilesOf(split: InputPartition): Option[Long] =
    if (split.getClass.getName.startsWith(Iceberg)) {
      Try(called(called(split, "taskGroup"), "sizeBytes")).toOption.collect {
        case bytes: java.lang.Long => bytes.longValue
      }
    } else None

  private def called(on: AnyRef, name: String): AnyRef = {
    val method = on.getClass.getMethod(name)
    method.setAccessible(true)
    method.invoke(on)
  }
}
