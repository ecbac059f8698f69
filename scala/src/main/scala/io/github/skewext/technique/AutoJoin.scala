package io.github.skewext.technique

import io.github.skewext.SkewConf
import io.github.skewext.report.FrequentKeys
import io.github.skewext.technique.TechniqueReason.Given

import org.apache.spark.sql.catalyst.optimizer.{BuildLeft, BuildRight, BuildSide}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.plans.{LeftAnti, LeftSemi}
import org.apache.spark.sql.execution.{ExternalRDD, LogicalRDD}

/**
 * Chooses a technique by the type of the join, the sizes of its sides, memory, and which keys are hot.
 *
 * Where partitions are split at run time, the sizes of the shuffle tell of every key what a look at
 * some rows would only guess, and so both sides are looked at only where they are not: a small job
 * reads the beginnings of a few partitions, unless keys are given. Before a side is broadcast that Spark
 * would not broadcast, that side is looked at. Says what it has chosen, by which figures, and what it
 * would have chosen next.
 */
object AutoJoin extends SkewTechnique {

  override val name: String = "auto"

  override def optionNames: Seq[String] = Seq(TechniqueOptions.HotKeys)

  /** A side that is so much smaller is broadcast even if Spark by itself would not. */
  private val MuchSmaller = 10

  /** But not if it is so many times as large as what Spark would broadcast. */
  private val AboveSparksLimit = 8

  /**
   * What a row of the broadcast side costs the driver, which works on them alone. Measured with
   * 2,000,000 rows of four columns, as is the next.
   */
  private val BuildMicros = 0.8

  /** What a row costs a core in a join by shuffle more than in one by broadcast; measured was 0.9. */
  private val ShuffleMicros = 0.7

  /**
   * A side with so many rows of one key is not broadcast for the sake of a few seconds: a hash table
   * follows a chain from each of them to the next, and gives as many rows as it is asked for. Our
   * operator took 0.6 times as long for 25,000,000 rows of one key, 5,000 on each side.
   */
  private val ManyRowsOfAKey = 1000

  override def prepared(request: TechniqueRequest): TechniqueOptions = {
    val given = preparedForHint(request)
    val state = request.session.sessionState
    val rows = state.conf.getConf(SkewConf.SKEW_JOIN_SAMPLE_ROWS)
    lazy val asPlanned = {
      def optimized(side: LogicalPlan) = state.executePlan(side).optimizedPlan
      val join = request.join
      request.copy(join = join.copy(left = optimized(join.left), right = optimized(join.right)))
    }
    val isAdaptive = AdaptiveJoin.isOn(request.session)
    if (given.hotKeys.isDefined || rows == 0) given
    // Their tables give at most one row for a row, however many there are of a key.
    else if (isAdaptive && endsAtFirstMatch(request)) given
    else if (isAdaptive) given.copy(hotKeys = repeated(asPlanned, rows))
    else if (broadcasts(asPlanned).nonEmpty) given
    else given.copy(hotKeys = lookedAt(asPlanned, rows))
  }

  /** Looks at nothing. */
  override def preparedForHint(request: TechniqueRequest): TechniqueOptions =
    if (request.options.text(TechniqueOptions.HotKeys).isEmpty) request.options
    else SaltedJoin.prepared(request)

  override def plan(request: TechniqueRequest): Either[Given, TechniquePlan] = {
    val tried = candidates(request).toStream.map { c =>
      (c, c.technique.plan(request.copy(technique = c.technique.name, options = c.options)))
    }
    val done = tried.filter(_._2.isRight)
    done.headOption match {
      case Some((chosen, Right(made))) =>
        val next = done.tail.headOption.fold("")(n => s"; next would be ${n._1.technique.name}")
        val how = s"${made.how}; chosen as ${chosen.why}, with ${figures(request)}$next"
        Right(made.copy(how = how))
      case _ => tried.head._2
    }
  }

  private case class Candidate(technique: SkewTechnique, options: TechniqueOptions, why: String)

