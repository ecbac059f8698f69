package io.github.skewext.skew.plan

/**
 * The estimated cost of writing the output of a partition whose hot keys have many pairs of rows.
 * The unit is the cost of reading a byte of input.
 *
 * @param slices the number of slices with which each costs as much as a slice should.
 */
private[skew] case class HotOutput(
    cost: Double,
    byInput: Seq[Double],
    hotRows: Seq[Double],
    slices: Double) {

  /** The most slices of the input that are not too uneven. */
  def maxSlices(input: Int): Double = math.max(2.0, hotRows(input) / HotOutput.HotRowsOfSlice)
}

private[skew] object HotOutput {

  /**
   * The least number of rows with hot keys in a slice. With fewer rows, slices would be too uneven.
   */
  private val HotRowsOfSlice = 8

  /**
   * The partitions whose output of hot keys is much larger than the input of others, so that they
   * take longer whatever reads their output. The comparison counts a byte of output like a byte of
   * input.
   */
  def of(
      inputs: Seq[SkewInput],
      settings: SkewSettings,
      output: IndexedSeq[PartitionOutput]): Map[Int, HotOutput] = if (output.isEmpty) {
    Map.empty
  } else {
    val read = inputs.head.bytes.indices.map(p => inputs.map(_.bytes(p)).sum)
    val moved = read.zip(output).map { case (bytes, o) => bytes + o.bytes.toLong }
    val threshold = settings.skewThreshold(moved)
    val target = settings.targetBytes(read, settings.skewThreshold(read))
    output.indices
      .filter(p => output(p).bytes > threshold)
      .map { p =>
        val o = output(p)
        val cost = SkewPlanner.OutputCost * o.bytes
        p -> HotOutput(
          cost,
          o.byInput.map(SkewPlanner.OutputCost * _),
          o.hotRows,
          (read(p) + cost) / target)
      }
      .toMap
  }
}
