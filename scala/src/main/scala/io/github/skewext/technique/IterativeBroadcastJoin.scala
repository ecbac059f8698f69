package io.github.skewext.technique

import io.github.skewext.facts.KeptInPlace
import io.github.skewext.join.PlanCopies

import org.apache.spark.sql.catalyst.expressions.{Left => _, Right => _, _}
import org.apache.spark.sql.catalyst.optimizer.{BuildLeft, BuildRight, BuildSide}
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.TreePattern.PYTHON_UDF
import org.apache.spark.sql.internal.SQLConf.ADAPTIVE_EXECUTION_ENABLED
import org.apache.spark.sql.skewext.SqlInternals
import org.apache.spark.sql.types.BooleanType

/**
 * Broadcasts a side in chunks if it is too large for one broadcast. A hash of the key determines
 * the chunk. So a row of the other side, which is not shuffled, has all its matches in one chunk.
 * Rows of that side pass all chunks in one stage, and each row probes only its own chunk:
 * {{{
 * Project [if (in1) y1 else y0]
 *   Join LEFT OUTER if (chunk = 1) k = k1           chunk 1 is broadcast
 *     Join LEFT OUTER if (chunk = 0) k = k0         chunk 0 is broadcast
 *       Project [k, x, hash(k) % 2 AS chunk]
 *         large
 *       Filter hash(k0) % 2 = 0
 *         cut
 *     Filter hash(k1) % 2 = 1
 *       cut
 * }}}
 * The chunked side is read once per chunk. All chunks are in the memory of an executor at the same
 * time, unless there are several passes. Then each pass has some of the chunks, and the rows of the
 * other side that may match there.
 *
 * The unmatched rows of the chunked side are those whose key does not occur on the other side, as
 * in [[BroadcastMapJoin]]. They cost a second read of the other side's keys.
 */
object IterativeBroadcastJoin extends SkewTechnique {

  override val name: String = "iterative_broadcast"

  override def optionNames: Seq[String] = Seq(Chunks, Passes, BroadcastSide.OptionName)

  private val Chunks = "chunks"
  private val Passes = "passes"

  private val MaxChunks = 1024

  /**
   * The most chunks without an explicit option, because the chunked side is read once per chunk.
   */
  private val ManyChunks = 32

  /** The share of an executor's memory that chunks may occupy. */
  private val MemoryShare = 0.3

  override def plan(request: TechniqueRequest): Either[TechniqueReason.Detailed, TechniquePlan] = {
    val cut = BroadcastSide.wanted(request, Seq(BuildRight, BuildLeft))
    for {
      _ <- request.checkSubqueries
      chunks <- numChunks(request, cut)
      passes = numPasses(request, cut, chunks)
      chunked = new ChunkedJoin(request, cut, chunks, passes)
      _ <- checkCondition(request, chunked)
      _ <- Either.cond(
        !request.inBarrierStage || chunked.parts == 1,
        (),
        TechniqueReason.BarrierStage.given)
      _ <- request.checkStable(if (chunked.readsLargeOnce) Seq(cut) else Seq(BuildLeft, BuildRight))
    } yield TechniquePlan(chunked.plan, chunked.how)
  }

  private def checkCondition(
      request: TechniqueRequest,
      chunked: ChunkedJoin): Either[TechniqueReason.Detailed, Unit] =
    if (request.condition.isDefined && chunked.needsKeysMet) Left(TechniqueReason.Condition.given)
    else Right(())

