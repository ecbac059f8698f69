package io.github.skewext.execution.split

/** What the map tasks from `start` until `end` wrote for one partition. */
case class MapBlocks(start: Int, end: Int, bytes: Long)

/**
 * A part of an input's rows in one partition: those of the map tasks from `startMap` until `endMap`,
 * and of these one of `shares` shares, by what is in the row ([[RowShare]]).
 *
 * @param bytes its own
 * @param bytesRead all that has to be fetched for it: a task with a share reads the others as well
 */
case class Slice(
    startMap: Int,
    endMap: Int,
    share: Int,
    shares: Int,
    bytes: Long,
    bytesRead: Long) {

  /** The same slice where the blocks have these sizes. */
  def of(blocks: Seq[MapBlocks]): Slice = {
    val all = blocks.filter(b => b.start >= startMap && b.end <= endMap).map(_.bytes).sum
    copy(bytes = Slice.shareOf(all, share, shares), bytesRead = all)
  }
}

object Slice {

  /** A block is cut where it is this much larger than a slice should be. */
  private val CutFactor = 1.5

  /** A last slice smaller than this part of the others is not worth a task. */
  private val SmallSlice = 0.2

  /** Packs neighbouring blocks into slices of about `target` bytes, and cuts blocks that are larger. */
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

  /** All blocks together, cut into slices of `target` bytes. */
  def evenly(blocks: Seq[MapBlocks], target: Double): Seq[Slice] = {
    val bytes = blocks.map(_.bytes).sum
    // What is too much by rounding is not worth a slice.
    val shares = math.max(1, math.ceil(bytes / target - 1e-9).toInt)
    shared(MapBlocks(blocks.head.start, blocks.last.end, bytes), shares)
  }

  private def shared(block: MapBlocks, shares: Int): Seq[Slice] =
    (0 until shares).map { share =>
      val bytes = shareOf(block.bytes, share, shares)
      Slice(block.start, block.end, share, shares, bytes, block.bytes)
    }

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
