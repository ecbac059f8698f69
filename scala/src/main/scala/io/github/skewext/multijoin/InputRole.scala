package io.github.skewext.multijoin

import java.util.Locale

/** What an input of a [[MultiFullJoin]] demands of a key for that key to come out. */
sealed abstract class InputRole(val name: String) extends Serializable

object InputRole {

  /** The key comes out whether this input has it or not; its columns are null where absent. */
  case object Optional extends InputRole("optional")

  /** The key comes out only if this input has it. */
  case object Required extends InputRole("required")

  /** The key comes out only if this input does not have it; the input gives no columns. */
  case object Excluded extends InputRole("excluded")

  val all: Seq[InputRole] = Seq(Optional, Required, Excluded)

  def fromName(name: String): Option[InputRole] = {
    val wanted = name.toLowerCase(Locale.ROOT)
    all.find(_.name == wanted)
  }

  /**
   * Whether a row of input `i` whose key has a null comes out. Such a row matches nothing, so it is
   * the only holder of its key: it comes out if no other input is required.
   */
  def emitsNullKeys(roles: Seq[InputRole], i: Int): Boolean =
    roles(i) != Excluded && roles.indices.forall(j => j == i || roles(j) != Required)
}