  private def candidates(request: TechniqueRequest): Seq[Candidate] = {
    val hot = request.options.hotKeys.getOrElse(Nil)
    val salted = if (hot.isEmpty) {
      Nil
    } else {
      val options = TechniqueOptions(hotKeys = Some(hot))
      val from = if (hot.exists(_.share.isDefined)) "found by a look at some rows" else "given"
      Seq(Candidate(SaltedJoin, options, s"hot keys are $from"))
    }
    def other(technique: SkewTechnique, why: String) =
      Candidate(technique, TechniqueOptions(), why)
    val shuffled = if (AdaptiveJoin.isOn(request.session)) {
      other(AdaptiveJoin, "partitions are split when their sizes are known") +: salted
    } else {
      salted :+ other(PlainJoin, "partitions are not split in this session")
    }
    broadcasts(request) ++ shuffled
  }

  private def broadcasts(request: TechniqueRequest): Seq[Candidate] = {
    def candidate(technique: SkewTechnique, side: BuildSide, why: String) = Candidate(
      technique,
      TechniqueOptions(Map(BroadcastSide.OptionName -> BroadcastSide.nameOf(side))),
      why)
    val bySpark = sidesForSpark(request)
    val map = bySize(request).take(1).filter { side =>
      !bySpark.contains(side) && isCheap(request, side)
    }
    bySpark.flatMap { side =>
      broadcastable(request, side) match {
        case Some(why) => Seq(candidate(BroadcastJoin, side, why))
        case None =>
          quicklyBuilt(request, side).toSeq.flatMap { why =>
            val inChunks = if (gainsByChunks(request, side)) Seq(IterativeBroadcastJoin) else Nil
            (inChunks :+ BroadcastJoin).map(candidate(_, side, why))
          }
      }
    } ++ map.flatMap { side =>
      broadcastable(request, side).map(candidate(BroadcastMapJoin, side, _))
    }
  }

  /**
   * Whether several small tables are built sooner than one: side by side, if the driver has cores for
   * that. The other side's rows pass them all, which costs little where these say no more than yes or no.
   */
  private def gainsByChunks(request: TechniqueRequest, small: BuildSide): Boolean =
    endsAtFirstMatch(request) && isTable(request.plan(small)) &&
      Runtime.getRuntime.availableProcessors > 1

  private def bySize(request: TechniqueRequest): Seq[BuildSide] =
    Seq(BuildRight, BuildLeft).sortBy(request.sizeOf)

  /** What Spark's own joins may broadcast, in the order in which it is tried. */
  private def sidesForSpark(request: TechniqueRequest): Seq[BuildSide] =
    bySize(request).filter(BroadcastJoin.possible(request.joinType).contains)

  private def endsAtFirstMatch(request: TechniqueRequest): Boolean = request.joinType match {
    case LeftSemi | LeftAnti => true
    case _ => false
  }

  /**
   * Whether the other side may be read as often as `broadcast_map` does. A query below it would run
   * twice, which may take longer than a shuffle.
   */
  private def isCheap(request: TechniqueRequest, small: BuildSide): Boolean =
    endsAtFirstMatch(request) || isTable(request.plan(BroadcastSide.other(small)))

  /** Whether a side is nothing but a table or a file, with conditions. */
  private[technique] def isTable(plan: LogicalPlan): Boolean = !plan.exists {
    case _: LogicalRDD | _: ExternalRDD[_] => true
    case _: LeafNode | _: Project | _: Filter | _: SubqueryAlias => false
    case _ => true
  }

  /** Why the small side should be broadcast, if it should. */
  private def broadcastable(request: TechniqueRequest, small: BuildSide): Option[String] = {
    val limit = request.session.sessionState.conf.autoBroadcastJoinThreshold
    val (of, ofOther) = (request.sizeOf(small), request.sizeOf(BroadcastSide.other(small)))
    val which = s"the ${BroadcastSide.nameOf(small)} side"
    if (limit < 0) None
    else if (of <= limit) Some(s"$which is smaller than spark.sql.autoBroadcastJoinThreshold")
    else if (of <= BigInt(limit) * AboveSparksLimit && of * MuchSmaller <= ofOther) {
      Some(s"$which is so much smaller than the other")
    } else {
      None
    }
  }

