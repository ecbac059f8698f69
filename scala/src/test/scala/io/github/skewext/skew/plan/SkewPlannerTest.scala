package io.github.skewext.skew.plan

import io.github.skewext.join.InputRole
import org.scalatest.funsuite.AnyFunSuite

/** Inputs for decisions about splits, without Spark. */
trait SkewPlannerTest extends AnyFunSuite {

  protected val settings = SkewSettings(
    factor = 5,
    thresholdBytes = 256,
    advisoryBytes = 64,
    maxSlices = 100,
    maxRereadFactor = 4,
    minGain = 1.5,
    marking = false)

  /** Four partitions; partition 1 has the bytes of these map blocks. */
  protected def input(role: InputRole, blocks: Long*): SkewInput = input(role, true, blocks: _*)

  protected def input(role: InputRole, cuttable: Boolean, blocks: Long*): SkewInput = SkewInput(
    role,
    InputSizes(
      IndexedSeq(10L, blocks.sum, 10L, 10L),
      _ => blocks.zipWithIndex.map { case (b, m) => MapBlocks(m, m + 1, b) }),
    cuttable = () => cuttable)

  protected def withSizes(input: SkewInput)(change: InputSizes => InputSizes): SkewInput =
    input.copy(sizes = change(input.sizes))

  protected def weighted(input: SkewInput, weights: Double*): SkewInput =
    withSizes(input)(_.copy(weights = weights.toIndexedSeq))

  /** The splits, or the reason without its figures. */
  protected def planned(
      inputs: Seq[SkewInput],
      settings: SkewSettings,
      output: IndexedSeq[PartitionOutput] = IndexedSeq.empty)
      : Either[SkewReason, Seq[PartitionSplit]] =
    SkewPlanner.plan(inputs, settings, output).left.map(_.reason).map(_.partitions)

  protected def only(plan: Either[SkewReason, Seq[PartitionSplit]]): PartitionSplit = plan match {
    case Right(Seq(split)) => split
    case other => fail(s"Not one split: $other")
  }
}