  /**
   * The number of chunks: the value of the option, or as many as make each chunk as small as a side
   * that Spark would broadcast.
   */
  private def numChunks(
      request: TechniqueRequest,
      cut: BuildSide): Either[TechniqueReason.Detailed, Int] = {
    val size = request.sizeOf(cut)
    val largest = BroadcastLimit.maxBytes(request.session)
    val wanted = request.session.sessionState.conf.autoBroadcastJoinThreshold
    val asked = request.options.int(Chunks, 1, MaxChunks)
    def parts(bytes: Long) = ((size + bytes - 1) / bytes).max(1)
    lazy val chosen = parts(if (wanted > 0) math.min(wanted, largest) else largest)
    def cure(chunks: Int): String = {
      val allowed = BroadcastLimit.cure(request.session, parts(chunks.toLong))
      val more = parts(largest)
      if (more > MaxChunks) allowed else s"set the option $Chunks to $more, or $allowed"
    }
    lazy val isChecked = request.session.sessionState.conf.adaptiveExecutionEnabled
    if (!BroadcastLimit.isKnown(size)) {
      // The size of the chunks is checked after they are built.
      if (isChecked && asked.isDefined) Right(asked.get)
      else {
        val change =
          if (isChecked) s"set the option $Chunks"
          else s"set ${ADAPTIVE_EXECUTION_ENABLED.key} to true"
        Left(TechniqueReason.TooLarge(s"${BroadcastSide.described(request, cut)}; $change"))
      }
    } else if (asked.exists(size > BigInt(largest) * _)) {
      Left(
        TechniqueReason.TooLarge(
          s"${BroadcastSide.described(request, cut)} in ${asked.get} chunks exceeds " +
            s"${BroadcastLimit.size(largest)} per chunk; ${cure(asked.get)}"))
    } else if (asked.isDefined) Right(asked.get)
    else if (chosen <= ManyChunks) Right(chosen.toInt)
    else if (parts(largest) <= ManyChunks) Right(ManyChunks)
    else {
      Left(TechniqueReason.TooLarge(
        s"${BroadcastSide.described(request, cut)} needs more than $ManyChunks chunks of at most " +
          s"${BroadcastLimit.size(largest)}; ${cure(ManyChunks)}"))
    }
  }

  /** One pass if the size is unknown, because each pass reads the other side. */
  private def numPasses(request: TechniqueRequest, cut: BuildSide, chunks: Int): Int =
    request.options.int(Passes, 1, chunks).getOrElse {
      val size = request.sizeOf(cut)
      val context = request.session.sparkContext
      val memory =
        if (context.isLocal) Runtime.getRuntime.maxMemory
        else SqlInternals.executorMemory(context.getConf)
      val needed = size / (memory * MemoryShare).toLong.max(1) + 1
      if (BroadcastLimit.isKnown(size)) needed.min(chunks).toInt else 1
    }
}

/**
 * The plan of one such join.
 *
 * @param cut the side that is broadcast in chunks.
 */
