package io.github.skewext.skew.plan

/** The output of the map tasks from `start` until `end` for one partition. */
case class MapBlocks(start: Int, end: Int, bytes: Long)

/**
 * A part of an input's rows in one partition: one of `shares` shares of the rows that the map tasks
 * from `startMap` until `endMap` wrote. The row content selects the share ([[RowShare]]).
 *
 * @param bytes size of this slice
 * @param bytesRead size of all rows that its task fetches, including those of other shares
 */
case class Slice(
    startMap: Int,
    endMap: Int,
    share: Int,
    shares: Int,
    bytes: Long,
    bytesRead: Long) {

  /** The same slice of blocks with other sizes. */
  def of(blocks: Seq[MapBlocks]): Slice = {
    val all = blocks.filter(b => b.start >= startMap && b.end <= endMap).map(_.bytes).sum
    copy(bytes = Slice.shareOf(all, share, shares), bytesRead = all)
  }
}

object Slice {

  /** A block is cut if its size exceeds the target size of a slice by this factor. */
  private val CutFactor = 1.5

  /** A last slice smaller than this fraction of the target is not worth a task. */
  private val SmallSlice = 0.2

  /**
   * Packs neighbouring blocks into slices of about `target` bytes, and cuts larger blocks into
   * shares.
   */
  def cut(blocks: Seq[MapBlocks], target: Double, cuttable: Boolean): Seq[Slice] = {
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
        slices ++= shared(block, shares)
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

  /** Cuts all blocks together into shares of `target` bytes. */
  def evenly(blocks: Seq[MapBlocks], target: Double): Seq[Slice] = {
    val bytes = blocks.map(_.bytes).sum
    // A rounding error is not worth a slice.
    val shares = math.max(1, math.ceil(bytes / target - 1e-9).toInt)
    shared(MapBlocks(blocks.head.start, blocks.last.end, bytes), shares)
  }

  private def shared(block: MapBlocks, shares: Int): Seq[Slice] =
    (0 until shares).map { share =>
      val bytes = shareOf(block.bytes, share, shares)
      Slice(block.start, block.end, share, shares, bytes, block.bytes)
    }

  /** The size of a share. The first shares take the remainder of the division. */
  private def shareOf(bytes: Long, share: Int, shares: Int): Long =
    bytes / shares + (if (share < bytes % shares) 1 else 0)

  private def mergeSmallLast(slices: Seq[Slice], target: Double): Seq[Slice] = slices match {
    case begin :+ a :+ b if a.shares == 1 && b.shares == 1 && b.bytes < SmallSlice * target =>
      val bytes = a.bytes + b.bytes
      begin :+ a.copy(endMap = b.endMap, bytes = bytes, bytesRead = bytes)
    case _ => slices
  }
}
