package io.github.skewext.bucket.files

import org.apache.spark.sql.execution.datasources.PartitionedFile

/**
 * A file, or row groups of it.
 *
 * @param path the path as in the partitions of a scan.
 * @param fileBytes the length of the whole file.
 * @param bytes the number of bytes to read.
 */
private[skewext] case class FileRange(
    path: String,
    start: Long,
    length: Long,
    fileBytes: Long,
    bytes: Long)

private[skewext] object FileRange {

  /**
   * Returns the parts of a scan's files in the ranges from `from` until `until`. The ranges of a
   * file are adjacent. Each file is read once if each range is selected once, even if files have
   * changed meanwhile: a file that has changed belongs to the first range, as a whole.
   */
  def select(
      files: Array[PartitionedFile],
      ranges: Seq[FileRange],
      from: Int,
      until: Int): Array[PartitionedFile] = {
    val byPath = ranges.zipWithIndex.groupBy(_._1.path)
    files.flatMap { file =>
      byPath.get(file.urlEncodedPath) match {
        case Some(own) if file.start == 0 && own.forall(_._1.fileBytes == file.length) =>
          val selected = own.collect { case (range, i) if i >= from && i < until => range }
          if (selected.isEmpty) None
          else Some(file.copy(start = selected.head.start, length = selected.map(_.length).sum))
        case _ => if (from == 0) Some(file) else None
      }
    }
  }
}
