package io.github.skewext.explain

import io.github.skewext.bucket.FileOrderReason
import io.github.skewext.bucket.files.SortedFilesExec
import io.github.skewext.inputs.{HintedInputs, NewIds}
import io.github.skewext.join.MultiFullJoin
import io.github.skewext.join.exec.{AlignPartitionsExec, MultiJoinExec}
import io.github.skewext.shuffle.ColumnarFilterProjectExec

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.aggregate.BaseAggregateExec
import org.apache.spark.sql.execution.columnar.InMemoryTableScanExec
import org.apache.spark.sql.execution.exchange.ReusedExchangeExec
import org.apache.spark.sql.types.LongType

/**
 * The inputs of a join: the source of their rows, and the predicates on the way to the join.
 *
 * @param analyzed the query as written.
 * @param numberOf a function from a join to the number of its entry.
 */
private[skewext] class ExplainedInputs(
    analyzed: Seq[LogicalPlan],
    numberOf: SparkPlan => Option[Int])
    extends PredicateHelper {

  /** The multi-way joins that the query calls by name, by an id of their key columns. */
  private lazy val asked: Map[ExprId, MultiFullJoin] = analyzed
    .flatMap(_.collectWithSubqueries { case join: MultiFullJoin => join })
    .flatMap(join => join.keyOutput.headOption.map(_.exprId -> join))
    .toMap

  /** @param logical the node that the operator was planned for */
  def of(join: MultiJoinExec, logical: Option[LogicalPlan]): Seq[ExplainedInput] = {
    val node = logical.collect { case node: MultiFullJoin => node }
    val before = join.keyOutput.headOption.flatMap(a => asked.get(a.exprId))
    join.children.indices.map { i =>
      val role = join.roles(i).name
      val position = before.map { b =>
        // Optimizer rules may have removed inputs.
        if (b.children.size == join.children.size) i
        else b.keyColumns.indexWhere(_.map(_.exprId) == join.keyColumns(i).map(_.exprId))
      }
      val askedRole = position.flatMap(before.get.roles.lift(_)).map(_.name)
      of(join.children(i), i).copy(
        role = Some(role),
        narrowedFrom = askedRole.filter(_ != role),
        key = join.keys(i).map(sql),
        hint = node.flatMap(ExplainedInputs.unusedHint(_, i)))
    }
  }

  /** An input of any join. */
  def of(input: SparkPlan, position: Int): ExplainedInput = {
    val nodes = nodesOf(input)
    val filters = nodes
      .flatMap {
        case ExplainedInputs.Filtered(condition) => splitConjunctivePredicates(condition)
        case scan: FileSourceScanLike => scan.partitionFilters
        case _ => Nil
      }
      .filterNot(isMadeAtRuntime)
    ExplainedInput(
      position,
      role = None,
      narrowedFrom = None,
      source(input),
      key = Nil,
      filters = filters.map(sql).distinct,
      read = nodes.flatMap(read).distinct)
  }

  /** The nodes of an input, except for those of joins in it, which have separate entries. */
  private def nodesOf(node: SparkPlan): Seq[SparkPlan] = node match {
    case join if PlannedJoin.isJoin(join) => Nil
    case other => other +: childrenOf(other).flatMap(nodesOf)
  }

  private def childrenOf(node: SparkPlan): Seq[SparkPlan] = node match {
    case reused: ReusedExchangeExec => Seq(reused.child)
    case other => PlannedJoin.below(other)
  }

  private def source(node: SparkPlan): String = node match {
    case join if PlannedJoin.isJoin(join) =>
      numberOf(node).fold("another join")(n => s"join $n")
    case aggregate: BaseAggregateExec =>
      val rows = source(aggregate.child)
      // Partial and final aggregates are one aggregate to the user.
      if (rows.startsWith(AggregateOf)) rows else s"$AggregateOf$rows"
    case scan: FileSourceScanExec => ExplainedInputs.nameOf(scan)
    case scan: InMemoryTableScanExec =>
      scan.relation.cacheBuilder.tableName.fold("cached data")(name => s"cached table $name")
    case other =>
      childrenOf(other) match {
        case Seq(one) => source(one)
        case Seq() => other.nodeName.trim
        case several => s"${other.nodeName} of ${several.size}"
      }
  }

  /** Whether a predicate was added for run time, and is not part of the query. */
  private def isMadeAtRuntime(e: Expression): Boolean = e match {
    case _: DynamicPruning | _: BloomFilterMightContain => true
    case _ => false
  }

  private val AggregateOf = "aggregate of "

  /** The data that a scan of files skips, and the rows that a filter above it drops early. */
  private def read(node: SparkPlan): Seq[String] = node match {
    case scan: FileSourceScanLike =>
      Seq(
        "PartitionFilters" -> "partitions",
        "PushedFilters" -> "row groups",
        "SelectedBucketsCount" -> "buckets").flatMap { case (key, what) =>
        scan.metadata
          .get(key)
          .filterNot(value => value.isEmpty || value == "[]")
          .map(value => s"$what: $value")
      } ++ FileOrderReason.of(scan).map(reason => s"order of its files not used, as ${reason.text}")
    case aligned: AlignPartitionsExec =>
      Seq(s"partitions of the storage, by ${aligned.by}: ${aligned.values.size}, without a shuffle")
    case _: SortedFilesExec => Seq("in the order of its files, without a sort")
    case ExplainedInputs.Filtered(condition) =>
      splitConjunctivePredicates(condition).collect {
        case BloomFilterMightContain(_, XxHash64(Seq(key), _)) => s"bloom filter: ${sql(key)}"
      }
    case _ => Nil
  }

  private def sql(e: Expression): String = ExplainedInputs.sql(e)
}

private[skewext] object ExplainedInputs {

  /** The hint of an input that has no effect, and why. */
  def unusedHint(join: HintedInputs, i: Int): Option[String] = for {
    hint <- join.hint(i)
    reason <- join.unusedHint(i)
  } yield s"${hint.strategy.fold(hint.toString)(_.displayName)} not used ($reason)"

  /** For example, `parquet db.t`. */
  def nameOf(scan: FileSourceScanExec): String = {
    val format = scan.relation.fileFormat.toString.toLowerCase(java.util.Locale.ROOT)
    val name = scan.tableIdentifier
      .map(_.unquotedString)
      .orElse(scan.relation.location.rootPaths.headOption.map(_.getName))
    (format +: name.toSeq).mkString(" ")
  }

  /**
   * The expression as users write it: without column ids, the suffix `L` of numbers, and outer
   * parentheses.
   */
  def sql(e: Expression): String = {
    val text = e
      .transform {
        case a: AttributeReference =>
          a.withQualifier(Nil).withName(NewIds.shownName(a.name))
        case Literal(n: Long, LongType) if n.isValidInt => Literal(n.toInt)
      }
      .sql
      .replaceAll("`([A-Za-z_][A-Za-z0-9_]*)`", "$1")
    if (text.startsWith("(") && matching(text) == text.length - 1) text.drop(1).dropRight(1)
    else text
  }

  /** The end of the parenthesis at the start of the text. */
  private def matching(text: String): Int = {
    val depths = text.scanLeft(0) { (depth, c) =>
      if (c == '(') depth + 1 else if (c == ')') depth - 1 else depth
    }
    depths.tail.indexOf(0)
  }

  /** The predicate of a filter of rows or of columns. */
  private object Filtered {
    def unapply(node: SparkPlan): Option[Expression] = node match {
      case FilterExec(condition, _) => Some(condition)
      case ColumnarFilterProjectExec(_, condition, _) => condition
      case _ => None
    }
  }
}
