package io.github.skewext.inputs

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{CTERelationRef, LogicalPlan, Project}
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.internal.SQLConf

/** New ids for the columns of inputs, so that no two inputs of a join return the same column. */
private[skewext] object NewIds {

  /** Marks a projection that gives new ids to an input. */
  private val Renewed = TreeNodeTag[Unit]("skewext.renewed")

  /**
   * Gives new ids to the columns of an input. It returns the new plan, and a function from old
   * columns to new ones.
   *
   * The aliases also have new names, such as `x@1`. The analyzer would accept aliases of the same
   * name, but Spark's optimizer removes these as redundant below all nodes except its own joins.
   * Then two inputs would have the same columns.
   */
  def withNewIds(input: LogicalPlan, i: Int): (LogicalPlan, Attribute => Attribute) = {
    val aliases = input.output.map(a => a -> Alias(a, newName(a.name, i.toString))())
    val aliasOf = AttributeMap(aliases)
    val renewed = Project(aliases.map(_._2), input)
    renewed.setTagValue(Renewed, ())
    (renewed, aliasOf(_).toAttribute)
  }

  /**
   * A name for an alias of a column, so that the alias is not redundant.
   *
   * @param of the number of an input, or `key` or `part` with a number. No two aliases of one column
   *           have one name: the optimizer may remove what is between them.
   */
  def newName(name: String, of: String): String = s"$name@$of"

  /** The name of the column, from that of such an alias. */
  def shownName(name: String): String = name.replaceFirst("@(\\d+|(key|part)\\d*)$", "")

  def shownNames(columns: Seq[Attribute]): Seq[String] = columns.map(c => shownName(c.name))

  /**
   * Gives new ids to all columns of those inputs in which Spark's optimizer could produce equal
   * columns, because it removes aliases that only change an id. Other inputs stay unchanged. New
   * ids go to
   *
   *  - inputs that have a column in common, anywhere in their plans. If one of them hides the
   *    column behind an alias and the optimizer removes the alias, two inputs return the same
   *    column. Plans below earlier new ids are skipped, because these aliases stay. They are not
   *    skipped below a join: it may become a part of another one, or one of its inputs alone.
   *  - inputs that refer to a CTE. The plans of CTEs are put there later.
   *  - inputs with two columns of one name. These could be aliases of one column. If one of them is
   *    the key and the optimizer removes the aliases, the other one is no longer a value column.
   *
   * @param taken ids of columns of the result that an input may have for another column, by the
   *              number of the input. If an alias hides such a column and the optimizer removes the
   *              alias, it is taken for the column of the result.
   * @return each input, with a function from its old columns to the new ones.
   */
  def separated(
      inputs: Seq[LogicalPlan],
      taken: Int => Set[ExprId] = _ => Set.empty): Seq[(LogicalPlan, Attribute => Attribute)] = {
    val firstWith = mutable.HashMap.empty[ExprId, Int]
    val sharing = mutable.BitSet.empty
    def visible(plan: LogicalPlan, belowJoin: Boolean): Seq[LogicalPlan] =
      if (!belowJoin && plan.getTagValue(Renewed).isDefined) Seq(plan)
      else {
        val joins = belowJoin || plan.children.size > 1
        plan +: plan.children.flatMap(visible(_, joins))
      }
    for {
      (input, i) <- inputs.zipWithIndex
      takenIds = taken(i)
      node <- visible(input, belowJoin = false)
      column <- node.output
    } {
      val first = firstWith.getOrElseUpdate(column.exprId, i)
      if (first != i) sharing ++= Seq(first, i)
      if (takenIds(column.exprId)) sharing += i
    }
    sharing ++= inputs.indices.filter(inputs(_).exists(_.isInstanceOf[CTERelationRef]))
    def repeatsName(input: LogicalPlan) =
      input.output.map(_.name).distinct.size < input.output.size
    inputs.zipWithIndex.map { case (input, i) =>
      if (sharing(i) || repeatsName(input)) withNewIds(input, i)
      else (input, (a: Attribute) => a)
    }
  }
}

/** The names of columns in the result of a join. Inputs may have thousands of columns. */
private[skewext] object OutputNames {

  /** The same for names that Spark does not distinguish. */
  def spelling(name: String): String =
    if (SQLConf.get.caseSensitiveAnalysis) name
    else name.map(c => Character.toLowerCase(Character.toUpperCase(c)))

  /**
   * The names of the columns of each input. A name that several inputs have gets a suffix.
   *
   * @param suffixes one for each input; null is none.
   */
  def suffixed(inputs: Seq[Seq[String]], suffixes: Seq[String]): Seq[Seq[String]] = {
    val inputsOf = inputs.flatMap(_.map(spelling).distinct).groupBy(identity)
    inputs.zip(suffixes).map { case (names, suffix) =>
      names.map(name =>
        if (inputsOf(spelling(name)).size > 1) name + Option(suffix).mkString else name)
    }
  }

  /** The first name that occurs twice. */
  def repeated(names: Seq[String]): Option[String] = {
    val seen = scala.collection.mutable.HashSet.empty[String]
    names.find(name => !seen.add(spelling(name)))
  }
}
