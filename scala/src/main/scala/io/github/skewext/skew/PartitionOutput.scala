package io.github.skewext.skew

import io.github.skewext.sketch.{KeySketch, SketchLayout}

/**
 * What the join of one partition is estimated to give for keys that have many rows in several
 * inputs. Only what stands out: the other rows that come out are not known, and not many.
 *
 * @param bytes of all such rows
 * @param byInput of the rows that are divided, too, if rows of that input are
 * @param hotRows how many rows each input has of such keys
 */
case class PartitionOutput(bytes: Double, byInput: Seq[Double], hotRows: Seq[Double])

object PartitionOutput {

  /**
   * Of how many samples a cell must be to stand out, however even the others are. For fewer the
   * square of the error is as large as what is to be found.
   */
  private val MinSamples = 8

  /** How far above the middle of a partition's cells it must be, in what would be deviations. */
  private val Deviations = 6.0

  /** From the median of absolute differences to a standard deviation. */
  private val OfMedian = 1.4826

  /**
   * @param sketches of the inputs; none of one whose rows do not come out, or were not counted
   * @param rowBytes how large a row is that comes out
   * @return what is estimated of each partition; nothing if there is nothing to go by
   */
  def of(sketches: Seq[Option[KeySketch]], rowBytes: Double): IndexedSeq[PartitionOutput] = {
    val known = sketches.flatten
    if (known.size < 2 || known.map(_.layout.partitions).distinct.size > 1) {
      IndexedSeq.empty
    } else {
      val width = known.map(_.layout.width).min
      (0 until known.head.layout.partitions).map { p =>
        // What is in one cell by accident is not so in the other table.
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

  /** By how many rows each cell stands out, or 0. */
  private def excess(sketch: KeySketch, table: Int, partition: Int, width: Int): Array[Double] = {
    val cells = sketch.cells(table, partition, width)
    if (cells.forall(_ < MinSamples)) {
      new Array[Double](width)
    } else {
      // One hot key more or less does not move a median.
      val middle = median(cells.map(_.toDouble))
      val deviation = math.max(
        OfMedian * median(cells.map(c => math.abs(c - middle))),
        math.sqrt(math.max(1.0, middle)))
      val least = math.max(MinSamples, middle + Deviations * deviation)
      cells.map(c => if (c >= least) (c - middle) * sketch.every else 0.0)
    }
  }

  private def median(values: Array[Double]): Double = {
    val sorted = values.sorted
    (sorted(sorted.length / 2) + sorted((sorted.length - 1) / 2)) / 2
  }
}
