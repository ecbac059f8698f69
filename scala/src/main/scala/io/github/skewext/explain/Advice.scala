package io.github.skewext.explain

import io.github.skewext.plan.{BucketReason, MergeReason, RewriteReason, SkewReason, TechniqueReason}

/** What a user can do about a join that was left as it is, and what the reason means. */
private[skewext] object Advice {

  def of(reason: SkewReason): String = reason match {
    case SkewReason.JoinType =>
      "It is a join whose rows say whether a key exists, or one like it. Nothing can be done but " +
        "to write it as another join."
    case SkewReason.KeyType =>
      "Compare what has no collation, as lower(k) COLLATE UTF8_BINARY."
    case SkewReason.OuterCondition =>
      "Which rows come out depends on all rows of the key, and a part of them does not tell. A " +
        "condition on one side alone would be no hindrance."
    case SkewReason.Ordered =>
      "spark.skewext.multiJoin.order=natural asks for it. With auto, sorted inputs are merged as " +
        "well, and the rows of a split partition come in no order."
    case SkewReason.InputNotPartitioned =>
      "Rows that are cached, or computed in another way, have no partitions that could be read in " +
        "parts. A repartition by the key makes a shuffle of them."
    case SkewReason.BucketsOff => "Switch it on for this query."
    case SkewReason.InputNotDeterministic =>
      "Between its shuffle and the join there is rand(), first, a sum of floating-point numbers, a " +
        "row_number, a window of ROWS (rank and whole windows will do), or the like. Put it above " +
        "the join, or write it to a table first."
    case SkewReason.InputsDiffer =>
      "Partitions of one input have been put together in another way than those of another. With " +
        "spark.sql.adaptive.coalescePartitions.enabled=false they are not put together."
    case SkewReason.SplitBySpark => "Nothing is left to do."
    case SkewReason.NotSkewed =>
      "If tasks lag behind all the same, lower " +
        "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes."
    case SkewReason.KeysNotCounted =>
      "Fewer partitions, 8,192 at most: times the number of map tasks 16.8 million at most."
    case SkewReason.ConditionMayFail =>
      "Spark evaluates it for rows with a match alone. With try_divide, try_cast and the like, where " +
        "ANSI mode is on, it cannot fail; functions that are not known here are taken to fail."
    case SkewReason.InputNotSliceable =>
      "Aggregate or join after this join, or repartition the aggregated rows by the key."
    case SkewReason.NotStable =>
      "Below its shuffle the keys of an input, or which rows it has, depend on rand(), first, a sum of " +
        "floating-point numbers, a limit or the like, or it comes from an RDD, a Python list or " +
        "another system. Write it to a table first, or checkpoint it."
    case SkewReason.OneBlock =>
      "The rows have no columns but the key and such that may differ when they are computed again " +
        "(floating-point numbers, arrays, maps, structs), or come from something like first or " +
        "collect_list, an RDD, a Python list or another system. Read the input with more tasks; " +
        "write it to a table, a bucketed one with smaller row groups (parquet.block.size)."
    case SkewReason.TooMuchReread =>
      "The other inputs are large in that partition, too. Allow more with " +
        "spark.skewext.skew.maxRereadFactor."
    case SkewReason.LittleGain => "Allow less gain with spark.skewext.skew.minGain."
    case SkewReason.MergeTarget =>
      "Leave rows out of the source that neither match nor are inserted, as those with a key that " +
        "stands for none. Without WHEN MATCHED, or with WHEN MATCHED THEN DELETE alone, any side is " +
        "split."
    case SkewReason.KeysTogether =>
      "A group-by, a window or a join by the same key uses the partitions of this join. " +
        "spark.sql.adaptive.forceOptimizeSkewedJoin splits it at the price of a shuffle, with the " +
        "cost evaluator of docs/skew.md."
    case SkewReason.UserRepartition => "Drop the repartition if it is not needed."
    case SkewReason.FewFiles =>
      "With io.github.skewext.skew.MarkWrittenJoins in spark.skewext.excludedRules it is split as " +
        "elsewhere, and makes more files."
    case SkewReason.BucketedWrite => "Write the rows to a table without buckets first."
  }

  def of(reason: BucketReason): String = reason match {
    case BucketReason.NoCondition => "Nothing, if all rows are wanted."
    case BucketReason.NotFixed =>
      "Ask for values of all bucket columns, with =, <=>, IN or IS NULL. A range, NOT or an " +
        "expression over a column allows values that nobody can list."
    case BucketReason.HashUnknown =>
      "It is a struct, an array or a map. Buckets by plain columns can be chosen."
    case BucketReason.TooManyValues =>
      "Allow more with that setting; but so many values are in nearly all buckets anyway."
    case BucketReason.SwitchedOff => "Switch it on for this query."
  }

  def of(reason: RewriteReason): String = reason match {
    case RewriteReason.SwitchedOff => "Switch it on for this query."
    case RewriteReason.FewInputs =>
      "Two inputs are shuffled once in any case. With a lower minInputs they are one operator, " +
        "too, which saves the sorts."
    case RewriteReason.MixedOff =>
      "Try the setting with your query; multi_join does the same whatever the setting."
    case RewriteReason.Broadcast => "Nothing: a broadcast shuffles nothing at all."
    case RewriteReason.PartitionPruning =>
      "Nothing: partitions that are not read cost nothing at all. Spark's setting is " +
        "spark.sql.optimizer.dynamicPartitionPruning.enabled."
    case RewriteReason.StoragePartitions =>
      "If the third is partitioned like the others, nothing is shuffled at all."
    case RewriteReason.JoinType =>
      "multi_join with the role excluded does an anti join; the others are Spark's."
    case RewriteReason.Hint => "Take the hint away, if it is not needed any more."
    case RewriteReason.NoCondition => "Every join of the chain must compare the key with =."
    case RewriteReason.ResidualCondition =>
      "Put a condition on one input into that input's query, and others into a WHERE above all " +
        "joins, if that is what is meant."
    case RewriteReason.NullSafeEquality =>
      "Compare with =, if null keys need not match; else replace nulls by a value first."
    case RewriteReason.RepeatedKey => "Compare every column of the key once."
    case RewriteReason.PartialKey =>
      "If one row for each key is meant, join with USING, or compare with a coalesce over the " +
        "keys of all tables before. That is another result: see semantics.md."
    case RewriteReason.DifferentKeys =>
      "Joins on one key after each other become one operator; those on other keys are Spark's."
    case RewriteReason.KeyExpression =>
      "Compute the expression in each input, and join on that column."
    case RewriteReason.LossyCast =>
      "Cast the keys in each input to the type that says which are equal."
    case RewriteReason.KeyType => "Cast the keys in each input to a type that is compared by order."
    case RewriteReason.NonDeterministic => "Compute it in one of the inputs, or above all joins."
    case RewriteReason.PythonFunction => "Call it in one of the inputs, or above all joins."
    case RewriteReason.RepeatedExpression =>
      "Columns in between are put where they are used, each time anew. Compute it in one of the " +
        "inputs, or once above all joins."
    case RewriteReason.Subquery => "Compute it in one of the inputs, or above all joins."
    case RewriteReason.FilterBetween =>
      "Put the filter into an input or above all joins, if that is what is meant."
    case RewriteReason.RolesDiffer =>
      "Write it with multi_join and a role for each input, if that is what is meant."
    case RewriteReason.OuterReference | RewriteReason.SharedSubquery =>
      "Write the subquery as a join."
    case RewriteReason.Streaming => "Nothing: the operator is for batch queries."
  }

  def of(reason: TechniqueReason): String = reason match {
    case TechniqueReason.JoinType =>
      "Take another technique: adaptive does joins of every type."
    case TechniqueReason.Streaming =>
      "Nothing can be done: rows of a key come in many batches, which Spark's own join keeps together. In " +
        "foreachBatch, each batch is a table."
    case TechniqueReason.NoEqualKeys =>
      "All techniques find the rows of a key by =. Compare with a column of the other side."
    case TechniqueReason.KeyType =>
      "Compare what has no collation, as lower(k) COLLATE UTF8_BINARY."
    case TechniqueReason.Condition =>
      "Put a condition on one side into that side's query, or take the technique adaptive."
    case TechniqueReason.TooLarge =>
      "Take iterative_broadcast, adaptive or salted; or, where driver and executors have the memory, " +
        "allow more with spark.skewext.skewJoin.maxBroadcastBytes."
    case TechniqueReason.NotStable =>
      "There is rand(), limit, a sum of floating-point numbers, or the like in it, or it comes from an " +
        "RDD, a Python list or another system. Checkpoint it, write it to a table first, or take a " +
        "technique that reads each side once: adaptive, broadcast."
    case TechniqueReason.MergeTarget =>
      "Nothing: the extension splits the target where that is skewed. See merge.md."
    case TechniqueReason.CommonTable =>
      "Spark computes it once, and knows its columns by ids that the technique would change. Write it to a " +
        "table first, or compute what is not deterministic elsewhere: rand(), uuid(), a Python function."
    case TechniqueReason.WrongOption => "Correct the hint."
  }

  def of(reason: MergeReason): String = reason match {
    case MergeReason.SwitchedOff => "Switch it on for this query."
    case MergeReason.OtherOrder =>
      "Write the table sorted by what it is joined on, in that order: sort=True of write_bucketed."
    case MergeReason.Format => "Write the table as Parquet or ORC."
    case MergeReason.NonDeterministic =>
      "rand(), monotonically_increasing_id(), input_file_name() and the like see files one after " +
        "the other. Compute it above the join."
    case MergeReason.FileNames =>
      "The table has files that no bucketed write made. Spark refuses to read it by bucket."
    case MergeReason.ManyFiles =>
      "Allow more, or write the table anew: write_bucketed makes one file a bucket."
    case MergeReason.ManyFilesOfMultiJoin =>
      "By hash is faster where rows fit in memory. Allow more if they do not, or write the table " +
        "anew."
    case MergeReason.LargeFiles =>
      "Allow more, if executors have the memory; select fewer columns; or write the table in more " +
        "buckets, anew."
    case MergeReason.OtherInputs =>
      "Rows are brought together by hash, which needs no order. Nothing is sorted either."
  }
}
