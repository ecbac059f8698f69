package io.github.skewext.technique.hint

import io.github.skewext.platform.Reason

import org.apache.spark.sql.catalyst.plans.JoinType
import org.apache.spark.sql.catalyst.plans.logical._

/**
 * A hint with the technique of a join, requested or applied. It is a hint because Spark carries
 * hints through its optimizer and into adaptive execution, and loses tags of joins.
 *
 * Spark creates new hints from existing ones, hence `copy` and `merge`.
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

  /** The technique that does not change the plan, but the settings for the splits of this join. */
  val Adaptive = "adaptive"

  sealed trait Content

  /**
   * A requested technique.
   *
   * @param prepared whether the options already contain the results of jobs, such as hot keys.
   * @param inBarrierStage whether no shuffle is certain between the join and a barrier operator.
   * @param called the join as the query has it, if it is known.
   */
  case class Wanted(
      technique: String,
      options: TechniqueOptions,
      prepared: Boolean,
      inBarrierStage: Boolean = false,
      called: Option[Call] = None)
      extends Content {
    override def toString: String = s"wants $technique"
  }

  /**
   * A join as the query has it. Predicates above may change its type, and add keys.
   *
   * @param keyColumns the number of columns that it compares.
   */
  case class Call(joinType: JoinType, keyColumns: Int)

  /**
   * A join that a technique has planned.
   *
   * @param how a description for explanations, set when the technique is complete.
   * @param broadcasts whether the technique broadcasts a side, and not Spark or a hint of the user.
   */
  case class Made(
      technique: String,
      options: TechniqueOptions,
      how: String = "",
      broadcasts: Boolean = false)
      extends Content {
    override def toString: String = s"by $technique"
  }

  /**
   * A join on equal keys that Spark does not know of: a part of a join with OR.
   *
   * @param join the description of the join with OR, for explanations.
   * @param reads how often the plan reads its left and its right side.
   */
  case class OfOrJoin(join: String, reads: Seq[Int]) extends Content {
    override def toString: String = "of a join with OR"
  }

  /**
   * A join by a range that is cut into ranges of values, whose numbers are its equal keys.
   *
   * @param form of the range, for explanations.
   * @param number of ranges, at most.
   */
  case class OfRanges(form: String, number: Int) extends Content {
    override def toString: String = s"cut into $number ranges"
  }

  /** A join whose requested technique cannot be applied. */
  case class Refused(technique: String, reason: Reason.Detailed[Reason]) extends Content {
    override def toString: String = s"not by $technique"
  }

  def apply(content: Content, strategy: Option[JoinStrategyHint] = None): TechniqueHint =
    new TechniqueHint(content, strategy)

  /** The technique of a join, if there is one. */
  def of(plan: LogicalPlan): Option[Content] = plan match {
    case join: Join =>
      Seq(join.hint.leftHint, join.hint.rightHint).flatten.collectFirst {
        case hint: TechniqueHint => hint.content
      }
    case join: PlannedByTechnique => Some(join.made)
    case _ => None
  }

  /** Whether the plan of the join may read a side several times. */
  def mayReadTwice(plan: LogicalPlan): Boolean = of(plan).exists {
    case _: Made => true
    case OfOrJoin(_, reads) => reads.exists(_ > 1)
    case _ => false
  }

  /** The join strategy or technique that a hint requests. */
  def asked(join: Join): Option[String] =
    (join.hint.leftHint ++ join.hint.rightHint)
      .find(hint => hint.strategy.isDefined || hint.isInstanceOf[TechniqueHint])
      .map(hint => hint.strategy.fold(hint.toString)(_.displayName))

  /** The join with this content in its hints. Strategies of other hints are kept. */
  def on(join: Join, content: Content): Join = {
    def withContent(side: Option[HintInfo]) = Some(apply(content, side.flatMap(_.strategy)))
    join.copy(hint = JoinHint(withContent(join.hint.leftHint), withContent(join.hint.rightHint)))
  }
}

/** A join of a technique that is not Spark's, so that it has no hint. */
trait PlannedByTechnique extends LogicalPlan {
  def made: TechniqueHint.Made
}
