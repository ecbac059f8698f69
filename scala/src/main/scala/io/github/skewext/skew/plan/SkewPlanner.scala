package io.github.skewext.skew.plan

/**
 * Decides which partitions of a join are split, and how. It computes tasks from sizes, without
 * Spark.
 *
 * If one input of a partition is too large, the partition becomes several tasks. Each piece joins a
 * slice of that input, in the role required, with all rows that the other inputs have in the
 * partition. Together the pieces return exactly the keys that the input has. The residual joins the
 * other inputs, with that input excluded, and returns exactly the keys that the input lacks. This
 * holds for any number of inputs and for any roles of the others, see [[SplitTask.roles]].
 *
 * For example, take a full outer join of A (400 MB in partition 7, in map blocks of 100 MB) and B
 * (20 MB), with slices of 100 MB. Each of the four pieces reads 100 MB of A and 20 MB of B. The
 * residual joins the 20 MB of B and streams 400 MB of A, only to find which keys of B occur in A.
 *
 * If this streaming takes longer than all other tasks, it is divided, too. Tasks that run before
 * the join mark the keys of B that occur in their slice of A, and the residual reads only B.
 *
 * The output of a small partition may be large. With 3,000 rows of one key in A and in B, of 75
 * bytes each, half a megabyte of input becomes 1.3 GB of output. If this is known
 * ([[PartitionOutput]]), A or B is sliced by rows. Each piece reads the whole partition, which is
 * small, and returns its part of the output.
 *
 * Equal keys without other columns compress to almost nothing, but joining each of them is as much
 * work as elsewhere. If rows were sampled ([[RowWeights]]), the planner gives a partition as many
 * bytes as its rows would have in other partitions.
 */
object SkewPlanner {

  /**
   * The cost of reading a byte that is dropped, or only compared with a set of keys, relative to a
   * cost of 1 for a byte that is joined.
   */
  val StreamCost = 0.3

  /** The same cost for a byte of a file. All columns are decoded before a row can be dropped. */
  val FileStreamCost = 0.8

  /**
   * The cost of an estimated byte of output, relative to a cost of 1 for a joined byte of a
   * shuffle. The latter is compressed, and its row is read, hashed and looked up. The measured cost
   * is 0.02 if the rows are discarded. Writing them costs several times as much.
   */
  val OutputCost = 0.05

  /**
   * Returns the splits of a join's partitions, or the reason why there are none.
   *
   * @param output the estimated output of hot keys for each partition, or nothing if it is unknown.
   */
  def plan(
      inputs: Seq[SkewInput],
      settings: SkewSettings,
      output: IndexedSeq[PartitionOutput] = IndexedSeq.empty)
      : Either[SkewReason.Detailed, SkewSplits] = {
    val weighed = inputs.map(_.weighed).toIndexedSeq
    val thresholds = weighed.map(i => settings.skewThreshold(i.bytes))
    // Other limits do not change which partitions are skewed.
    def decider(limits: SkewSettings): Int => Option[Decision] = {
      val targets = weighed.zip(thresholds).map { case (i, t) => limits.targetBytes(i.bytes, t) }
      val hot = HotOutput.of(weighed, limits, output)
      val mostTasks = FileLimit.mostTasks(inputs, limits, output) _
      p => {
        val skewed = weighed.indices.filter(i => weighed(i).bytes(p) > thresholds(i))
        if (skewed.isEmpty && !hot.contains(p)) None
        else Some(planPartition(p, weighed, skewed, hot.get(p), targets, limits, mostTasks(p)))
      }
    }
    val decide = decider(settings)
    val decided = weighed.head.bytes.indices.flatMap(decide(_))
    if (decided.isEmpty) {
      Left(SkewReason.NotSkewed.given)
    } else {
      val slowest = decided.maxBy(_.longestTask)
      val limit =
        SplitLimits.of(slowest, settings, decider(_)(slowest.partition).getOrElse(slowest))
      val splits = decided.flatMap(_.split.toOption)
      if (splits.isEmpty) Left(limit.getOrElse(SkewReason.LittleGain.given))
      else Right(SkewSplits(splits.map(inBytesOf(_, inputs)), limit))
    }
  }

