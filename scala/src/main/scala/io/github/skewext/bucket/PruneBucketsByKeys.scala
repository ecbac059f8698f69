package io.github.skewext.bucket

import io.github.skewext.bucket.files.{BucketedScan, StoredValues}
import io.github.skewext.facts.{ComparedByBytes, MadeOf}
import io.github.skewext.platform.SkewConf

import org.apache.spark.sql.catalyst.catalog.BucketSpec
import org.apache.spark.sql.catalyst.expressions.{Left => _, Right => _, _}
import org.apache.spark.sql.catalyst.optimizer.BuildLeft
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning
import org.apache.spark.sql.catalyst.plans.{InnerLike, LeftSemi}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive.BroadcastQueryStageExec
import org.apache.spark.sql.execution.joins.{BroadcastHashJoinExec, HashJoin}
import org.apache.spark.sql.execution.skewext.BroadcastTable
import org.apache.spark.sql.types._
import org.apache.spark.util.collection.BitSet

/**
 * Prunes the buckets of a scan below a broadcast join to those that contain keys of the broadcast
 * side. The join's keys must include all bucket columns, and the join must not return unmatched
 * rows of the scan.
 *
 * Adaptive execution plans the stage of the join after the broadcast is materialized. So the keys
 * are in the hash table that the tasks will use, and no query has to run for them. A plan that is
 * not adaptive has no keys before it runs. Spark's scan can then prune partitions with the result
 * of a subquery, but not buckets.
 */
object PruneBucketsByKeys extends Rule[SparkPlan] with AliasHelper {

  override def apply(plan: SparkPlan): SparkPlan =
    if (conf.getConf(SkewConf.BUCKET_PRUNING) && conf.bucketingEnabled) {
      plan.transform { case join: BroadcastHashJoinExec => prune(join) }
    } else {
      plan
    }

  private def prune(join: BroadcastHashJoinExec): SparkPlan = {
    val (build, buildKeys, streamed, streamedKeys) =
      if (join.buildSide == BuildLeft) (join.left, join.leftKeys, join.right, join.rightKeys)
      else (join.right, join.rightKeys, join.left, join.leftKeys)
    (join.joinType, build) match {
      case (_: InnerLike | LeftSemi, stage: BroadcastQueryStageExec) if stage.isMaterialized =>
        val pruned = restrict(streamed, streamedKeys, new Broadcast(stage, buildKeys))
        if (pruned eq streamed) join
        else if (join.buildSide == BuildLeft) join.copy(right = pruned)
        else join.copy(left = pruned)
      case _ => join
    }
  }

  /**
   * Descends to the scan. All nodes on the path must return their rows independently of other rows.
   */
  private def restrict(node: SparkPlan, keys: Seq[Expression], to: Broadcast): SparkPlan =
    node match {
      case scan @ BucketedScan(spec) if spec.numBuckets > 1 => restrict(scan, spec, keys, to)
      // Expressions that number rows or draw random values must see all rows.
      case MadeOf(Seq(part)) if part.linear && node.expressions.forall(_.deterministic) =>
        val below = node match {
          case ProjectExec(list, _) => keys.map(replaceAlias(_, getAliasMap(list)))
          case _ => keys
        }
        val restricted = restrict(part.child, below, to)
        if (restricted eq part.child) node
        else node.withNewChildren(node.children.map(c => if (c eq part.child) restricted else c))
      case _ => node
    }

  private def restrict(
      scan: FileSourceScanExec,
      spec: BucketSpec,
      keys: Seq[Expression],
      to: Broadcast): SparkPlan = {
    val restricted = for {
      columns <- BucketedScan.hashedColumns(scan, spec)
      values <- columns.map(keyOf(_, keys)).foldLeft(Option(Seq.empty[Key])) { (all, key) =>
        all.flatMap(found => key.map(found :+ _))
      }
      buckets <- to.buckets(
        values,
        spec.numBuckets,
        conf.getConf(SkewConf.BUCKET_PRUNING_MAX_VALUES))
    } yield PruneBuckets.restricted(scan, spec, buckets)
    restricted match {
      case Some(Right(pruned)) =>
        if (pruned ne scan) BucketsOfJoinKeys.set(pruned, BucketsOfJoinKeys.Keys)
        pruned
      case Some(Left(reason)) =>
        BucketReason.set(scan, reason)
        scan
      case None => scan
    }
  }

