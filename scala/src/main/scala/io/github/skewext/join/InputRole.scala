package io.github.skewext.join

import java.util.Locale

import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.skewext.SqlInternals

/**
 * The role of an input in a join: whether the input must have a key, may have it, or must not have
 * it, for the join to return the key.
 *
 * @param isNeeded whether the join returns only keys that the input has.
 * @param isShown whether the join returns the rows of the input.
 */
sealed abstract class InputRole(val name: String, val isNeeded: Boolean, val isShown: Boolean)
    extends Serializable

object InputRole {

  /**
   * The join returns keys that this input has or lacks. If it lacks the key, its columns are null.
   */
  case object Optional extends InputRole("optional", isNeeded = false, isShown = true)

  /** The join returns only keys that this input has. */
  case object Required extends InputRole("required", isNeeded = true, isShown = true)

  /** The join returns only keys that this input lacks, and no columns of the input. */
  case object Excluded extends InputRole("excluded", isNeeded = false, isShown = false)

  /**
   * The join returns only keys that this input has. It does not return the input's rows, and their
   * number does not matter: the right side of a left semi-join. Only splits of Spark's semi-joins
   * use this role.
   */
  case object Present extends InputRole("present", isNeeded = true, isShown = false)

  /** The roles that users can name. */
  val public: Seq[InputRole] = Seq(Optional, Required, Excluded)

  def fromName(name: String): Option[InputRole] = {
    val wanted = name.toLowerCase(Locale.ROOT)
    public.find(_.name == wanted)
  }

  /**
   * The roles of `inputs` inputs: by one of the names `full`, `left` and `inner`, or by a name of a
   * role for each.
   */
  def ofAll(names: Seq[String], inputs: Int): Seq[InputRole] =
    names.map(name => String.valueOf(name).toLowerCase(Locale.ROOT)) match {
      case Seq("full") => Seq.fill(inputs)(Optional)
      case Seq("inner") => Seq.fill(inputs)(Required)
      case Seq("left") => Required +: Seq.fill(inputs - 1)(Optional)
      case roles =>
        roles.map { name =>
          fromName(name).getOrElse(
            throw SqlInternals.analysisError(
              s"There is no role '$name'. The roles are 'full', 'left' or 'inner', or for each " +
                s"input one of ${public.map(role => s"'${role.name}'").mkString(", ")}."))
        }
    }

  /**
   * The roles of the two sides of one of Spark's joins; None if roles cannot express the join type.
   */
  def ofSides(joinType: JoinType): Option[(InputRole, InputRole)] = joinType match {
    case _: InnerLike => Some((Required, Required))
    case LeftOuter => Some((Required, Optional))
    case RightOuter => Some((Optional, Required))
    case FullOuter => Some((Optional, Optional))
    case LeftSemi => Some((Required, Present))
    case LeftAnti => Some((Required, Excluded))
    case _ => None
  }

  /**
   * Whether the join returns a row of input `i` whose key contains a null. Such a row matches
   * nothing, so no other input has its key. The join returns it unless another input must have the
   * key.
   */
  def emitsNullKeys(roles: Seq[InputRole], i: Int): Boolean =
    roles(i).isShown && roles.indices.forall(j => j == i || !roles(j).isNeeded)
}

/**
 * The name of a join type in messages. Spark has no name for the joins that it creates for
 * `EXISTS`.
 */
object JoinTypeName {
  def of(joinType: JoinType): String = joinType match {
    case _: ExistenceJoin => "EXISTENCE"
    case other => other.sql
  }

  /** For example, `left outer`. */
  def lower(joinType: JoinType): String = of(joinType).toLowerCase(Locale.ROOT)
}

/** A node whose result does not depend on the order of its inputs' rows. */
private[skewext] trait UnorderedInputs extends LogicalPlan {

  /** The input, if any, whose rows are each in the result, whatever the others contain. */
  def keptInput: Option[Int] = None
}