  private def planPartition(
      partition: Int,
      inputs: Seq[SkewInput],
      skewed: Seq[Int],
      hot: Option[HotOutput],
      targets: Seq[Long],
      settings: SkewSettings,
      mostTasks: Int): Decision = {
    val before = inputs.map(_.bytes(partition)).sum + hot.map(_.cost).getOrElse(0.0)
    def slice(i: Int, target: Double) =
      new SliceSearch(partition, inputs, i, target, hot, settings, mostTasks).found
    val bySize = skewed.map { i =>
      inputs(i).whole match {
        case Some(reason) => Left(reason)
        case None if inputs(i).role.isShown => slice(i, targets(i).toDouble)
        case None => keysOnly(partition, inputs, i, targets(i).toDouble, hot, settings)
      }
    }
    val byOutput = hot.toSeq.flatMap { h =>
      val having = inputs.indices.filter { i =>
        h.byInput(i) > 0 && inputs(i).role.isShown && inputs(i).whole.isEmpty &&
        !skewed.contains(i)
      }
      // Hot rows may be unevenly distributed over the blocks, so inputs that can be divided by rows
      // are preferred.
      val (even, uneven) = having.partition { i =>
        inputs(i).sliceable && mayBeSliced(inputs, i) && inputs(i).isCuttable(partition)
      }
      val chosen = if (even.nonEmpty) even else uneven
      chosen.map(slice(_, Double.PositiveInfinity))
    }
    Decision(partition, before, best(bySize ++ byOutput, before, settings))
  }

  /**
   * The split whose last task ends first. Of two splits that are equal in that, the one with less
   * work wins.
   */
  private def best(
      tried: Seq[Either[SkewReason, PartitionSplit]],
      before: Double,
      settings: SkewSettings): Either[SkewReason.Detailed, PartitionSplit] = {
    val possible = tried.collect { case Right(found) => found }.sortBy { split =>
      (split.cost.longestTask, split.cost.work)
    }
    possible.headOption match {
      case None =>
        val refused = tried.collectFirst { case Left(reason) => reason.given }
        Left(refused.getOrElse(SkewReason.LittleGain.given))
      case Some(best) if best.cost.longestTask * settings.minGain > before =>
        val gain = math.floor(100 * before / best.cost.longestTask) / 100
        Left(SkewReason.LittleGain(s"the gain is $gain, min_gain is ${settings.minGain}"))
      case Some(best) => Right(best)
    }
  }

  /**
   * If an input contributes only its keys to the result, one task streams it, without keeping its
   * rows.
   */
  private def keysOnly(
      partition: Int,
      inputs: Seq[SkewInput],
      input: Int,
      target: Double,
      hot: Option[HotOutput],
      settings: SkewSettings): Either[SkewReason, PartitionSplit] = {
    val skewed = inputs(input)
    val own = skewed.bytes(partition)
    val others = inputs.map(_.bytes(partition)).sum - own
    // The one task returns all of the output.
    val output = hot.map(_.cost).getOrElse(0.0)
    val streamed = others + skewed.streamCost * own + output
    val atOnce = own + others + output
    val plain = PartitionSplit(partition, input, Nil, residual = true, SplitCost(streamed, atOnce))
    val possible = Marking.slices(skewed, partition, target, settings)
    val toMark = if (possible.nonEmpty && inputs.forall(_.stable.keys())) possible else Nil
    Right(
      Marking
        .of(skewed, partition, toMark, own, others, 0.0)
        .map { m =>
          plain.copy(marking = m.slices, cost = SplitCost(m.longestTask + output, m.work + output))
        }
        .filter(_.cost.work <= settings.maxRereadFactor * atOnce)
        .getOrElse(plain))
  }

  /** Whether the input may be sliced: every slice is joined with all rows of the other inputs. */
  private[plan] def mayBeSliced(inputs: Seq[SkewInput], input: Int): Boolean =
    inputs.indices.forall(j => j == input || inputs(j).replicable)

  /** The same split, with sizes in bytes of these inputs. */
  private def inBytesOf(split: PartitionSplit, inputs: Seq[SkewInput]): PartitionSplit = {
    val skewed = inputs(split.input)
    lazy val blocks = skewed.sizes.blocks(split.partition)
    def inBytes(all: Seq[Slice]) = if (skewed.sizes.weights.isEmpty) all else all.map(_.of(blocks))
    val (pieces, marks) = (inBytes(split.slices), inBytes(split.marking))
    val own = skewed.sizes.sliced(split.partition)
    val others = inputs.map(_.bytes(split.partition)).sum - own
    val readByResidual =
      if (!split.residual) 0L
      else if (marks.isEmpty) own + others
      else others
    val read = (pieces ++ marks).map(_.bytesRead + others).sum + readByResidual
    split.copy(
      slices = pieces,
      marking = marks,
      cost = split.cost.copy(rereadBytes = read - own - others))
  }
}