  /**
   * Whether the driver builds the hash table of a side sooner than all the cores would shuffle and sort
   * both. That takes the numbers of rows: nothing is said where they are not known.
   */
  private def quicklyBuilt(request: TechniqueRequest, small: BuildSide): Option[String] = {
    val session = request.session
    val limit = BigInt(session.sessionState.conf.autoBroadcastJoinThreshold) * AboveSparksLimit
    if (request.sizeOf(small) > limit) {
      None
    } else {
      for {
        rows <- request.rowsOf(small)
        bytes = BroadcastSide.bytesInMemory(rows, request.plan(small).output, request.keys(small))
        if bytes <= BroadcastSide.maxBytes(session)
        others <- request.rowsOf(BroadcastSide.other(small))
        if !repeatsAKey(request, small, rows + others)
        cores = math.max(1, session.sparkContext.defaultParallelism)
        if rows * cores * BuildMicros <= (rows + others) * ShuffleMicros
      } yield f"the hash table of the ${BroadcastSide.nameOf(small)} side (about $rows%,.0f rows, " +
        s"${BroadcastSide.size(BigInt(bytes))} in memory) is built sooner than $cores cores would " +
        "shuffle both"
    }
  }

  private def repeatsAKey(request: TechniqueRequest, side: BuildSide, numRows: Double): Boolean =
    request.options.hotKeys.exists(_.exists { key =>
      key.shareOf(side).exists(_ * numRows >= ManyRowsOfAKey)
    })

  /** The keys of a side that would be broadcast with many rows each, by a look at some rows. */
  private def repeated(request: TechniqueRequest, rows: Int): Option[Seq[HotKey]] = {
    val toBroadcast = sidesForSpark(request).find { side =>
      broadcastable(request, side).isDefined || quicklyBuilt(request, side).isDefined
    }
    for {
      small <- toBroadcast
      if broadcastable(request, small).isEmpty && isTable(request.plan(small))
      numRows <- request.rowsOf(small)
      found = looked(request, Seq(small), ManyRowsOfAKey / math.max(ManyRowsOfAKey, numRows), rows)
      if found.nonEmpty
    } yield found
  }

  /**
   * The keys of which a look at some rows says that they alone have more rows than a partition has on
   * average. Nothing if there is no side that can be looked at.
   */
  private def lookedAt(request: TechniqueRequest, rows: Int): Option[Seq[HotKey]] = {
    val tables = Seq[BuildSide](BuildLeft, BuildRight).filter(side => isTable(request.plan(side)))
    if (tables.isEmpty) {
      None
    } else {
      val average = 1.0 / request.session.sessionState.conf.numShufflePartitions
      val found = looked(request, tables, average, rows)
      Some(found.filter(key => math.max(key.leftShare.get, key.rightShare.get) > average))
    }
  }

  /** Keys with more than a share of the rows of one of these sides, by a look at some rows. */
  private def looked(
      request: TechniqueRequest,
      tables: Seq[BuildSide],
      minShare: Double,
      rows: Int): Seq[HotKey] = {
    val seen = FrequentKeys.sampled(
      request.session,
      tables.map(request.plan),
      tables.map(request.keys),
      minShare,
      rows,
      i => request.estimatedRowsOf(tables(i)))
    val others = Seq(BuildLeft, BuildRight).filterNot(tables.contains)
    val numRows = seen.rows.map(_.toDouble).sum + others.map(request.estimatedRowsOf).sum
    seen.keys.map { case (key, counts) =>
      def share(side: BuildSide) =
        Some(tables.zip(counts).toMap.getOrElse(side, 0.0) / math.max(1.0, numRows))
      HotKey(key, share(BuildLeft), share(BuildRight))
    }
  }

  private def figures(request: TechniqueRequest): String = {
    val sides = Seq(BuildLeft, BuildRight).map(BroadcastSide.described(request, _))
    val hot = request.options.hotKeys.map { keys =>
      val most = keys.flatMap(_.share)
      val share =
        if (most.isEmpty) "" else f", the most frequent with ${100 * most.max}%.0f %% of all rows"
      s"${keys.size} hot key${if (keys.size == 1) "" else "s"}$share"
    }
    (sides ++ hot).mkString(", ")
  }
}
