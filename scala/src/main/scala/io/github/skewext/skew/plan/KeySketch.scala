package io.github.skewext.skew.plan

/**
 * A count-min sketch of the keys in a sample of a shuffle's rows, with a fixed number of counters
 * per partition. Sizes do not show a key that has a few thousand rows on both sides of a join. In
 * the counters of both sides it stands out.
 *
 * Each sampled row is counted in two tables, in cells chosen by different bits of its key's hash.
 * Two keys that share a cell in one table rarely share one in the other.
 *
 * @param every the sampling interval: one row in `every` is sampled.
 * @param counts the counters, in the order of [[SketchLayout]].
 */
case class KeySketch(layout: SketchLayout, every: Int, counts: Array[Int]) {

  /** The number of sampled rows of each partition, without rows whose key has a null. */
  def sampled: IndexedSeq[Long] = (0 until layout.partitions).map { partition =>
    val first = layout.firstCell(0, partition)
    (first until first + layout.width).map(counts(_).toLong).sum
  }

  /** The counters of one partition, folded into `width` cells. */
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
 * The layout of the counters.
 *
 * @param partitions the number of partitions of the shuffle.
 * @param width the number of cells per partition and table, a power of two. Sketches of one join
 *              may differ in it; the wider one can be folded.
 */
case class SketchLayout(partitions: Int, width: Int) {

  def size: Int = SketchLayout.Tables * partitions * width

  def firstCell(table: Int, partition: Int): Int = (table * partitions + partition) * width

  def cell(table: Int, hash: Int): Int = cell(table, hash, Math.floorMod(hash, partitions))

  /** @param hash the hash whose remainder is the partition of the row in Spark. */
  def cell(table: Int, hash: Int, partition: Int): Int = {
    // All keys of a partition have the same remainder, so the lowest bits alone do not suffice.
    val mixed = (hash * SketchLayout.Mix >>> 32).toInt
    firstCell(table, partition) +
      ((mixed >>> (table * SketchLayout.MaxWidthBits)) & (width - 1))
  }
}

object SketchLayout {

  val Tables = 2

  private val MaxWidthBits = 8

  /** The least width. With fewer cells, a hot key does not stand out. */
  private val MinWidth = 4

  /** The most counters of one map task: 256 KiB of memory. */
  private val MaxCells = 1L << 16

  /**
   * The most counters that all map tasks of a shuffle send to the driver, at about one byte each.
   */
  private val MaxCellsSent = 1L << 27

  // 2^64 divided by the golden ratio.
  private val Mix = 0x9e3779b97f4a7c15L

  /** The widest layout within the limits, or None if there is none. */
  def of(partitions: Int, mapTasks: Int): Option[SketchLayout] = {
    val cells = math.min(MaxCells, MaxCellsSent / math.max(1, mapTasks))
    val width = java.lang.Long.highestOneBit(cells / (Tables.toLong * partitions)).toInt
    if (width < MinWidth) None
    else Some(SketchLayout(partitions, math.min(width, 1 << MaxWidthBits)))
  }
}
