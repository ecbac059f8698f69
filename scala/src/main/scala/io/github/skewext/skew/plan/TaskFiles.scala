package io.github.skewext.skew.plan

/** Which files each task of a write makes of its rows. */
sealed abstract class TaskFiles extends Product with Serializable

object TaskFiles {

  /** One. */
  case object One extends TaskFiles

  /** One for each value that its rows have in the columns by which the table is partitioned or bucketed. */
  case object OneForEachValue extends TaskFiles
}
