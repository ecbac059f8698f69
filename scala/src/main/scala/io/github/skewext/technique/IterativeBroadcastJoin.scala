package io.github.skewext.technique

import io.github.skewext.technique.TechniqueReason.Detailed

import org.apache.spark.sql.catalyst.optimizer.{BuildLeft, BuildRight, BuildSide}
import org.apache.spark.sql.skewext.SqlInternals

/**
 * Broadcasts a side in chunks if it is too large for one broadcast. A hash of the key determines
 * the chunk. So a row of the other side, which is not shuffled, has all its matches in one chunk.
 * Rows of that side pass all chunks in one stage, and each row probes only its own chunk:
 * {{{
 * Project [coalesce(y0, y1)]
 *   Join LEFT OUTER if (chunk = 1) k = k1           chunk 1 is broadcast
 *     Join LEFT OUTER if (chunk = 0) k = k0         chunk 0 is broadcast
 *       Project [k, x, hash(k) % 2 AS chunk]
 *         large
 *       Filter hash(k0) % 2 = 0
 *         cut
 *     Filter hash(k1) % 2 = 1
 *       cut
 * }}}
 * All chunks are in the memory of an executor at the same time, unless there are several passes.
 * Then each pass has some of the chunks, and the rows of the other side that may match there. The
 * unmatched rows of the chunked side are those whose key a second read of the other side's keys does
 * not find, as in [[BroadcastMapJoin]].
 */
object IterativeBroadcastJoin extends SkewTechnique {

  override val name: String = "iterative_broadcast"

  override def optionNames: Seq[String] = Seq(Chunks, Passes, BroadcastSide.OptionName)

  private val Chunks = "chunks"
  private val Passes = "passes"

  private val MaxChunks = 1024

  /** The most chunks without the option, because the chunked side is read once per chunk. */
  private val ManyChunks = 32

  /** The share of an executor's memory that chunks may occupy. */
  private val MemoryShare = 0.3

  override def plan(request: TechniqueRequest): Either[Detailed, TechniquePlan] = {
    val cut = BroadcastSide.wanted(request, Seq(BuildRight, BuildLeft))
    for {
      _ <- request.checkSubqueries
      chunks <- numChunks(request, cut)
      passes = numPasses(request, cut, chunks)
      chunked = new ChunkedJoin(request, cut, chunks, passes)
      _ <- TechniqueReason.Condition.refusesIf(request.condition.isDefined && chunked.needsKeysMet)
      _ <- TechniqueReason.BarrierStage.refusesIf(
        request.wanted.inBarrierStage && chunked.parts > 1)
      _ <- request.checkStable(if (chunked.readsLargeOnce) Seq(cut) else Seq(BuildLeft, BuildRight))
    } yield TechniquePlan(chunked.plan, chunked.how)
  }

  /** The option, or so many that each chunk is as small as a side that Spark would broadcast. */
  private def numChunks(request: TechniqueRequest, cut: BuildSide): Either[Detailed, Int] = {
    val size = request.sizeOf(cut)
    val largest = BroadcastLimit.maxBytes(request.session)
    val threshold = request.session.sessionState.conf.autoBroadcastJoinThreshold
    val given = request.options.int(Chunks, 1, MaxChunks)
    def parts(bytes: Long): BigInt = ((size + bytes - 1) / bytes).max(1)
    def tooLarge(problem: String, cure: String) =
      TechniqueReason.TooLarge(s"${BroadcastSide.described(request, cut)}$problem; $cure")
    def cure(chunks: Int): String = {
      val allowed = BroadcastLimit.cure(request.session, parts(chunks.toLong))
      val more = parts(largest)
      if (more > MaxChunks) allowed else s"set the option $Chunks to $more, or $allowed"
    }
    if (BroadcastLimit.isKnown(size)) {
      val wanted = parts(if (threshold > 0) math.min(threshold, largest) else largest)
      val chunks = given.getOrElse(wanted.min(ManyChunks).toInt)
      val problem =
        if (given.isDefined) s" in $chunks chunks exceeds ${BroadcastLimit.size(largest)} per chunk"
        else s" needs more than $chunks chunks of at most ${BroadcastLimit.size(largest)}"
      Either.cond(size <= BigInt(largest) * chunks, chunks, tooLarge(problem, cure(chunks)))
    } else {
      // The size of the chunks is checked after they are built.
      for {
        _ <- BroadcastSide.checkable(request, cut)
        chunks <- given.toRight(tooLarge("", s"set the option $Chunks"))
      } yield chunks
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
