package io.github.skewext.inputs

import io.github.skewext.facts.JoinHints
import io.github.skewext.platform.{CanonicalOnce, SkewConf}

import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.execution.adaptive.{BroadcastQueryStageExec, LogicalQueryStage, TableCacheQueryStageExec}
import org.apache.spark.sql.internal.SQLConf

/** A join with hints of its inputs. They are a part of the node, as in Spark's `Join`. */
private[skewext] trait HintedInputs extends LogicalPlan with CanonicalOnce[LogicalPlan] {

  /** The join hint of each input, or empty. */
  def hints: Seq[Option[HintInfo]]

  /** Why the hint of an input has no effect; none if there is no hint, or it has an effect. */
  def unusedHint(i: Int): Option[String]

  protected def withoutHints: LogicalPlan

  def hint(i: Int): Option[HintInfo] = hints.lift(i).flatten

  def strategyHint(i: Int): Option[JoinStrategyHint] = hint(i).flatMap(_.strategy)

  /** Whether the hint of an input is for a join that does not broadcast the others. */
  def asksForShuffle(i: Int): Boolean =
    strategyHint(i).exists(hint => hint != BROADCAST && JoinStrategyHint.strategies(hint))

  /** Whether the input may be broadcast: by its hint, as in Spark's own joins, or by its size. */
  def isSmall(i: Int): Boolean = strategyHint(i) match {
    case Some(hint) => hint == BROADCAST
    case None =>
      conf.getConf(SkewConf.MULTI_JOIN_BROADCAST) &&
      JoinHints.canBroadcastBySize(children(i), conf)
  }

  /**
   * Whether broadcasts that were chosen before remain when adaptive execution plans again. Before
   * one has begun, a shuffle may have shown that its input is larger than it was estimated.
   *
   * @param inputs those that are broadcast.
   */
  def keepsBroadcasts(inputs: Seq[Int]): Boolean =
    inputs.exists(isBroadcast) || inputs.forall(isSmall)

  /** Whether adaptive execution has begun to broadcast the input. */
  def isBroadcast(i: Int): Boolean = HintedInputs.isBroadcast(children(i))

  /**
   * Whether adaptive execution has shuffled or broadcast an input. It computes cached tables before
   * it plans an exchange above them again.
   */
  def hasBegun: Boolean = exists {
    case LogicalQueryStage(_, plan) =>
      !plan.collectLeaves().forall(_.isInstanceOf[TableCacheQueryStageExec])
    case _ => false
  }

  /** As Spark does for its own joins; once, and not each time that adaptive execution plans. */
  def warnOfHints(): Unit =
    if (hints.nonEmpty && !exists(_.isInstanceOf[LogicalQueryStage])) {
      for {
        i <- children.indices
        hint <- hint(i)
        reason <- unusedHint(i)
      } SQLConf.get.hintErrorHandler.joinHintNotSupported(hint, reason)
    }

  /** A hint changes nothing about the rows: a cached join without it is the same. */
  override protected def doCanonicalize(): LogicalPlan =
    if (hints.isEmpty || isCanonicalizedPlan) super.doCanonicalize() else withoutHints.canonicalized
}

private[skewext] object HintedInputs {

  private def isBroadcast(input: LogicalPlan): Boolean = input match {
    case LogicalQueryStage(_, plan) => plan.exists(_.isInstanceOf[BroadcastQueryStageExec])
    case other => other.children.size == 1 && isBroadcast(other.children.head)
  }

  /** The hints of a node, from those of its inputs. */
  def hints(ofInputs: Seq[Option[HintInfo]]): Seq[Option[HintInfo]] =
    if (ofInputs.exists(_.isDefined)) ofInputs else Nil
}
