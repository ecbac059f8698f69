package io.github.skewext.asof

import java.util.Locale

/**
 * Which version of a key matches a row of the spine.
 *
 * @param exact whether a version at the time of the spine's row matches.
 */
case class AsOfMatch(direction: AsOfDirection, exact: Boolean) {
  override def toString: String = direction.name + (if (exact) "" else ", not at the same time")
}

/** Where the version lies on the time axis, seen from the row of the spine. */
sealed abstract class AsOfDirection(val name: String) extends Serializable

object AsOfDirection {

  /** The last version before the row of the spine. */
  case object Backward extends AsOfDirection("backward")

  /** The first version after the row of the spine. */
  case object Forward extends AsOfDirection("forward")

  /** The nearer one of these two; the earlier one if both are equally near. */
  case object Nearest extends AsOfDirection("nearest")

  val all: Seq[AsOfDirection] = Seq(Backward, Forward, Nearest)

  def fromName(name: String): Option[AsOfDirection] =
    Option(name).flatMap(n => all.find(_.name == n.toLowerCase(Locale.ROOT)))
}
