package io.github.skewext.sketch

/**
 * How often keys were seen in a sample of a shuffle's rows: not by key, but in a fixed number of
 * counters for each partition. Sizes do not show a key of which both sides of a join have a few
 * thousand rows; in the counters of both it stands out.
 *
 * Each sampled row is counted twice, in cells chosen by different bits of its key's hash: what two
 * keys of one cell pretend together, they hardly ever pretend in both.
 *
 * @param every of how many rows one is sampled
 * @param counts as [[SketchLayout]] arranges them
 */
case class KeySketch(layout: SketchLayout, every: Int, counts: Array[Int]) {

  /** How many rows of each partition were sampled; those that have no key are not counted. */
  def sampled: IndexedSeq[Long] = (0 until layout.partitions).map { partition =>
    val first = layout.firstCell(0, partition)
    (first until first + layout.width).map(counts(_).toLong).sum
  }

  /** The counters of one partition, in `width` cells. */
  def cells(table: Int, partition: Int, width: Int): Array[Int] = {
    val folded = new Array[Int](width)
    val first = layout.firstCell(table, partition)
    var c = 0
    while (c < layout.width) {
      folded(c & (width - 1)) += counts(first + c)
      c += 1
    }
    folded
  }
}

/**
 * Which counters there are, and which of them a key is counted in.
 *
 * @param partitions of the shuffle
 * @param width cells of one partition in one table, a power of two: sketches of one join may differ
 *              in it, and the wider one can be folded
 */
case class SketchLayout(partitions: Int, width: Int) {

  def size: Int = SketchLayout.Tables * partitions * width

  def firstCell(table: Int, partition: Int): Int = (table * partitions + partition) * width

  def cell(table: Int, hash: Int): Int = cell(table, hash, Math.floorMod(hash, partitions))

  /** @param hash by which Spark chooses the partition of a row, its remainder */
  def cell(table: Int, hash: Int, partition: Int): Int = {
    // All keys of a partition have the same remainder, so the lowest bits alone would not do.
    val mixed = (hash * SketchLayout.Mix >>> 32).toInt
    firstCell(table, partition) +
      ((mixed >>> (table * SketchLayout.MaxWidthBits)) & (width - 1))
  }
}

object SketchLayout {

  val Tables = 2

  private val MaxWidthBits = 8

  /** Fewer cells do not tell a hot key from what is usual. */
  private val MinWidth = 4

  /** Counters in the memory of one map task: 256 KiB. */
  private val MaxCells = 1L << 16

  /** Counters that the driver is sent by all map tasks of a shuffle, of about a byte each. */
  private val MaxCellsSent = 1L << 27

  // 2 to the 64 over the golden ratio.
  private val Mix = 0x9e3779b97f4a7c15L

  /** The widest layout within the limits, if there is one. */
  def of(partitions: Int, mapTasks: Int): Option[SketchLayout] = {
    val cells = math.min(MaxCells, MaxCellsSent / math.max(1, mapTasks))
    val width = java.lang.Long.highestOneBit(cells / (Tables.toLong * partitions)).toInt
    if (width < MinWidth) None
    else Some(SketchLayout(partitions, math.min(width, 1 << MaxWidthBits)))
  }
}
