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
    if (given.hotKeys.isDefined || rows == 0) {
      given
    } else {
      def optimized(side: LogicalPlan) = state.executePlan(side).optimizedPlan
      val join = request.join
      val asPlanned =
        request.copy(join = join.copy(left = optimized(join.left), right = optimized(join.right)))
      if (AdaptiveJoin.isOn(request.session)) given.copy(hotKeys = repeated(asPlanned, rows))
      else if (broadcasts(asPlanned).nonEmpty) given
      else given.copy(hotKeys = lookedAt(asPlanned, rows))
    }
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
    val bySize = Seq(BuildRight, BuildLeft).sortBy(request.sizeOf)
    def broadcast(technique: SkewTechnique, sides: Seq[BuildSide]): Seq[Candidate] =
      sides.flatMap { side =>
        val options = TechniqueOptions(Map(BroadcastSide.OptionName -> BroadcastSide.nameOf(side)))
        val why = broadcastable(request, side).orElse {
          if (technique == BroadcastJoin) quicklyBuilt(request, side) else None
        }
        why.map(Candidate(technique, options, _))
      }
    val bySpark = bySize.filter(BroadcastJoin.possible(request.joinType).contains)
    val map = bySize.take(1).filter(side => !bySpark.contains(side) && isCheap(request, side))
    broadcast(BroadcastJoin, bySpark) ++ broadcast(BroadcastMapJoin, map)
  }

  /**
   * Whether the other side may be read as often as `broadcast_map` does. A query below it would run
   * twice, which may take longer than a shuffle.
   */
  private def isCheap(request: TechniqueRequest, small: BuildSide): Boolean =
    request.joinType match {
      case LeftSemi | LeftAnti => true
      case _ => isTable(request.plan(BroadcastSide.other(small)))
    }

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
        rows <- FileRows.of(session, request.plan(small))
        bytes = BroadcastSide.bytesInMemory(rows, request.plan(small).output, request.keys(small))
        if bytes <= BroadcastSide.maxBytes(session)
        others <- FileRows.of(session, request.plan(BroadcastSide.other(small)))
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
    val side = request.joinType match {
      // They end at the first match.
      case LeftSemi | LeftAnti => None
      case joinType =>
        BroadcastJoin.possible(joinType).filter(broadcastable(request, _).isEmpty).find { small =>
          quicklyBuilt(request, small).isDefined && isTable(request.plan(small))
        }
    }
    for {
      small <- side
      numRows <- FileRows.of(request.session, request.plan(small))
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
    val session = request.session
    val (plans, keys) = (tables.map(request.plan), tables.map(request.keys))
    def rowsOf(plan: LogicalPlan) = FileRows.estimated(session, plan)
    val seen = FrequentKeys.sampled(session, plans, keys, minShare, rows, rowsOf)
    val others = Seq(BuildLeft, BuildRight).filterNot(tables.contains)
    val numRows = seen.rows.map(_.toDouble).sum + others.map(side => rowsOf(request.plan(side))).sum
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
