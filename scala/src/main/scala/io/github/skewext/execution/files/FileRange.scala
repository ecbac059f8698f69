package io.github.skewext.execution.files

import org.apache.spark.sql.execution.datasources.PartitionedFile

/**
 * A file, or row groups of it.
 *
 * @param path as files are called in partitions of a scan
 * @param fileBytes how long the whole file is
 * @param bytes how much is to be read of it
 */
private[skewext] case class FileRange(
    path: String,
    start: Long,
    length: Long,
    fileBytes: Long,
    bytes: Long)

private[skewext] object FileRange {

  /**
   * What the ranges from `from` until `until` have of the files that a scan reads. All ranges of a
   * file follow each other. Whatever the files are by now, each is read once if each range is: one
   * that is not as it was goes with the first range, as one file.
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
