package io.github.skewext.technique

import org.apache.spark.sql.catalyst.optimizer.{BuildLeft, BuildRight}

/**
 * A join of any type with a broadcast side: also a full outer join, and a join that returns
 * unmatched rows of the broadcast side. The other side, the large one, is not shuffled.
 *
 * The unmatched rows of the small side are known only after all of the large side is read. No
 * single task has this information, and updates from running tasks are unreliable, because tasks
 * may fail and run again. So the keys of the large side are read once more, and a join finds those
 * that the small side has:
 * {{{
 * Union
 *   Join large LEFT OUTER small            broadcasts small
 *   Join small LEFT ANTI met               broadcasts met
 *     Aggregate [k]                        shuffles at most the keys of small per task
 *       Join large LEFT SEMI small         reads only the keys of both, and broadcasts small's
 * }}}
 * Semi and anti joins that return rows of the small side are the second part alone. This is the plan
 * of [[IterativeBroadcastJoin]] with one chunk.
 */
object BroadcastMapJoin extends SkewTechnique {

  override val name: String = "broadcast_map"

  override def optionNames: Seq[String] = Seq(BroadcastSide.OptionName)

  override def plan(request: TechniqueRequest): Either[TechniqueReason.Detailed, TechniquePlan] =
    BroadcastSide.choose(request, Seq(BuildRight, BuildLeft)).flatMap { small =>
      if (BroadcastJoin.possible(request.joinType).contains(small)) {
        Right(BroadcastJoin.sparks(request, small))
      } else {
        new ChunkedJoin(request, small, chunks = 1, passes = 1).planned
      }
    }
}
