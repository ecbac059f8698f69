package io.github.skewext.asof.exec

import io.github.skewext.asof.{AsOfMatch, MultiAsOfJoin}
import io.github.skewext.facts.KeepsStableRows
import io.github.skewext.join.WholeReason
import io.github.skewext.join.exec.CombinationCodegen
import io.github.skewext.platform.SkewConf
import io.github.skewext.rows.{GroupingSettings, InputColumn, JoinKeys, KeyOrder, TaskOutput}

import org.apache.spark.TaskContext
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLMetrics}
import org.apache.spark.sql.execution.{SortExec, SparkPlan}
import org.apache.spark.sql.skewext.{MultiZipRDD, SqlInternals}

/**
 * An operator for a [[MultiAsOfJoin]], whose arguments it has. Each task groups the rows of all inputs
 * by key and sorts each key's rows by time. Inputs that are sorted by key and time are read in
 * lockstep.
 *
 * Sorts in the plan would keep operators above from reading columns in the rows of the inputs.
 */
trait AsOfOperator extends CombinationCodegen with KeepsStableRows {

  def keys: Seq[Seq[Expression]]
  def times: Seq[Expression]
  def matches: Seq[AsOfMatch]
  def ties: Seq[Seq[SortOrder]]
  def within: Seq[Seq[Expression]]
  def inner: Boolean

  /** The rows of each input, in partitions that are joined with each other. */
  protected def inputRows: Seq[RDD[InternalRow]]

  /** Whether the rows of an input only come from a shuffle, see [[MultiZipRDD]]. */
  protected def isRead(input: Int): Boolean

  override def output: Seq[Attribute] = allColumns

  /** Of versions that match together, the bytes of all columns decide. */
  override def isSameIfPruned: Boolean = children.indices.tail.forall { i =>
    readAll((keys(i) :+ times(i)) ++ ties(i - 1), children(i).outputSet)
  }

  protected def allColumns: Seq[Attribute] = MultiAsOfJoin.output(children.map(_.output), inner)

  protected def operatorMetrics: Map[String, SQLMetric] = Map(
    "numOutputRows" -> SQLMetrics.createMetric(sparkContext, "number of output rows"),
    "numMatches" -> SQLMetrics.createMetric(sparkContext, "number of matched versions"),
    "spillSize" -> SQLMetrics.createSizeMetric(sparkContext, "spill size"))

  override protected def outputColumns: Seq[Expression] = allColumnExpressions

  protected def allColumnExpressions: Seq[Expression] =
    for {
      (child, i) <- children.zipWithIndex
      (a, ordinal) <- child.output.zipWithIndex
    } yield InputColumn(i, ordinal, a.dataType, a.nullable || (i > 0 && !inner))

  override protected def joined(makesRows: Boolean): RDD[InternalRow] = {
    val byHash = groupsByHash
    val inputs =
      if (byHash) inputRows else inputRows.zipWithIndex.map((sorted _).tupled)
    new MultiZipRDD[InternalRow](
      sparkContext,
      inputs,
      inputs.indices.map(byHash && isRead(_)),
      task(makesRows, byHash))
  }

  /**
   * Whether tasks group unsorted inputs. Inputs that are sorted already need no memory, and times
   * that are no numbers are compared by Spark's sort.
   */
  def groupsByHash: Boolean =
    !avoidsSorts && KeyOrder(bound(times.map(Seq(_)), identity)).prefixIsKey

  /** Whether sorting the unsorted inputs is worthwhile, because others are sorted. */
  protected def avoidsSorts: Boolean = children.indices.exists(isSorted)

  /** The rows of an input in the order of key and time. */
  protected def sorted(rows: RDD[InternalRow], input: Int): RDD[InternalRow] =
    if (isSorted(input)) rows
    else SortedRows(ordering(input), children(input), longMetric("spillSize"))(rows)

  protected def isSorted(input: Int): Boolean =
    SortOrder.orderingSatisfies(children(input).outputOrdering, ordering(input))

  private def ordering(input: Int): Seq[SortOrder] =
    (keys(input) :+ times(input)).map(SortOrder(_, Ascending))

  protected def task(makesRows: Boolean, byHash: Boolean): AsOfTask = {
    val at = keys.zip(times).map { case (key, time) => key :+ time }
    AsOfTask(
      output = TaskOutput(children.map(_.output.map(_.dataType)), outputColumns, makesRows),
      inner = inner,
      keys = AsOfKeys(
        same = JoinKeys(
          bound(keys, SqlInternals.normalizeFloats),
          conf.getConf(SkewConf.MULTI_JOIN_HASH_BITS)),
        present = JoinKeys(bound(at, SqlInternals.normalizeFloats), hashBits = 64),
        order = KeyOrder(bound(at, identity)),
        timeOrder = KeyOrder(bound(times.map(Seq(_)), identity)),
        times = bound(times.map(Seq(_)), identity).map(_.head)),
      tables = children.indices.tail.map(table),
      grouping = if (byHash) Some(GroupingSettings.of(conf)) else None,
      metrics = AsOfMetrics(
        outputRows = longMetric("numOutputRows"),
        matched = longMetric("numMatches"),
        spillSize = longMetric("spillSize")))
  }

  private def table(i: Int): AsOfTable = {
    val both = children.head.output ++ children(i).output
    AsOfTable(
      matches(i - 1),
      ties(i - 1).map(BindReferences.bindReference(_, children(i).output)),
      within(i - 1).map(BindReferences.bindReference(_, both)))
  }

  private def bound(
      of: Seq[Seq[Expression]],
      form: Expression => Expression): Seq[Seq[Expression]] =
    of.zip(children).map { case (expressions, child) =>
      expressions.map(e => BindReferences.bindReference(form(e), child.output))
    }

  override def simpleString(maxFields: Int): String =
    s"$nodeName ${MultiAsOfJoin.describe(keys.head, times.head, matches, inner)}" +
      WholeReason.suffix(this)
}

/** Sorts the rows of each partition by Spark's external sorter, and reports what it spills. */
private[skewext] object SortedRows {

  /** @param input the plan of the rows, which may have other reads. */
  def apply(order: Seq[SortOrder], input: SparkPlan, spillSize: SQLMetric)(
      rows: RDD[InternalRow]): RDD[InternalRow] = {
    val sort = SortExec(order, global = false, input)
    rows.mapPartitions { unsorted =>
      val metrics = TaskContext.get().taskMetrics()
      val spilled = metrics.memoryBytesSpilled
      val sorted = sort.createSorter().sort(unsorted.asInstanceOf[Iterator[UnsafeRow]])
      spillSize += metrics.memoryBytesSpilled - spilled
      sorted
    }
  }
}