  /** A bucket column among the join's keys: the position of the key, and the type of the column. */
  private case class Key(index: Int, columnType: DataType)

  private def keyOf(column: Attribute, keys: Seq[Expression]): Option[Key] = {
    val index = keys.indexWhere {
      case a: Attribute =>
        a.exprId == column.exprId && ComparedByBytes(a.dataType) && StoredValues.ofType(a.dataType)
      // For example, an int column that is compared with a long.
      case Cast(a: Attribute, to, _, _) =>
        a.exprId == column.exprId && isIntegral(a.dataType) && isIntegral(to) &&
        a.dataType.defaultSize <= to.defaultSize
      case _ => false
    }
    if (index < 0) None else Some(Key(index, column.dataType))
  }

  private def isIntegral(dataType: DataType): Boolean = dataType match {
    case ByteType | ShortType | IntegerType | LongType => true
    case _ => false
  }

  /** Rows of a broadcast for each of the most keys. */
  private val RowsPerKey = 10

  /**
   * The most bytes of a broadcast. A hash table counts whole pages, of which one has up to 64 MB.
   * With 32 MB more, 100,000 rows may have 300 bytes each.
   */
  private val MaxBytes = (64L + 32L) << 20

  /** The broadcast side of a join. */
  private class Broadcast(stage: BroadcastQueryStageExec, keys: Seq[Expression]) {

    /**
     * The buckets of the keys, or None if the broadcast is too large or has too many keys, if it is
     * not a hash table, or if a key may have been stored in another bucket. The driver keeps
     * broadcasts serialized, and would have to build a large table again.
     */
    def buckets(columns: Seq[Key], numBuckets: Int, maxKeys: Int): Option[BitSet] = {
      val size = stage.getRuntimeStatistics
      if (size.sizeInBytes <= MaxBytes &&
        size.rowCount.exists(_ <= RowsPerKey * BigInt(maxKeys))) {
        bucketsOfKeys(columns, numBuckets, maxKeys)
      } else {
        None
      }
    }

    private def bucketsOfKeys(columns: Seq[Key], numBuckets: Int, maxKeys: Int): Option[BitSet] =
      BroadcastTable.of(stage.executeBroadcast[Any]().value).map(_.keys).flatMap { rows =>
        val buckets = new BitSet(numBuckets)
        val inColumns = columns.map(c => cast(valueOf(c.index), c.columnType))
        // A long outside the range of int matches no row; it adds a bucket that need not be read.
        val bucketOf = HashPartitioning(inColumns, numBuckets).partitionIdExpression
        var seen = 0
        var exact = true
        while (rows.hasNext && seen <= maxKeys && exact) {
          val key = rows.next()
          exact = inColumns.forall(c => StoredValues.isExact(c.eval(key), c.dataType))
          buckets.set(bucketOf.eval(key).asInstanceOf[Int])
          seen += 1
        }
        if (seen > maxKeys || !exact) None else Some(buckets)
      }

    /**
     * A key in a row of the hash table, which packs several integral keys into the bits of one
     * long.
     */
    private def valueOf(index: Int): Expression = HashJoin.rewriteKeyExpr(keys) match {
      case Seq(one) if one.dataType == LongType => HashJoin.extractKeyExprAt(keys, index)
      case _ => BoundReference(index, keys(index).dataType, nullable = false)
    }

    private def cast(value: Expression, to: DataType): Expression =
      if (value.dataType == to) value else Cast(value, to, ansiEnabled = false)
  }
}
