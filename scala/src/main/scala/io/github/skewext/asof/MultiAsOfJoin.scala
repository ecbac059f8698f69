package io.github.skewext.asof

import java.util.Locale

import io.github.skewext.asof.exec.{AsOfJoinExec, BroadcastAsOfJoinExec}
import io.github.skewext.facts.{ComparedByBytes, KeptInPlace}
import io.github.skewext.inputs.HintedInputs
import io.github.skewext.join.{PlannerChoices, PrunedByKeys, RuntimeFilters, UnorderedInputs}
import io.github.skewext.platform.HasOperator

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.execution.{ProjectExec, SparkPlan}
import org.apache.spark.sql.internal.SQLConf

/**
 * The as-of join of a spine, the first child, with tables of versions, the other children. Each row
 * of the spine gets one version of each table, or nulls: among the versions with the key of the
 * row, the one that the table's [[AsOfMatch]] selects by time. A null key or time matches nothing.
 *
 * The output has all columns of all children. Nullable are those of the versions if the join is a
 * left one.
 *
 * @param keys the compared expressions of each child; all children have the same number and types.
 * @param times the time of each child, all of one type.
 * @param matches what matches, for each table of versions.
 * @param ties for each table of versions: among versions of one key and time, the first one in this
 *             order counts. If the order does not decide, the bytes of the rows do.
 * @param within for each table of versions, conditions on a row of the spine and a version: none,
 *               one for a version before or after, or for `nearest` both.
 * @param inner whether a row of the spine requires a version of each table.
 * @param hints the join hint of each child, or empty.
 */
case class MultiAsOfJoin(
    children: Seq[LogicalPlan],
    keys: Seq[Seq[Expression]],
    times: Seq[Expression],
    matches: Seq[AsOfMatch],
    ties: Seq[Seq[SortOrder]],
    within: Seq[Seq[Expression]],
    inner: Boolean,
    hints: Seq[Option[HintInfo]] = Nil)
    extends HasOperator
    with PrunedByKeys
    with HintedInputs
    with UnorderedInputs {

  def spine: LogicalPlan = children.head

  override def output: Seq[Attribute] = MultiAsOfJoin.output(children.map(_.output), inner)

  override lazy val resolved: Boolean = childrenResolved && expressions.forall(_.resolved)

  // Spark refuses LATERAL over a plan that is not deterministic, and inlines no CTE with one.
  override lazy val deterministic: Boolean =
    expressions.forall(_.deterministic) && children.forall(KeptInPlace.isDeterministic)

  override def maxRows: Option[Long] = spine.maxRows

  override protected lazy val validConstraints: ExpressionSet = spine.constraints

  override lazy val distinctKeys: Set[ExpressionSet] =
    if (conf.getConf(SQLConf.PROPAGATE_DISTINCT_KEYS_ENABLED)) spine.distinctKeys else Set.empty

  /** The spine's rows, which are wider now. */
  override def stats: Statistics = {
    if (statsCache.isEmpty) {
      def width(columns: Seq[Attribute]) = 8 + columns.map(_.dataType.defaultSize).sum
      val size = spine.stats.sizeInBytes * width(output) / width(spine.output)
      statsCache = Some(Statistics(sizeInBytes = size, rowCount = spine.stats.rowCount))
    }
    statsCache.get
  }

  override def simpleString(maxFields: Int): String =
    s"MultiAsOfJoin ${MultiAsOfJoin.describe(keys.head, times.head, matches, inner)}"

  override def exactKeys: Seq[Int] =
    keys.head.indices.filter(j => keys.forall(key => ComparedByBytes(key(j))))

  /** The join with some of its tables of versions. */
  def only(tables: Seq[Int]): MultiAsOfJoin = {
    val (kept, places) = (0 +: tables, tables.map(_ - 1))
    copy(
      children = kept.map(children),
      keys = kept.map(keys),
      times = kept.map(times),
      matches = places.map(matches),
      ties = places.map(ties),
      within = places.map(within),
      hints = HintedInputs.hints(kept.map(hint)))
  }

  override def isNeeded(input: Int): Boolean = input == 0 || inner

  override def keptInput: Option[Int] = if (inner) None else Some(0)

  override def plannedInputs(later: LogicalPlan => SparkPlan): Seq[SparkPlan] =
    if (broadcasts.nonEmpty) children.map(later)
    else children.indices.map(RuntimeFilters.planned(this, _, now = false, later))

  override def operator(inputs: Seq[SparkPlan]): SparkPlan = {
    val (broadcast, shuffled) = children.indices.tail.partition(broadcasts.contains)
    val spine =
      if (broadcast.isEmpty) inputs.head
      else {
        val few = only(broadcast)
        val read = inputs.head +: broadcast.map(inputs)
        BroadcastAsOfJoinExec(read, few.keys, few.times, few.matches, few.ties, few.within, inner)
      }
    if (shuffled.isEmpty) spine
    else {
      warnOfHints()
      val rest = only(shuffled)
      val read = spine +: shuffled.map(inputs)
      val joined =
        AsOfJoinExec(read, rest.keys, rest.times, rest.matches, rest.ties, rest.within, inner)
      if (broadcast.isEmpty) joined else ProjectExec(output, joined)
    }
  }

  /**
   * The tables of versions that are broadcast. They are all tables, by their hints or sizes, so that
   * the spine is not shuffled. If one of them is large, the spine is shuffled anyway, and the small
   * ones add little. Some are broadcast if a shuffle shows that another one is large only after a
   * broadcast has begun. Adaptive execution prefers the plan with fewer shuffles, so this requires a
   * spine that is shuffled in either plan.
   */
  private def broadcasts: Seq[Int] = {
    val tables = children.indices.tail
    val choices = PlannerChoices.of(this)
    val isChosen = choices.streamed.isDefined ||
      (!hasBegun && !asksForShuffle(0) && tables.forall(isSmall))
    if (isChosen) PlannerChoices.set(this, choices.copy(streamed = Some(0)))
    if (isChosen && keepsBroadcasts(tables))
      tables.filter(i => isBroadcast(i) || isSmall(i))
    else Nil
  }

  override def unusedHint(i: Int): Option[String] =
    strategyHint(i).filter(_ == BROADCAST && !broadcasts.contains(i)).map {
      case _ if i == 0 => "the spine gives the rows of the result"
      case _ if asksForShuffle(0) => "the spine has a hint against it"
      case _ => "another table is not broadcast, so the spine is shuffled anyway"
    }

  override protected def withoutHints: LogicalPlan = copy(hints = Nil)

  override protected def withNewChildrenInternal(
      newChildren: IndexedSeq[LogicalPlan]): MultiAsOfJoin = copy(children = newChildren)
}

object MultiAsOfJoin {

  private[asof] def output(children: Seq[Seq[Attribute]], inner: Boolean): Seq[Attribute] =
    children.head ++ children.tail.flatten.map { a =>
      a.withNullability(a.nullable || !inner)
    }

  /** For example, `[user_id] at event_time, left: backward; nearest`. */
  private[asof] def describe(
      keys: Seq[Expression],
      time: Expression,
      matches: Seq[AsOfMatch],
      inner: Boolean): String =
    s"${keys.map(_.sql).mkString("[", ", ", "]")} at ${time.sql}, " +
      s"${if (inner) "inner" else "left"}: ${matches.mkString("; ")}"
}

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
