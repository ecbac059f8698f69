package io.github.skewext.plan

import java.util.Locale

import org.apache.spark.sql.catalyst.plans._

/**
 * What an input of a join demands of a key for that key to come out.
 *
 * @param isNeeded whether a key comes out only if the input has it
 * @param isShown whether the input's rows are part of the rows that come out
 */
sealed abstract class InputRole(val name: String, val isNeeded: Boolean, val isShown: Boolean)
    extends Serializable

object InputRole {

  /** The key comes out whether this input has it or not; its columns are null where absent. */
  case object Optional extends InputRole("optional", isNeeded = false, isShown = true)

  /** The key comes out only if this input has it. */
  case object Required extends InputRole("required", isNeeded = true, isShown = true)

  /** The key comes out only if this input does not have it; the input gives no columns. */
  case object Excluded extends InputRole("excluded", isNeeded = false, isShown = false)

  /**
   * The key comes out only if this input has it, but its rows are neither shown nor multiply the
   * others: the right side of a left semi join. Only [[MultiFullJoinExec]] knows it.
   */
  case object Present extends InputRole("present", isNeeded = true, isShown = false)

  /** The roles that can be asked for. */
  val public: Seq[InputRole] = Seq(Optional, Required, Excluded)

  def fromName(name: String): Option[InputRole] = {
    val wanted = name.toLowerCase(Locale.ROOT)
    public.find(_.name == wanted)
  }

  /** Those of the two sides of one of Spark's joins, if it can be said by roles. */
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
   * Whether a row of input `i` whose key has a null comes out. Such a row matches nothing, so it is
   * the only holder of its key: it comes out if no other input needs to have it.
   */
  def emitsNullKeys(roles: Seq[InputRole], i: Int): Boolean =
    roles(i).isShown && roles.indices.forall(j => j == i || !roles(j).isNeeded)
}
