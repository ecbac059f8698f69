package io.github.skewext.rows

/** Sorts the rows of the inputs with Spark's external sorters. See [[SpillableRows]]. */
private[skewext] trait SpilledInputs {

  protected def sorters: InputSorters

  /** Whether there is memory for the first sorter. */
  final def canBegin: Boolean = sorters.canBegin

  def insert(input: Int, hash: Long, base: AnyRef, offset: Long, size: Int): Unit

  /**
   * Ends the inserts of an input. Inputs are inserted one after the other, because a sorter can
   * spill for another one only while it is being read.
   */
  def finishInput(input: Int): Unit

  /** Gives memory to others of the task, before the inserts of an input have ended. */
  final def spill(): Unit = sorters.spill()

  def free(): Unit

  /** Bytes written to disk so far. */
  def spillSize: Long

  /** Peak memory in bytes. */
  def peakMemory: Long
}
