package io.github.skewext.skew

/** What the map tasks from `start` until `end` wrote for one partition. */
case class MapBlocks(start: Int, end: Int, bytes: Long)

/**
 * A part of an input's rows in one partition: those of the map tasks from `startMap` until `endMap`,
 * and of these one of `shares` shares: by what is in the row, or if it is `inRange`, a range of the
 * rows of one block.
 */
case class Slice(
    startMap: Int,
    endMap: Int,
    share: Int,
    shares: Int,
    bytes: Long,
    bytesRead: Long,
    inRange: Boolean = false) {

  /** The same slice where the blocks have these sizes. */
  def of(blocks: Seq[MapBlocks]): Slice = {
    val all = blocks.filter(b => b.start >= startMap && b.end <= endMap).map(_.bytes).sum
    val own = Slice.shareOf(all, share, shares)
    copy(bytes = own, bytesRead = if (inRange) own else all)
  }
}

object Slice {

  /** A block is cut where it is this much larger than a slice should be. */
  private val CutFactor = 1.5

  /** A last slice smaller than this part of the others is not worth a task. */
  private val SmallSlice = 0.2

  /** Packs neighbouring blocks into slices of about `target` bytes, and cuts blocks that are larger. */
  def cut(
      blocks: Seq[MapBlocks],
      target: Double,
      cuttable: Boolean,
      inRanges: Boolean): Seq[Slice] = {
    val slices = Seq.newBuilder[Slice]
    var open: Option[Slice] = None
    def close(): Unit = {
      slices ++= open
      open = None
    }
    blocks.foreach { block =>
      val shares = if (cuttable && block.bytes > CutFactor * target) {
        math.max(2, math.ceil(block.bytes / target).toInt)
      } else {
        1
      }
      if (shares > 1) {
        close()
        slices ++= shared(block, shares, inRanges && block.end == block.start + 1)
      } else {
        open match {
          case Some(s) if s.bytes + block.bytes <= target =>
            val bytes = s.bytes + block.bytes
            open = Some(s.copy(endMap = block.end, bytes = bytes, bytesRead = bytes))
          case _ =>
            close()
            open = Some(Slice(block.start, block.end, 0, 1, block.bytes, block.bytes))
        }
      }
    }
    close()
    mergeSmallLast(slices.result(), target)
  }

  /** All blocks together, cut into slices of `target` bytes. */
  def evenly(blocks: Seq[MapBlocks], target: Double): Seq[Slice] = {
    val bytes = blocks.map(_.bytes).sum
    // What is too much by rounding is not worth a slice.
    val shares = math.max(1, math.ceil(bytes / target - 1e-9).toInt)
    // By what is in the rows: the hot ones may all be in one range.
    shared(MapBlocks(blocks.head.start, blocks.last.end, bytes), shares, inRange = false)
  }

  private def shared(block: MapBlocks, shares: Int, inRange: Boolean): Seq[Slice] =
    (0 until shares).map { share =>
      val bytes = shareOf(block.bytes, share, shares)
      val read = if (inRange) bytes else block.bytes
      Slice(block.start, block.end, share, shares, bytes, read, inRange)
    }

  /** What tasks read that find where the ranges of blocks begin: for each block that is shared so. */
  def searched(slices: Seq[Slice]): Seq[Long] =
    slices.filter(_.inRange).groupBy(_.startMap).values.map(_.map(_.bytes).sum).toSeq

  /** The first shares take what does not divide. */
  private def shareOf(bytes: Long, share: Int, shares: Int): Long =
    bytes / shares + (if (share < bytes % shares) 1 else 0)

  private def mergeSmallLast(slices: Seq[Slice], target: Double): Seq[Slice] = slices match {
    case begin :+ a :+ b if a.shares == 1 && b.shares == 1 && b.bytes < SmallSlice * target =>
      val bytes = a.bytes + b.bytes
      begin :+ a.copy(endMap = b.endMap, bytes = bytes, bytesRead = bytes)
    case _ => slices
  }
}
