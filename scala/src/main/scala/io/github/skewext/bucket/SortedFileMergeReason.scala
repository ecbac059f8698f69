package io.github.skewext.bucket

import org.apache.spark.sql.catalyst.trees.{TreeNode, TreeNodeTag}

/**
 * Why Spark sorts the rows of a table with sorted buckets, instead of a merge of its files. This is
 * the only list of these reasons. The scan of the table carries its reason as a tag.
 */
sealed abstract class SortedFileMergeReason(val text: String) extends Product with Serializable

object SortedFileMergeReason {

  case object SwitchedOff
      extends SortedFileMergeReason("spark.skewext.bucket.merge.enabled is false")

  case object OtherOrder
      extends SortedFileMergeReason("the files are sorted by other columns than the query needs")

  case object Format
      extends SortedFileMergeReason("only Parquet and ORC files preserve their sort order")

  case object NonDeterministic
      extends SortedFileMergeReason("an expression above the scan is not deterministic")

  case object FileNames extends SortedFileMergeReason("a file name contains no bucket number")

  case object ManyFiles extends SortedFileMergeReason("a bucket has more files than a task merges")

  case object ManyFilesOfMultiJoin
      extends SortedFileMergeReason(
        "a bucket has more files than a task of a multi-way join merges")

  case object LargeFiles
      extends SortedFileMergeReason(
        "merging the files of a bucket could take more memory than " +
          "spark.skewext.bucket.merge.maxBytes")

  case object OtherInputs extends SortedFileMergeReason("another input of the join is not sorted")

  /** All reasons, in the order of the documentation. */
  val all: Seq[SortedFileMergeReason] = Seq(
    OtherOrder,
    ManyFiles,
    ManyFilesOfMultiJoin,
    LargeFiles,
    OtherInputs,
    NonDeterministic,
    Format,
    FileNames,
    SwitchedOff)

  private val tag = TreeNodeTag[SortedFileMergeReason]("skewext.notMerged")

  def set(scan: TreeNode[_], reason: SortedFileMergeReason): Unit = scan.setTagValue(tag, reason)

  def clear(scan: TreeNode[_]): Unit = scan.unsetTagValue(tag)

  /** The reason for the sort above the scan of a table with sorted buckets. */
  def of(scan: TreeNode[_]): Option[SortedFileMergeReason] = scan.getTagValue(tag)
}
