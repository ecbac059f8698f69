package io.github.skewext.skew.plan

/**
 * The decision on a skewed partition.
 *
 * @param before the cost of one task for the whole partition.
 */
private[skew] case class Decision(
    partition: Int,
    before: Double,
    split: Either[SkewReason.Detailed, PartitionSplit]) {

  def longestTask: Double = split.fold(_ => before, _.cost.longestTask)
}

/**
 * The limits that keep the longest task of a join long.
 *
 * The planner grows slices until all limits hold. So the check that fails last, such as the gain, may
 * not be the one that decides. Hence this plans the partition again without some of the limits, and
 * names the fewest limits that must be changed together to shorten the task.
 */
private[skew] object SplitLimits {

  /** A task is worth a change of settings if it becomes shorter by this factor. */
  private val Gain = 1.25

  /** Without a limit on slices, a plan has enough of them to show whether they help. */
  private val ManySlices = 4096

  /** Slices that are this much smaller than the setting are proposed first. */
  private val Smaller = 8

  /**
   * @param lifted the settings without the limit.
   * @param values the value of the limit, and a value with which the split in another plan of the
   *               partition is possible.
   */
  private case class Limit(
      reason: SkewReason,
      lifted: SkewSettings => SkewSettings,
      values: (SkewSettings, SkewSettings, Decision) => Option[String])

  private val SliceSize = Limit(
    SkewReason.LargeSlices,
    _.copy(advisoryBytes = 1),
    (now, other, _) =>
      Some(
        s"advisoryPartitionSizeInBytes is ${size(now.advisoryBytes)}, " +
          s"${size(other.advisoryBytes)} is small enough"))

  private val Slices = Limit(
    SkewReason.FewSlices,
    s => s.copy(maxSlices = math.max(s.maxSlices, ManySlices)),
    (now, _, better) => tasksOf(better).map(n => s"maxSlices is ${now.maxSlices}, $n is enough"))

  private val Reread = Limit(
    SkewReason.TooMuchReread,
    _.copy(maxRereadFactor = Double.MaxValue),
    (now, _, better) =>
      for (split <- better.split.toOption; n <- tasksOf(better)) yield {
        val needed = math.ceil(10 * split.cost.work / better.before) / 10
        s"maxRereadFactor is ${now.maxRereadFactor}, $needed is enough for $n slices"
      })

  private val Files = Limit(SkewReason.FewFiles, _.copy(files = None), (_, _, _) => None)

  /** In the order in which they are left out if others suffice. */
  private val all = Seq(SliceSize, Slices, Reread, Files)

  /**
   * Why the task is not shorter. None if it would be with smaller slices: that is true of any split.
   *
   * @param slowest the decision on the partition with the longest task.
   * @param decide the decision on the same partition with other settings.
   */
  def of(
      slowest: Decision,
      settings: SkewSettings,
      decide: SkewSettings => Decision): Option[SkewReason.Detailed] = {
    val search = new Search(slowest, settings, decide)
    (search.decisive, slowest.split) match {
      case (Seq(SliceSize), Right(_)) => None
      case (Seq(), Right(split)) => Some(floorOf(split).given)
      case (Seq(), Left(reason)) =>
        Some(decide(search.without(all)).split match {
          case Left(other) if other.reason != reason.reason => other.reason.given
          case _ => reason
        })
      case _ => Some(search.named)
    }
  }

  private final class Search(
      slowest: Decision,
      settings: SkewSettings,
      decide: SkewSettings => Decision) {

    def without(limits: Seq[Limit]): SkewSettings =
      limits.foldLeft(settings)((s, limit) => limit.lifted(s))

    /** The fewest limits without which the task is shorter. */
    lazy val decisive: Seq[Limit] = {
      lazy val ofAll = deciding(all)
      if (slowest.split.isLeft) ofAll
      else Some(deciding(all.filterNot(_ eq SliceSize))).filter(_.nonEmpty).getOrElse(ofAll)
    }

    private def deciding(limits: Seq[Limit]): Seq[Limit] =
      if (isBetter(without(limits))) {
        limits.foldLeft(limits) { (left, limit) =>
          val fewer = left.filterNot(_ eq limit)
          if (fewer.nonEmpty && isBetter(without(fewer))) fewer else left
        }
      } else {
        Nil
      }

    private def isBetter(other: SkewSettings): Boolean = {
      val decision = decide(other)
      decision.split.isRight &&
      (slowest.split.isLeft || decision.longestTask * Gain <= slowest.longestTask)
    }

    /** The last decisive limit, with values of all of them that are enough. */
    def named: SkewReason.Detailed = {
      val rest = without(decisive.filterNot(_ eq SliceSize))
      val other =
        if (decisive.contains(SliceSize)) {
          Iterator
            .iterate(settings.advisoryBytes / Smaller)(_ / 2)
            .takeWhile(_ > 0)
            .map(bytes => rest.copy(advisoryBytes = bytes))
            .find(isBetter)
            .getOrElse(without(decisive))
        } else {
          rest
        }
      val better = decide(other)
      val values = decisive.flatMap(_.values(settings, other, better))
      val reason = decisive.last.reason
      if (values.isEmpty) reason.given else reason(values.mkString("; "))
    }
  }

  /** Why a split has no shorter tasks with other settings. */
  private def floorOf(split: PartitionSplit): SkewReason = {
    val largest = split.slices.map(_.bytes).reduceOption(_ max _)
    val isBlock = split.slices.exists { s =>
      largest.contains(s.bytes) && s.shares == 1 && s.endMap - s.startMap == 1
    }
    if (isBlock && largest.exists(2 * _ > split.cost.longestTask)) SkewReason.OneBlock
    else SkewReason.LittleGain
  }

  private def tasksOf(decision: Decision): Option[Int] =
    decision.split.toOption.map(s => math.max(s.slices.size, s.marking.size)).filter(_ > 0)

  /** A size as a value of a setting. */
  private def size(bytes: Long): String =
    if (bytes >= 1024 * 1024 && bytes % (1024 * 1024) == 0) s"${bytes / (1024 * 1024)}MB"
    else if (bytes >= 1024 && bytes % 1024 == 0) s"${bytes / 1024}KB"
    else s"${bytes}b"
}