private[skewext] final class ChunkedJoin(
    request: TechniqueRequest,
    cut: BuildSide,
    chunks: Int,
    passes: Int)
    extends PredicateHelper {
  import ChunkedJoin._

  private val large = BroadcastSide.other(cut)

  private val ofCut = request.plan(cut).outputSet

  /** Whether the join only selects the rows of the chunked side by whether they match. */
  private val picksFromCut = request.selectsLeft && cut == BuildLeft

  private val showsUnmatchedOfCut = request.isPreserved(cut)

  /**
   * The conjuncts besides the keys that an inner join evaluates above its joins, and the others.
   * The join with several chunks is a chain of outer joins, and these support no Python UDF over
   * both sides.
   */
  private val (aboveJoins, inJoins) = request.condition.toSeq
    .flatMap(splitConjunctivePredicates)
    .partition(request.joinType.isInstanceOf[InnerLike] && _.containsPattern(PYTHON_UDF))

  def needsKeysMet: Boolean = picksFromCut || showsUnmatchedOfCut

  def readsLargeOnce: Boolean = passes == 1 && !showsUnmatchedOfCut

  /** The number of plans whose union is the result. */
  def parts: Int = if (picksFromCut) 1 else passes + (if (showsUnmatchedOfCut) 1 else 0)

  def plan: LogicalPlan = if (picksFromCut) picked else looked

  private def looked: LogicalPlan = {
    val parts = inPasses(pass) ++ (if (showsUnmatchedOfCut) Seq(unmatchedOfCut) else Nil)
    PlanCopies.union(parts, request.join.output)
  }

  def how: String = {
    def times(n: Int) = if (n == 1) "once" else if (n == 2) "twice" else s"$n times"
    val ofKeys = if (needsKeysMet) passes else 0
    val ofRows = if (picksFromCut) 0 else passes
    val reads = Seq(
      if (ofRows > 0) Some(s"read ${times(ofRows)}") else None,
      if (ofKeys > 0) Some(s"its keys ${times(ofKeys)}${if (ofRows > 0) " more" else ""}")
      else None)
    val inChunks = if (chunks == 1) "1 chunk" else s"$chunks chunks"
    s"${BroadcastSide.described(request, cut)} is broadcast in $inChunks" +
      s"${if (passes > 1) s" and $passes passes" else ""}, " +
      s"the ${BroadcastSide.nameOf(large)} side (${BroadcastLimit.size(request.sizeOf(large))}) is " +
      s"not shuffled, and ${reads.flatten.mkString(", ")}"
  }

  /** Calls `make` with the chunks of each pass. */
  private def inPasses(make: Seq[Int] => LogicalPlan): Seq[LogicalPlan] =
    (0 until chunks).groupBy(_ * passes / chunks).toSeq.sortBy(_._1).map { case (_, of) =>
      make(of)
    }

  /** The rows of the large side that belong to some chunks. */
  private def largeFor(of: Seq[Int]): Large = {
    val (rows, over) = request.copyOf(large)
    val (withKeys, keys) = KeptInPlace.keys(rows, request.keys(large).map(over))
    val chunk = Alias(chunkOf(keys, chunks), "chunk")()
    val numbered = Project(withKeys.output :+ chunk, withKeys)
    val mine =
      if (of.size == chunks) numbered
      else {
        val number = chunk.toAttribute
        Filter(
          And(
            GreaterThanOrEqual(number, Literal(of.head.toLong)),
            LessThanOrEqual(number, Literal(of.last.toLong))),
          numbered)
      }
    Large(mine, rows.output, over, keys, chunk.toAttribute)
  }

  private def chunk(number: Int): Chunk = {
    val (rows, over) = request.copyOf(cut)
    val (withKeys, keys) = KeptInPlace.keys(rows, request.keys(cut).map(over))
    val mine = Filter(EqualTo(chunkOf(keys, chunks), Literal(number.toLong)), withKeys)
    Chunk(number, mine, rows.output, over, keys)
  }

  /**
   * Joins rows of the large side with one chunk. Rows that belong to other chunks match no row
   * there.
   */
  private def joined(rows: LogicalPlan, of: Large, chunk: Chunk, joinType: JoinType): Join = {
    val inChunk = If(
      EqualTo(of.chunk, Literal(chunk.number.toLong)),
      of.keys.head,
      Literal(null, of.keys.head.dataType))
    val guarded = if (chunks == 1) of.keys else inChunk +: of.keys.tail
    val equal = TechniqueRequest.equal(guarded, chunk.keys)
    val besides = inJoins.map(over(_, of, chunk.over))
    request.joined(
      rows,
      chunk.plan,
      joinType,
      Some((equal +: besides).reduce(And)),
      broadcast = Some(BuildRight))
  }

  /** An expression over both sides, over these rows. */
  private def over(e: Expression, of: Large, overCut: Attribute => Expression): Expression =
    e.transform { case a: Attribute => if (ofCut.contains(a)) overCut(a) else of.over(a) }

  /** One pass of the large side's rows through some chunks. It returns the columns of the join. */
  private def pass(of: Seq[Int]): LogicalPlan = {
    val rows = largeFor(of)
    request.joinType match {
      case LeftAnti => Project(rows.columns, anti(rows, of))
      case LeftSemi => Project(rows.columns, semi(rows, of))
      case _ =>
        val showsUnmatched = request.isPreserved(large)
        val (looked, columns) = lookedUp(rows, of, showsUnmatched)
        val columnOf = AttributeMap(request.plan(cut).output.zip(columns))
        val matched = aboveJoins
          .map(over(_, rows, columnOf))
          .reduceOption(And)
          .fold(looked)(Filter(_, looked))
        Project(
          if (cut == BuildRight) rows.columns ++ columns else columns ++ rows.columns,
          matched)
    }
  }

  private def anti(rows: Large, of: Seq[Int]): LogicalPlan =
    of.foldLeft(rows.plan)((left, number) => joined(left, rows, chunk(number), LeftAnti))

  private def semi(rows: Large, of: Seq[Int]): LogicalPlan =
    if (of.size == 1) {
      joined(rows.plan, rows, chunk(of.head), LeftSemi)
    } else {
      val found = of.map(n => AttributeReference(s"found$n", BooleanType, nullable = false)())
      val looked = of.zip(found).foldLeft(rows.plan) { case (left, (number, exists)) =>
        joined(left, rows, chunk(number), ExistenceJoin(exists))
      }
      Filter(found.reduce[Expression](Or(_, _)), looked)
    }

  /** The rows of the large side with their matches, and the columns of the chunked side. */
  private def lookedUp(
      rows: Large,
      of: Seq[Int],
      showsUnmatched: Boolean): (LogicalPlan, Seq[Attribute]) =
    if (of.size == 1) {
      val only = chunk(of.head)
      val join = joined(rows.plan, rows, only, if (showsUnmatched) LeftOuter else Inner)
      (join, join.output.drop(rows.plan.output.size).take(only.columns.size))
    } else {
      val (looked, found) = of.foldLeft((rows.plan, Option.empty[Found])) {
        case ((left, before), number) =>
          val one = chunk(number)
          val isIn = Alias(Literal(true), s"in$number")()
          val withIsIn = one.copy(plan = Project(one.plan.output :+ isIn, one.plan))
          val join = joined(left, rows, withIsIn, LeftOuter)
          val columns = join.output.drop(left.output.size)
          val now = Found(columns.last, columns.take(one.columns.size))
          before match {
            case None => (join, Some(now))
            case Some(earlier) =>
              val merged = (earlier.columns :+ earlier.isIn).zip(now.columns :+ now.isIn).map {
                case (e, n) => Alias(If(IsNotNull(now.isIn), n, e), n.name)()
              }
              val attributes = merged.map(_.toAttribute)
              (
                Project(rows.plan.output ++ merged, join),
                Some(Found(attributes.last, attributes.init)))
          }
      }
      val Found(isIn, columns) = found.get
      (if (showsUnmatched) looked else Filter(IsNotNull(isIn), looked), columns)
    }

  /** The distinct keys of the large side that occur on the chunked side. */
  private def keysMet: (LogicalPlan, Seq[Attribute]) = {
    val met = inPasses { of =>
      val rows = largeFor(of)
      val keys = rows.keys.zipWithIndex.map { case (key, i) => Alias(key, s"key$i")() }
      Project(keys, semi(rows, of))
    }
    val all = PlanCopies.union(met, met.head.output)
    (Aggregate(all.output, all.output, all), all.output)
  }

  /** The rows of the chunked side with a match, or those without one, for a semi or anti join. */
  private def picked: LogicalPlan = {
    val (met, metKeys) = keysMet
    val equal = TechniqueRequest.equal(request.keys(cut), metKeys)
    request.joined(request.plan(cut), met, request.joinType, Some(equal))
  }

  /** The rows of the chunked side without a match, as rows of the join. */
  private def unmatchedOfCut: LogicalPlan = {
    val (rows, over) = request.copyOf(cut)
    val (withKeys, keys) = KeptInPlace.keys(rows, request.keys(cut).map(over))
    val (met, metKeys) = keysMet
    val equal = TechniqueRequest.equal(keys, metKeys)
    val columns = request.join.output.map { a =>
      Alias(if (ofCut.contains(a)) over(a) else Literal(null, a.dataType), a.name)()
    }
    Project(columns, request.joined(withKeys, met, LeftAnti, Some(equal)))
  }
}

private[skewext] object ChunkedJoin {

  /**
   * Rows of the large side.
   *
   * @param columns the columns of the side, in its order.
   * @param over a function that maps expressions over the side to these rows.
   * @param chunk the chunk in which a row may match.
   */
  private case class Large(
      plan: LogicalPlan,
      columns: Seq[Attribute],
      over: Expression => Expression,
      keys: Seq[Expression],
      chunk: Attribute)

  /**
   * Rows of the chunked side.
   *
   * @param columns the columns of the side, in its order. They are the first ones of the plan.
   * @param over a function that maps expressions over the side to these rows.
   */
  private case class Chunk(
      number: Int,
      plan: LogicalPlan,
      columns: Seq[Attribute],
      over: Expression => Expression,
      keys: Seq[Expression])

  /**
   * The columns of the chunked side next to a row of the large side; `isIn` is null without a
   * match.
   */
  private case class Found(isIn: Attribute, columns: Seq[Attribute])

  /** The chunk of a key. Equal keys of both sides are in the same chunk. */
  private def chunkOf(keys: Seq[Expression], chunks: Int): Expression =
    Pmod(new XxHash64(keys.map(SqlInternals.normalizeFloats)), Literal(chunks.toLong))
}
