package io.github.skewext.plan

import org.apache.spark.sql.catalyst.plans.logical._

/**
 * What is known of a join that a technique is wanted for, or has made. Spark carries hints through
 * its optimizer and into adaptive execution, where tags of joins get lost; so it is one.
 *
 * Spark makes hints of its own out of hints, hence the methods.
 */
final class TechniqueHint(val content: TechniqueHint.Content, ofSpark: Option[JoinStrategyHint])
    extends HintInfo(ofSpark) {

  override def copy(strategy: Option[JoinStrategyHint] = this.strategy): HintInfo =
    new TechniqueHint(content, strategy)

  override def merge(other: HintInfo, hintErrorHandler: HintErrorHandler): HintInfo =
    copy(strategy = super.merge(other, hintErrorHandler).strategy)

  override def canEqual(other: Any): Boolean = other.isInstanceOf[TechniqueHint]

  override def equals(other: Any): Boolean = other match {
    case hint: TechniqueHint => hint.content == content && hint.strategy == strategy
    case _ => false
  }

  override def hashCode: Int = (content, strategy).hashCode

  override def toString: String = {
    val ofStrategy = strategy.map(s => s", strategy=$s").getOrElse("")
    s"(skew_join $content$ofStrategy)"
  }
}

object TechniqueHint {

  /** The technique that is no other plan, but settings for the splits of this join. */
  val Adaptive = "adaptive"

  sealed trait Content

  /**
   * A technique that is asked for.
   *
   * @param prepared whether the options have all that takes a job to find out
   */
  case class Wanted(technique: String, options: TechniqueOptions, prepared: Boolean)
      extends Content {
    override def toString: String = s"wants $technique"
  }

  /**
   * A join that a technique has made.
   *
   * @param how what is done, for explanations; filled in when the technique is done
   */
  case class Made(technique: String, options: TechniqueOptions, how: String) extends Content {
    override def toString: String = s"by $technique"
  }

  /** A join that could not be done as it was asked for. */
  case class Refused(technique: String, reason: TechniqueReason.Detailed) extends Content {
    override def toString: String = s"not by $technique"
  }

  def apply(content: Content, strategy: Option[JoinStrategyHint] = None): TechniqueHint =
    new TechniqueHint(content, strategy)

  /** What is known of a join. */
  def of(plan: LogicalPlan): Option[Content] = plan match {
    case join: Join =>
      Seq(join.hint.leftHint, join.hint.rightHint).flatten.collectFirst {
        case hint: TechniqueHint => hint.content
      }
    case join: MarkedBroadcastJoin => Some(join.made)
    case _ => None
  }

  /** The join with this, and what other hints say of strategies. */
  def on(join: Join, content: Content): Join = {
    def withContent(side: Option[HintInfo]) = Some(apply(content, side.flatMap(_.strategy)))
    join.copy(hint = JoinHint(withContent(join.hint.leftHint), withContent(join.hint.rightHint)))
  }
}
