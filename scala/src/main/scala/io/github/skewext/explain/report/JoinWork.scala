package io.github.skewext.explain.report

import org.apache.spark.sql.execution.ui.SparkPlanGraphNode
import org.apache.spark.status.api.v1.StageData

/**
 * An input of a join of Spark's.
 *
 * @param rows the number of its rows, if an operator counts them.
 * @param shuffled whether the join reads it from a shuffle.
 * @param stage the stage that wrote this shuffle, if that is known.
 * @param chained whether it is the result of a full outer join, shuffled by the merged key.
 */
private[skewext] case class JoinInput(
    rows: Option[Long],
    shuffled: Boolean,
    stage: Option[Int],
    chained: Boolean)

/**
 * A join of Spark's that the extension may run in less time.
 *
 * @param condition the form of a condition for which it tests all pairs of rows.
 */
private[skewext] case class JoinWork(
    stage: Int,
    join: ExecutedJoin,
    inputs: Seq[JoinInput],
    condition: Option[String])

/**
 * The time of the tasks of a stage, and the rows that they processed.
 *
 * @param attempts the stage's own figures.
 * @param aggregated the input rows of its aggregates.
 * @param joined the output rows of its joins.
 * @param isKnown whether all its operators take similar time for a row.
 */
private[skewext] case class StageWork(
    stage: Int,
    attempts: Seq[StageData],
    aggregated: Long,
    joined: Long,
    isKnown: Boolean) {

  def total(figure: StageData => Long): Long = attempts.map(figure).sum
}

/**
 * Collects the work of Spark's joins, and of the stages that run them or write their inputs.
 *
 * @param stages all stages of the query.
 * @param attempts a function from a stage to its attempts.
 */
private[skewext] class QueryWork(
    graph: OperatorGraph,
    joinStages: JoinStages,
    stages: Seq[Int],
    attempts: Int => Seq[StageData]) {
  import QueryWork._

  def join(stage: Int, node: SparkPlanGraphNode, join: ExecutedJoin): Option[JoinWork] =
    if (!OfSpark(join.name)) None
    else {
      def sides = graph.children(node).map(graph.all(_).map(_.desc))
      val counted = graph.children(node).map(input(node, _))
      val inputs = if (join.name == Product) readOnce(stage, counted) else counted
      Some(JoinWork(stage, join, inputs, PairConditions.form(node.desc, sides)))
    }

  /** The stages that run the joins, or write their inputs. */
  def stagesOf(joins: Seq[(Int, SparkPlanGraphNode)]): Seq[StageWork] = {
    val writers = for {
      (_, join) <- joins
      child <- graph.children(join)
      exchange <- graph.exchangeBelow(child)
      writer <- graph.children(exchange).headOption
      stage <- writerOf(exchange)
    } yield stage -> writer
    (joins ++ writers).toMap.toSeq.sortBy(_._1).map { case (stage, node) =>
      work(stage, graph.sameTasks(node))
    }
  }

  private def input(join: SparkPlanGraphNode, child: SparkPlanGraphNode): JoinInput = {
    val exchange = graph.exchangeBelow(child)
    JoinInput(
      graph.rows(child),
      exchange.isDefined,
      exchange.flatMap(writerOf),
      isFull(join) && exchange.exists(isChained))
  }

  /**
   * The inputs of a Cartesian product, whose tasks read a partition of each side. So they count a row
   * as often as the other side has partitions, if it is not from a shuffle. The number of pairs is
   * exact, and that of a side's rows a guess.
   */
  private def readOnce(stage: Int, inputs: Seq[JoinInput]): Seq[JoinInput] = {
    val times = math.sqrt(math.max(1, attempts(stage).map(_.numTasks).sum))
    if (inputs.forall(_.shuffled)) inputs
    else if (inputs.exists(_.shuffled)) inputs.map(_.copy(rows = None))
    else inputs.map(i => i.copy(rows = i.rows.map(rows => math.round(rows / times))))
  }

  /** Whether the tasks of a stage read as many rows as the exchanges below a join have. */
  def reads(stage: Int, join: SparkPlanGraphNode): Boolean = {
    val exchanges = graph.sameTasks(join).flatMap(graph.children).filter(_.name == "Exchange")
    total(stage)(_.shuffleReadRecords) == exchanges.toSeq.flatMap(graph.rows).sum
  }

  private def writerOf(exchange: SparkPlanGraphNode): Option[Int] =
    joinStages
      .writerOf(exchange, graph.children(exchange).map(graph.named), stages)
      .orElse(
        Some(stages.filter(s => graph.rows(exchange).contains(total(s)(_.shuffleWriteRecords))))
          .collect { case Seq(stage) => stage })

  private def total(stage: Int)(figure: StageData => Long): Long = attempts(stage).map(figure).sum

  private def isChained(exchange: SparkPlanGraphNode): Boolean = {
    def merged(node: SparkPlanGraphNode, names: Seq[String]): Boolean =
      if (isFull(node)) {
        exchange.desc.contains("coalesce(") || names.exists(n => exchange.desc.contains(s"$n,"))
      } else {
        val more = Merged.findAllMatchIn(node.desc).map(_.group(1)).toSeq
        node.name == "Project" && graph.children(node).exists(merged(_, names ++ more))
      }
    graph.children(exchange).exists(merged(_, Nil))
  }

  private def isFull(node: SparkPlanGraphNode): Boolean =
    JoinStages.isJoin(node) && node.desc.contains("FullOuter")

  private def work(stage: Int, operators: Set[SparkPlanGraphNode]): StageWork = {
    def rows(nodes: Seq[SparkPlanGraphNode]): Long = nodes.flatMap(graph.rows).sum
    val (joins, others) = operators.toSeq.partition(JoinStages.isJoin(_))
    StageWork(
      stage,
      attempts(stage),
      rows(others.filter(_.name.contains("Aggregate")).flatMap(graph.children)),
      rows(joins),
      others.forall(node => Slow.findFirstIn(node.name).isEmpty))
  }
}

private object QueryWork {

  val Product = "CartesianProduct"

  val OfSpark: Set[String] =
    Set("SortMergeJoin", "ShuffledHashJoin", "BroadcastNestedLoopJoin", Product)

  /** A key that a projection merges, and its name. */
  val Merged = """coalesce\([^()]*\) AS ([^ ,\]]+#\d+L?)""".r

  /** Operators that may take any time for a row. */
  val Slow = "Python|Arrow|Pandas|Map|Window|Generate|Script|ToObject".r
}
