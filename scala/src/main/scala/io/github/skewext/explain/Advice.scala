package io.github.skewext.explain

import io.github.skewext.bucket.{BucketReason, SortedFileMergeReason}
import io.github.skewext.rewrite.RewriteReason
import io.github.skewext.skew.SkewReason
import io.github.skewext.technique.TechniqueReason

/** Advice for each reason: its cause, and a change that a user can make. */
private[skewext] object Advice {

  def of(reason: SkewReason): String = reason match {
    case SkewReason.JoinType =>
      "These are existence joins and the like. Rewrite the query with a semi, anti or outer " +
        "join."
    case SkewReason.KeyType =>
      "Compare an expression without a collation, such as lower(k) COLLATE UTF8_BINARY."
    case SkewReason.OuterCondition =>
      "A row is unmatched only if no row of its key satisfies the condition, and a slice has " +
        "only some of these rows. A condition on columns of one side does not prevent a split."
    case SkewReason.Ordered =>
      "spark.skewext.multiJoin.order=natural requires this order. With auto, sorted inputs " +
        "are merged too, but the rows of a split partition have no order."
    case SkewReason.InputNotPartitioned =>
      "Rows that are cached, or computed in another way, have no partitions that can be read " +
        "in parts. Repartition the input by the key, which shuffles it."
    case SkewReason.BucketsOff =>
      "The session sets a deprecated setting to false, see versions.md. Remove it."
    case SkewReason.InputNotDeterministic =>
      "Between its shuffle and the join the input has rand(), first, a sum of floating-point " +
        "numbers, row_number, a window of ROWS (rank and whole windows are fine), or the like. " +
        "Move this above the join, or write the input to a table first."
    case SkewReason.InputsDiffer =>
      "Adaptive execution coalesced the partitions of one input in another way than those of " +
        "another input. spark.sql.adaptive.coalescePartitions.enabled=false prevents this."
    case SkewReason.SplitBySpark => "Nothing to do."
    case SkewReason.NotSkewed =>
      "If some tasks still take much longer, lower " +
        "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes."
    case SkewReason.KeysNotCounted =>
      "Use at most 8,192 partitions, and at most 16.8 million partitions times map tasks."
    case SkewReason.ConditionMayFail =>
      "Spark evaluates the condition only for rows with a match. In ANSI mode, use " +
        "try_divide, try_cast and the like, which cannot fail. The extension assumes that " +
        "unknown functions may fail."
    case SkewReason.InputNotSliceable =>
      "Aggregate or join after this join, or repartition the aggregated rows by the key."
    case SkewReason.NotStable =>
      "Below the shuffle of an input, its keys or the selection of its rows depend on " +
        "rand(), first, a sum of floating-point numbers, a limit or the like, or the input is " +
        "an RDD, a Python list or another system. Write it to a table first, or checkpoint it."
    case SkewReason.OneBlock =>
      "Besides the key, the rows have only columns that may change when they are recomputed " +
        "(floating-point numbers, arrays, maps, structs), or the rows come from first, " +
        "collect_list or the like, an RDD, a Python list or another system. Read the input " +
        "with more tasks, or write it to a table. Give a bucketed table smaller row groups " +
        "(parquet.block.size)."
    case SkewReason.TooMuchReread =>
      "The other inputs are large in that partition, too. Raise " +
        "spark.skewext.skew.maxRereadFactor to allow more."
    case SkewReason.LittleGain =>
      "Nothing to do. For a join of two tables, skew_join with the technique adaptive and a " +
        "smaller min_gain splits for a smaller gain."
    case SkewReason.MergeTarget =>
      "Remove source rows that neither match nor are inserted, such as rows with a " +
        "placeholder for a missing key. A MERGE without WHEN MATCHED, or with WHEN MATCHED " +
        "THEN DELETE alone, is split on either side."
    case SkewReason.KeysTogether =>
      "A group-by, window or join on the same key uses the partitions of this join. " +
        "spark.sql.adaptive.forceOptimizeSkewedJoin=true splits it at the cost of a shuffle, " +
        "with the cost evaluator of docs/skew.md."
    case SkewReason.UserRepartition => "Remove the repartition if it is not needed."
    case SkewReason.BarrierStage =>
      "Repartition between the join and the barrier operator: then the join is split, and " +
        "the repartition decides how many tasks the barrier stage has."
    case SkewReason.FewFiles =>
      "Lower that setting for this query, or repartition before the write: then the join " +
        "writes no files. io.github.skewext.skew.MarkWrittenJoins in " +
        "spark.skewext.excludedRules removes the limit."
    case SkewReason.BucketedWrite => "Write the rows to a table without buckets first."
  }

  def of(reason: BucketReason): String = reason match {
    case BucketReason.NoCondition => "Nothing to do if the query needs all rows."
    case BucketReason.NotFixed =>
      "Filter every bucket column with =, <=>, IN or IS NULL. A range, NOT or an expression " +
        "over a column gives no list of values."
    case BucketReason.HashUnknown =>
      "The column is a struct, an array or a map. Filters on columns of other types can " +
        "prune buckets."
    case BucketReason.TooManyValues =>
      "Nothing to do: so many values are in nearly all buckets."
    case BucketReason.SwitchedOff => "Set it to true for this query."
  }

  def of(reason: RewriteReason): String = reason match {
    case RewriteReason.SwitchedOff => "Set it to true for this query."
    case RewriteReason.TwoInputs =>
      "Nothing to do. spark.skewext.multiJoin.rewrite.minInputs=2 saves the sorts of a full outer " +
        "join on equal keys alone."
    case RewriteReason.FewInputs => "Lower the setting for this query."
    case RewriteReason.MixedOff =>
      "Try the setting with this query. multi_join does not depend on the setting."
    case RewriteReason.Broadcast => "Nothing to do: a broadcast join shuffles nothing."
    case RewriteReason.PartitionPruning =>
      "Nothing to do: pruned partitions cost nothing. Spark's setting is " +
        "spark.sql.optimizer.dynamicPartitionPruning.enabled."
    case RewriteReason.StoragePartitions =>
      "If the third input is partitioned like the others, nothing is shuffled."
    case RewriteReason.JoinType =>
      "For an anti join, use multi_join with the role excluded. The other types remain " +
        "Spark's joins."
    case RewriteReason.Hint => "Remove the hint if it is no longer needed."
    case RewriteReason.NoCondition => "Compare the key with = in every join of the chain."
    case RewriteReason.ResidualCondition =>
      "Move a condition on one input into the query of that input, and other conditions into " +
        "a WHERE above all joins, if that gives the intended result."
    case RewriteReason.NullSafeEquality =>
      "Use = if null keys need not match. Otherwise replace nulls by a value first."
    case RewriteReason.RepeatedKey => "Compare every column of the key once."
    case RewriteReason.PartialKey =>
      "For one row per key, join with USING, or compare with a coalesce over the keys of all " +
        "previous tables. That is a different result: see semantics.md."
    case RewriteReason.DifferentKeys =>
      "Consecutive joins on one key become one operator. Joins on other keys remain Spark's."
    case RewriteReason.KeyExpression =>
      "Compute the expression in each input, and join on that column."
    case RewriteReason.LossyCast =>
      "In each input, cast the key to the type whose equality you need."
    case RewriteReason.KeyType => "In each input, cast the key to a type that has an order."
    case RewriteReason.NonDeterministic => "Compute it in one of the inputs, or above all joins."
    case RewriteReason.PythonFunction => "Call it in one of the inputs, or above all joins."
    case RewriteReason.RepeatedExpression =>
      "Every use of a column between the joins computes it again. Compute it in one of the " +
        "inputs, or once above all joins."
    case RewriteReason.Subquery => "Compute it in one of the inputs, or above all joins."
    case RewriteReason.FilterBetween =>
      "Move the filter into an input or above all joins, if that gives the intended result."
    case RewriteReason.RolesDiffer =>
      "Use multi_join with a role for each input, if that gives the intended result."
    case RewriteReason.OuterReference | RewriteReason.SharedSubquery =>
      "Write the subquery as a join."
    case RewriteReason.Streaming => "Nothing to do: the operator supports only batch queries."
  }

  def of(reason: TechniqueReason): String = reason match {
    case TechniqueReason.JoinType => "Use another technique: adaptive supports joins of every type."
    case TechniqueReason.Streaming =>
      "Nothing to do: the rows of a key arrive in many batches, and Spark's own join keeps " +
        "them together. In foreachBatch, each batch is a table."
    case TechniqueReason.NoEqualKeys =>
      "All techniques find the rows of a key by =. Add a condition that compares a column of one " +
        "side with a column of the other side by =."
    case TechniqueReason.KeyType =>
      "Compare an expression without a collation, such as lower(k) COLLATE UTF8_BINARY."
    case TechniqueReason.Condition =>
      "Move a condition on one side into the query of that side, or use the technique adaptive."
    case TechniqueReason.TooLarge =>
      "Use iterative_broadcast, adaptive or salted. If driver and executors have the memory, " +
        "raise spark.skewext.skewJoin.maxBroadcastBytes."
    case TechniqueReason.NotStable =>
      "The side has rand(), limit, a sum of floating-point numbers or the like, or it is an " +
        "RDD, a Python list or another system. Checkpoint it, write it to a table first, or " +
        "use a technique that reads each side once: adaptive or broadcast."
    case TechniqueReason.MergeTarget =>
      "Nothing to do: the extension splits the target if it is skewed. See merge.md."
    case TechniqueReason.CommonTable =>
      "Spark computes it once, and refers to its columns by ids that the technique would " +
        "change. Write it to a table first, or move rand(), uuid() or the Python function out " +
        "of it."
    case TechniqueReason.BarrierStage =>
      "Repartition between the join and the barrier operator: then the technique applies."
    case TechniqueReason.WrongOption => "Correct the hint."
  }

  def of(reason: SortedFileMergeReason): String = reason match {
    case SortedFileMergeReason.SwitchedOff => "Set it to true for this query."
    case SortedFileMergeReason.OtherOrder =>
      "Write the table sorted by the columns of the join, in the same order: sort=True of " +
        "write_bucketed."
    case SortedFileMergeReason.Format => "Write the table as Parquet or ORC."
    case SortedFileMergeReason.NonDeterministic =>
      "rand(), monotonically_increasing_id(), input_file_name() and the like depend on " +
        "reading one file after the other. Compute them above the join."
    case SortedFileMergeReason.FileNames =>
      "The table has files that no bucketed write created. Spark refuses to read it by bucket."
    case SortedFileMergeReason.ManyFiles =>
      "Rewrite the table: write_bucketed writes one file per bucket."
    case SortedFileMergeReason.ManyFilesOfMultiJoin =>
      "Grouping by hash is faster if the rows fit in memory. Otherwise rewrite the table: " +
        "write_bucketed writes one file per bucket."
    case SortedFileMergeReason.LargeFiles =>
      "Raise the setting if executors have the memory, select fewer columns, or rewrite the " +
        "table with more buckets."
    case SortedFileMergeReason.OtherInputs =>
      "Rows are grouped by hash, which needs no order and no sort."
  }
}
