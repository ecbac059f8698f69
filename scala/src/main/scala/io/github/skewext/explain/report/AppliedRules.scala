package io.github.skewext.explain.report

import io.github.skewext.bucket.UseSortedFiles
import io.github.skewext.join.MultiFullJoinStrategy
import io.github.skewext.join.exec.MultiFullJoinExec
import io.github.skewext.merge.SpreadSourceNullKeys
import io.github.skewext.nullkeys.SpreadNullKeys
import io.github.skewext.rewrite.RewriteJoinChains
import io.github.skewext.shuffle.{BulkExchanges, ColumnShuffleExchangeExec}
import io.github.skewext.skew.split.{SketchJoinKeys, SplitSkewedJoins}
import io.github.skewext.technique.SaltedJoin

import org.apache.spark.sql.execution.ui.SparkPlanGraphNode

/** A rule of ours that has changed a plan, and a description of the change. */
private[skewext] case class AppliedRule(rule: String, text: String)

/**
 * The rules of ours that have changed a plan that has run. Such a plan has only the names and the
 * text of its nodes, so each rule is recognized by the text of its nodes.
 */
private[skewext] object AppliedRules {

  private val Rewritten = """, rewritten from ([^,]+)""".r.unanchored
  private val Inputs = """ (\d+) inputs""".r.unanchored

  def of(nodes: Seq[SparkPlanGraphNode]): Seq[AppliedRule] = {
    def count(rule: AnyRef, what: String)(is: SparkPlanGraphNode => Boolean): Option[AppliedRule] =
      Some(nodes.count(is)).filter(_ > 0).map(n => AppliedRule(nameOf(rule), s"$what: $n"))
    def exchange(text: String)(node: SparkPlanGraphNode) =
      node.name.contains("Exchange") && node.desc.contains(text)
    val spreads =
      if (nodes.exists(_.name.startsWith(MultiFullJoinExec.Name))) SpreadNullKeys
      else SpreadSourceNullKeys
    nodes.flatMap(ofJoin) ++ Seq(
      count(SaltedJoin, "sides of joins that were salted")(_.name == "SaltKeys"),
      count(spreads, "exchanges that spread rows with a null key")(exchange("spreadnulls(")),
      count(SketchJoinKeys, "inputs whose keys were counted")(_.name == "KeySketch"),
      count(BulkExchanges, "exchanges that wrote columns")(
        exchange(ColumnShuffleExchangeExec.Mark)),
      count(UseSortedFiles, "inputs in the order of their files")(_.name == "SortedFiles")).flatten
  }

  private def ofJoin(node: SparkPlanGraphNode): Seq[AppliedRule] = {
    val join = ExecutedJoin.of(node, Map.empty)
    if (ExecutedJoin.Names(join.name)) ofJoin(node, join) else Nil
  }

  private def ofJoin(node: SparkPlanGraphNode, join: ExecutedJoin): Seq[AppliedRule] = {
    val rewritten = Some(node.desc).collect { case Rewritten(joins) =>
      AppliedRule(nameOf(RewriteJoinChains), s"$joins became one")
    }
    val inputs = Some(node.desc).collect {
      case Inputs(number) if join.name == MultiFullJoinExec.Name =>
        AppliedRule(nameOf(MultiFullJoinStrategy), s"one operator joined $number inputs")
    }
    val split = join.split.map(how => AppliedRule(nameOf(SplitSkewedJoins), s"split $how"))
    Seq(rewritten, inputs, split).flatten
  }

  private def nameOf(rule: AnyRef): String = rule.getClass.getSimpleName.stripSuffix("$")
}
