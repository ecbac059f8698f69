package io.github.skewext.technique

import io.github.skewext.join.PlanCopies

import org.apache.spark.sql.catalyst.expressions.{Left => _, Right => _, _}
import org.apache.spark.sql.catalyst.optimizer.{BuildLeft, BuildRight, BuildSide}
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.TreePattern.PYTHON_UDF
import org.apache.spark.sql.skewext.SqlInternals
import org.apache.spark.sql.types.BooleanType

/** The plan of an [[IterativeBroadcastJoin]] that broadcasts the side `cut` in chunks. */
private[technique] final class ChunkedJoin(
    request: TechniqueRequest,
    cut: BuildSide,
    chunks: Int,
    passes: Int)
    extends PredicateHelper {

  private val large = BroadcastSide.other(cut)

  /** Whether the join only selects rows of the chunked side. */
  private val picksFromCut = request.selectsLeft && cut == BuildLeft

  private val showsUnmatchedOfCut = request.isPreserved(cut)

  /** An inner join evaluates Python UDFs above its joins: these are outer joins with several chunks. */
  private val (aboveJoins, inJoins) = request.condition.toSeq
    .flatMap(splitConjunctivePredicates)
    .partition(request.joinType.isInstanceOf[InnerLike] && _.containsPattern(PYTHON_UDF))

  def needsKeysMet: Boolean = picksFromCut || showsUnmatchedOfCut

  def readsLargeOnce: Boolean = passes == 1 && !showsUnmatchedOfCut

  /** The number of plans whose union is the result. */
  def parts: Int = if (picksFromCut) 1 else passes + (if (showsUnmatchedOfCut) 1 else 0)

  def plan: LogicalPlan =
    if (picksFromCut) withKeysMet(request.plan(cut), request.keys(cut), request.joinType)
    else {
      val unmatched = if (showsUnmatchedOfCut) {
        val rows = SideCopy.of(request, cut)
        Seq(rows.unmatched(withKeysMet(rows.plan, rows.keys, LeftAnti)))
      } else Nil
      PlanCopies.union(inPasses(pass) ++ unmatched, request.join.output)
    }

  def how: String = {
    def times(n: Int) = if (n == 1) "once" else if (n == 2) "twice" else s"$n times"
    val reads =
      if (picksFromCut) s"its keys ${times(passes)}"
      else if (needsKeysMet) s"read ${times(passes)}, its keys ${times(passes)} more"
      else s"read ${times(passes)}"
    s"${BroadcastSide.described(request, cut)} is broadcast in $chunks " +
      s"${if (chunks == 1) "chunk" else "chunks"}${if (passes > 1) s" and $passes passes" else ""}, " +
      s"${BroadcastSide.described(request, large)} is not shuffled, and $reads"
  }

  /** Calls `make` with the chunks of each pass. */
  private def inPasses(make: Seq[Int] => LogicalPlan): Seq[LogicalPlan] =
    (0 until chunks).groupBy(_ * passes / chunks).toSeq.sortBy(_._1).map(of => make(of._2))

  /** The chunk of a key. Equal keys of both sides are in the same chunk. */
  private def chunkOf(keys: Seq[Expression]): Expression =
    Pmod(new XxHash64(keys.map(SqlInternals.normalizeFloats)), Literal(chunks.toLong))

  private def largeOf(chunksOfPass: Seq[Int]): Large = {
    val side = SideCopy.of(request, large)
    val chunk = Alias(chunkOf(side.keys), "chunk")()
    val all = Project(side.plan.output :+ chunk, side.plan)
    val isOfPass = In(chunk.toAttribute, chunksOfPass.map(n => Literal(n.toLong)))
    val rows = if (passes == 1) all else Filter(isOfPass, all)
    Large(side.copy(plan = rows), chunk.toAttribute, chunksOfPass)
  }

  /** Joins rows of the large side with one chunk. Rows of other chunks match no row there. */
  private def joined(left: LogicalPlan, of: Large, number: Int, joinType: JoinType)(
      isFound: Option[Alias] = None): Join = {
    val chunk = SideCopy.of(request, cut)
    val rows = Filter(EqualTo(chunkOf(chunk.keys), Literal(number.toLong)), chunk.plan)
    val key = of.side.keys.head
    val inChunk = If(EqualTo(of.chunk, Literal(number.toLong)), key, Literal(null, key.dataType))
    val equal = TechniqueRequest.equal(inChunk +: of.side.keys.tail, chunk.keys)
    request.joined(
      left,
      Project(isFound ++: rows.output, rows),
      joinType,
      Some((equal +: inJoins.map(over(_, of, chunk.over))).reduce(And)),
      broadcast = Some(BuildRight))
  }

  /** An expression over both sides, over these rows. */
  private def over(e: Expression, of: Large, overCut: Attribute => Expression): Expression =
    e.transform { case a: Attribute =>
      if (request.plan(cut).outputSet.contains(a)) overCut(a) else of.side.over(a)
    }

  /** One pass of the large side's rows through some chunks. It returns the columns of the join. */
  private def pass(chunksOfPass: Seq[Int]): LogicalPlan = {
    val of = largeOf(chunksOfPass)
    val columns = of.side.columns
    if (request.selectsLeft) Project(columns, selected(of, request.joinType))
    else {
      val (looked, isFound +: found) = lookedUp(of)
      val columnOf = AttributeMap(request.plan(cut).output.zip(found))
      val matched = if (request.isPreserved(large)) Nil else Seq(IsNotNull(isFound))
      val wanted = matched ++ aboveJoins.map(over(_, of, columnOf))
      Project(
        if (cut == BuildRight) columns ++ found else found ++ columns,
        wanted.reduceOption(And).fold(looked)(Filter(_, looked)))
    }
  }

  /** The rows of the large side with a match, or those without one, for a semi or anti join. */
  private def selected(of: Large, joinType: JoinType): LogicalPlan = {
    val found = of.chunks.map(n => AttributeReference(s"found$n", BooleanType, nullable = false)())
    val looked = of.chunks.zip(found).foldLeft(of.side.plan) { case (left, (number, isFound)) =>
      joined(left, of, number, ExistenceJoin(isFound))()
    }
    val any = found.reduce[Expression](Or(_, _))
    Filter(if (joinType == LeftAnti) Not(any) else any, looked)
  }

  /** The rows of the large side with their matches, after a column that is null without a match. */
  private def lookedUp(of: Large): (LogicalPlan, Seq[Attribute]) =
    of.chunks.foldLeft((of.side.plan, Seq.empty[Attribute])) { case ((left, before), number) =>
      val isFound = Alias(Literal(true), s"found$number")()
      val join = joined(left, of, number, LeftOuter)(Some(isFound))
      val columns = join.output.drop(left.output.size).take(1 + request.plan(cut).output.size)
      if (before.isEmpty) (join, columns)
      else {
        val merged = before.zip(columns).map { case (b, c) => Alias(Coalesce(Seq(b, c)), c.name)() }
        (Project(of.side.plan.output ++ merged, join), merged.map(_.toAttribute))
      }
    }

  /** Joins rows with the distinct keys of the large side that occur on the chunked side. */
  private def withKeysMet(rows: LogicalPlan, keys: Seq[Expression], how: JoinType): LogicalPlan = {
    val met = inPasses { chunksOfPass =>
      val of = largeOf(chunksOfPass)
      of.side.keysOf(selected(of, LeftSemi))
    }
    val distinct = SideCopy.distinct(PlanCopies.union(met, met.head.output))
    request.joined(rows, distinct, how, Some(TechniqueRequest.equal(keys, distinct.output)))
  }

  /** The rows of the large side that belong to some chunks. The column has the chunk of a row. */
  private case class Large(side: SideCopy, chunk: Attribute, chunks: Seq[Int])
}
