package io.github.skewext.profile

import io.github.skewext.inputs.{BatchInputs, KeyColumn, KeyTypes}
import io.github.skewext.platform.StageName

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.statsEstimation.EstimationUtils
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Project}
import org.apache.spark.sql.execution.{QueryExecution, SQLExecution}
import org.apache.spark.sql.skewext.SqlInternals
import org.apache.spark.sql.{DataFrame, SparkSession}

/**
 * One pass over the keys of a DataFrame. Each partition computes a profile of its keys. The
 * profiles are merged on the driver, or in several steps if there are many partitions. Only
 * profiles are shuffled.
 *
 * @param keys the keys as a join would compare them.
 */
private[skewext] final class KeyPass(
    session: SparkSession,
    plan: LogicalPlan,
    keys: Seq[Expression]) {

  /** The size of a row in memory, estimated from the types of its columns. */
  def typicalRowBytes: Long = EstimationUtils.getSizePerRow(plan.output).toLong

  /**
   * @param withBytes whether to measure the size of rows, which reads all columns.
   * @param asked keys whose rows are counted exactly.
   */
  def run(
      numPartitions: Int,
      sketchSize: Int,
      withBytes: Boolean,
      asked: Seq[ReportedKey]): KeyProfile = {
    val query = reading(withBytes)
    val output = query.analyzed.output
    val profiling = KeyProfiling(
      if (withBytes) BindReferences.bindReferences(keys, output) else columns(output),
      if (withBytes) Some(output.map(_.dataType)) else None,
      numPartitions,
      sketchSize,
      asked.toArray)
    val merged = StageName.named(session.sparkContext, KeyPass.Name) {
      SQLExecution.withNewExecutionId(query, Some(KeyPass.Name)) {
        // As bytes, so that the session's serializer and its registered classes do not matter.
        query.toRdd
          .mapPartitions(rows => Iterator.single(profiling.profile(rows).toBytes))
          .treeAggregate(Array.emptyByteArray)(KeyProfile.merge, KeyProfile.merge)
      }
    }
    if (merged.isEmpty) KeyProfile.empty(numPartitions, sketchSize, withBytes, asked.size)
    else KeyProfile.fromBytes(merged)
  }

  /** A query of the whole rows, or of their keys only. */
  private def reading(wholeRows: Boolean): QueryExecution = {
    val read =
      if (wholeRows) plan
      else Project(keys.zipWithIndex.map { case (k, i) => Alias(k, s"key$i")() }, plan)
    SqlInternals.dataFrame(session, read).queryExecution
  }

  private def columns(output: Seq[Attribute]): Seq[Expression] =
    output.zipWithIndex.map { case (a, i) => BoundReference(i, a.dataType, a.nullable) }
}

private[skewext] object KeyPass {

  /** The name of its stages and queries. */
  val Name = "skew_report"

  /** The passes over one DataFrame, or over two whose keys are compared as in a join of them. */
  def over(
      session: SparkSession,
      inputs: Seq[DataFrame],
      names: Seq[Seq[String]]): (Seq[Attribute], Seq[KeyPass]) = {
    // For a command, the result of its execution: its analyzed plan would run it again.
    val plans = inputs.map(_.queryExecution.commandExecuted)
    val (output, keys) = compared(session, plans, names)
    (output, plans.zip(keys).map { case (plan, ofPlan) => new KeyPass(session, plan, ofPlan) })
  }

  /** The columns of the common key, and the compared expressions of each plan. */
  def compared(
      session: SparkSession,
      plans: Seq[LogicalPlan],
      names: Seq[Seq[String]]): (Seq[Attribute], Seq[Seq[Expression]]) = {
    BatchInputs.check(plans, "a report")
    if (names.exists(_.isEmpty)) fail("The list of key columns is empty; a report needs a key.")
    if (names.size != plans.size) {
      fail(s"There are ${plans.size} inputs, but key columns for ${names.size}.")
    }
    if (names.map(_.size).distinct.size > 1) {
      fail(
        s"The inputs have different numbers of key columns: ${names.map(_.size).mkString(", ")}.")
    }
    val same = session.sessionState.conf.resolver
    val columns = plans.indices.map(i => names(i).map(KeyColumn.of(plans(i), i, _, same)))
    val expressions = names.head.indices.map { j =>
      KeyTypes.compared(session, names.head(j), columns.map(_(j)), isReturned = false)
    }
    val output = names.head.zip(expressions).map { case (name, ofEach) =>
      AttributeReference(name, ofEach.head.dataType)()
    }
    (output, plans.indices.map(i => expressions.map(each => SqlInternals.normalizeFloats(each(i)))))
  }

  private def fail(message: String): Nothing = throw SqlInternals.analysisError(message)
}

/**
 * The keys with many rows in at least one input, found like in a report: by one pass over the keys
 * of each input that shuffles only sketches.
 *
 * @param rows the number of rows of each input, without rows with a null in the key.
 * @param keys the keys as literals, each with its number of rows in every input; 0 for an input
 *             whose sketch lacks the key.
 */
private[skewext] case class FrequentKeys(rows: Seq[Long], keys: Seq[(Seq[Literal], Seq[Double])])

private[skewext] object FrequentKeys {

  /**
   * @param keys the compared expressions of each input.
   * @param minShare the share of an input's rows above which all keys are found.
   */
  def of(
      session: SparkSession,
      inputs: Seq[LogicalPlan],
      keys: Seq[Seq[Expression]],
      minShare: Double): FrequentKeys = SqlInternals.withActive(session) {
    val profiles = inputs.zip(keys).map { case (input, compared) =>
      new KeyPass(session, input, compared.map(SqlInternals.normalizeFloats)).run(
        session.sessionState.conf.numShufflePartitions,
        KeyProfile.sketchSize(minShare),
        withBytes = false,
        asked = Nil)
    }
    val types = keys.head.map(_.dataType)
    val frequent = profiles.flatMap(p => p.frequent((minShare * p.rows.sum).toLong))
    FrequentKeys(
      profiles.map(_.rows.sum),
      frequent.distinct.map { key =>
        val row = key.row(types.size)
        val literals = types.zipWithIndex.map { case (t, i) => Literal(row.get(i, t), t) }
        literals -> profiles.map { profile =>
          val (low, high) = profile.bounds(key)
          (low + high) / 2.0
        }
      })
  }
}
