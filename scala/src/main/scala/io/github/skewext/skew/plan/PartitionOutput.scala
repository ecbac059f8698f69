package io.github.skewext.skew.plan

/**
 * The estimated output of the join in one partition, for keys that have many rows in several
 * inputs. The estimate covers hot keys only: the output of other keys is unknown, and small.
 *
 * @param bytes the size of all these output rows.
 * @param byInput for every input, the size of the output rows that are divided if this input is
 *                sliced.
 * @param hotRows for every input, the number of its rows with such keys.
 */
case class PartitionOutput(bytes: Double, byInput: Seq[Double], hotRows: Seq[Double])

object PartitionOutput {

  /**
   * The least number of samples in the cell of a hot key, however even the other cells are. With
   * fewer samples, the square of the error is as large as the estimate.
   */
  private val MinSamples = 8

  /**
   * The distance between a hot cell and the median of the cells of its partition, in standard
   * deviations.
   */
  private val Deviations = 6.0

  /** The factor from a median absolute deviation to a standard deviation. */
  private val OfMedian = 1.4826

  /**
   * @param sketches the sketches of the inputs; None for an input without output rows or without
   *                 key sampling.
   * @param rowBytes the size of an output row.
   * @return the estimate for each partition, or nothing if fewer than two inputs have comparable
   *         sketches.
   */
  def of(sketches: Seq[Option[KeySketch]], rowBytes: Double): IndexedSeq[PartitionOutput] = {
    val known = sketches.flatten
    if (known.size < 2 || known.map(_.layout.partitions).distinct.size > 1) {
      IndexedSeq.empty
    } else {
      val width = known.map(_.layout.width).min
      (0 until known.head.layout.partitions).map { p =>
        // Keys that share a cell in one table rarely share one in the other.
        (0 until SketchLayout.Tables)
          .map(table => inTable(sketches.map(_.map(excess(_, table, p, width))), width, rowBytes))
          .minBy(_.bytes)
      }
    }
  }

  private def inTable(
      excess: Seq[Option[Array[Double]]],
      width: Int,
      rowBytes: Double): PartitionOutput = {
    val byInput, hotRows = new Array[Double](excess.size)
    var bytes = 0.0
    for (cell <- 0 until width) {
      val hot = excess.indices.filter(i => excess(i).exists(_(cell) > 0))
      if (hot.size > 1) {
        val rows = hot.map(i => excess(i).get(cell))
        val cellBytes = rows.product * rowBytes
        bytes += cellBytes
        hot.zip(rows).foreach { case (i, n) =>
          byInput(i) += cellBytes
          hotRows(i) += n
        }
      }
    }
    PartitionOutput(bytes, byInput.toIndexedSeq, hotRows.toIndexedSeq)
  }

  /** The number of rows by which each cell exceeds the median, or 0 if the cell is not hot. */
  private def excess(sketch: KeySketch, table: Int, partition: Int, width: Int): Array[Double] = {
    val cells = sketch.cells(table, partition, width)
    if (cells.forall(_ < MinSamples)) {
      new Array[Double](width)
    } else {
      // A median is robust against a single hot key.
      val middle = RowWeights.median(cells.map(_.toDouble).toIndexedSeq)
      val deviation = math.max(
        OfMedian * RowWeights.median(cells.map(c => math.abs(c - middle)).toIndexedSeq),
        math.sqrt(math.max(1.0, middle)))
      val least = math.max(MinSamples, middle + Deviations * deviation)
      cells.map(c => if (c >= least) (c - middle) * sketch.every else 0.0)
    }
  }
}
