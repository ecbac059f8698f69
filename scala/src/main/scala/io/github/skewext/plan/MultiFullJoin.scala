package io.github.skewext.plan

import scala.collection.mutable

import io.github.skewext.plan.InputRole.{Excluded, Optional, Present, Required}

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LocalRelation, LogicalPlan, Project, Statistics}
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.catalyst.trees.TreePattern.{JOIN, TreePattern}
import org.apache.spark.sql.internal.SQLConf

/**
 * The full outer join of N inputs on one equi-key, narrowed by a role for every input.
 *
 * With all roles `Optional` the result is, as a multiset, that of the chain
 * `c1 FULL JOIN c2 USING (k) FULL JOIN c3 USING (k) ...`. In general it is that chain, filtered to
 * the keys that every `Required` input has and no `Excluded` input has.
 *
 * A row of the output is `keyOutput ++ the other columns of each input ++ indicator`. The value of a
 * key column is that of the first input that has the key.
 *
 * @param keys expressions that are compared, per input; the same number and types in every input
 * @param keyColumns the columns of each input that hold the key's value; what `keyOutput` shows.
 *                   The same attributes as `keys` unless values that differ compare as equal.
 * @param keyOutput the key columns of the output
 * @param roles one for every input
 * @param indicator if defined, a column with the zero-based positions of the inputs that had the key
 */
case class MultiFullJoin(
    children: Seq[LogicalPlan],
    keys: Seq[Seq[Expression]],
    keyColumns: Seq[Seq[Attribute]],
    keyOutput: Seq[Attribute],
    roles: Seq[InputRole],
    indicator: Option[Attribute])
    extends LogicalPlan {

  override lazy val output: Seq[Attribute] =
    MultiFullJoin.output(children.map(_.output), keyColumns, keyOutput, roles, indicator)

  override def producedAttributes: AttributeSet = AttributeSet(keyOutput ++ indicator)

  override lazy val resolved: Boolean = childrenResolved && expressions.forall(_.resolved)

  override def maxRows: Option[Long] = MultiFullJoin.maxRows(children.map(_.maxRows), roles)

  /** Cached, as Spark's own nodes do it: a plan above asks more than once. */
  override def stats: Statistics = {
    if (statsCache.isEmpty) statsCache = Some(MultiJoinEstimation(this))
    statsCache.get
  }

  // Spark's rules for joins look for Spark's joins; what it is for is that ours are quick to see that
  // a plan has no join at all.
  override protected val nodePatterns: Seq[TreePattern] = Seq(JOIN)

  /**
   * What holds for every row that comes out: what holds for the rows of an input that each of them
   * has, and, of the key, what holds in every input that it can be shown from.
   */
  override protected lazy val validConstraints: ExpressionSet = {
    val shown = children.indices.filter(roles(_).isShown)
    val ofNeeded = shown.filter(roles(_).isNeeded).map { i =>
      val own = AttributeSet(valueColumns(i) ++ exactKeys.map(keyColumns(i)(_)))
      overOutput(i, children(i).constraints.filter(_.references.subsetOf(own)))
    }
    lazy val ofEach = shown.map { i =>
      val own = AttributeSet(keyColumns(i))
      overOutput(i, children(i).constraints.filter(_.references.subsetOf(own)))
    }
    val ofAll = if (ofNeeded.isEmpty) ofEach.reduceOption(_ intersect _) else None
    ExpressionSet((ofNeeded ++ ofAll).flatten)
  }

  /** A key comes out in one row if no input that is shown has it twice. */
  override lazy val distinctKeys: Set[ExpressionSet] = {
    val once = conf.getConf(SQLConf.PROPAGATE_DISTINCT_KEYS_ENABLED) && hasExactKeys &&
      children.indices.forall(i => !roles(i).isShown || hasDistinctKeys(i))
    // Rows with a null key each come out alone.
    def noNulls = output.take(keyOutput.size).forall { key =>
      !key.nullable || constraints.contains(IsNotNull(key))
    }
    if (once && noNulls) Set(ExpressionSet(keyOutput)) else Set.empty
  }

  def hasDistinctKeys(i: Int): Boolean =
    children(i).distinctKeys.exists(_.subsetOf(ExpressionSet(keys(i))))

  def valueColumns(i: Int): Seq[Attribute] =
    MultiFullJoin.valueColumns(children(i).output, keyColumns(i))

  /**
   * The key columns of which equal values are identical, by position: it makes no difference which
   * input shows them. Not floating-point numbers (-0.0 equals 0.0), nor keys that are padded for the
   * comparison.
   */
  lazy val exactKeys: Seq[Int] = keyOutput.indices.filter { j =>
    keys.indices.forall { i =>
      KeyTypes.comparedByBytes(keys(i)(j)) && keys(i)(j).semanticEquals(keyColumns(i)(j))
    }
  }

  def hasExactKeys: Boolean = exactKeys.size == keyOutput.size

  lazy val exactKeyOutput: AttributeSet = AttributeSet(exactKeys.map(keyOutput))

  /** The columns of the output that are the input's in every row that comes out. */
  def owned(i: Int): AttributeSet =
    if (roles(i) == Required) AttributeSet(valueColumns(i)) ++ exactKeyOutput
    else AttributeSet.empty

  /** What is said of the output, said of one input. */
  def overInput(i: Int, predicate: Expression): Expression = {
    val keyOf = AttributeMap(keyOutput.zip(keys(i)))
    predicate.transform { case a: Attribute => keyOf.getOrElse(a, a) }
  }

  /**
   * With predicates about the output asked of inputs as well, where they follow from what is known.
   * Each is asked once: below it may be simplified to something that nobody would recognise, and be
   * asked again, and again.
   */
  def withFilters(predicates: Int => Seq[Expression]): MultiFullJoin = {
    val asked = getTagValue(MultiFullJoin.Asked).getOrElse(Map.empty)
    val missing = children.indices.map { i =>
      val before = asked.getOrElse(i, ExpressionSet())
      predicates(i).filterNot(before.contains).filterNot { p =>
        children(i).constraints.contains(overInput(i, p))
      }
    }
    if (missing.forall(_.isEmpty)) {
      this
    } else {
      val join = withInputs(children.indices.map { i =>
        val condition = missing(i).map(overInput(i, _)).reduceOption(And)
        condition.map(Filter(_, children(i))).getOrElse(children(i))
      })
      val now = missing.zipWithIndex.map { case (predicates, i) =>
        i -> ExpressionSet(asked.get(i).toSeq.flatten ++ predicates)
      }
      join.setTagValue(MultiFullJoin.Asked, now.toMap)
      join
    }
  }

  /** What is said of one input, said of the output. A column may be several keys: of each. */
  private def overOutput(i: Int, predicates: ExpressionSet): ExpressionSet =
    keyColumns(i).zip(keyOutput).groupBy(_._1.exprId).values.foldLeft(predicates) { (said, same) =>
      ExpressionSet(same.flatMap { case (column, out) =>
        said.map(_.transform { case a: Attribute if a.exprId == column.exprId => out })
      })
    }

  /**
   * This plan's columns from one that has a part of them; the others are null. Also a plan of no
   * rows, where no input is shown any more.
   */
  def withOutputOf(below: LogicalPlan): LogicalPlan = if (below.outputSet == outputSet) {
    below
  } else {
    val known = AttributeMap(below.output.map(a => a -> a))
    Project(
      output.map(a =>
        known.getOrElse(a, MultiFullJoin.aliasFor(Literal.create(null, a.dataType), a))),
      below)
  }

  /** The same with other roles. What the plan knows of the node stays with it. */
  def withRoles(newRoles: Seq[InputRole]): MultiFullJoin = changed(copy(roles = newRoles))

  def withInputs(inputs: Seq[LogicalPlan]): MultiFullJoin =
    if (inputs.zip(children).forall { case (a, b) => a eq b }) this
    else changed(copy(children = inputs))

  private def changed(join: MultiFullJoin): MultiFullJoin = {
    join.copyTagsFrom(this)
    MultiFullJoin.ChosenByPlanner.foreach(join.unsetTagValue(_))
    join
  }

  /** No rows. */
  def empty: LogicalPlan = LocalRelation(output, Nil)

  /**
   * The join without some inputs, whose columns are null. Whoever asks knows that they make no
   * difference, and that nobody looks at the indicator, which would count other inputs.
   */
  def without(dropped: Set[Int]): LogicalPlan = {
    val kept = children.indices.filterNot(dropped)
    kept match {
      case _ if !kept.exists(roles(_).isShown) => empty
      case Seq(one) =>
        val shownKeys = keyColumns(one).zip(keyOutput).map { case (column, out) =>
          MultiFullJoin.aliasFor(column, out)
        }
        withOutputOf(Project(shownKeys ++ valueColumns(one), children(one)))
      case _ =>
        val join = changed(
          copy(
            children = kept.map(children),
            keys = kept.map(keys),
            keyColumns = kept.map(keyColumns),
            roles = kept.map(roles),
            indicator = None))
        // It is by position.
        join.unsetTagValue(MultiFullJoin.Asked)
        withOutputOf(join)
    }
  }

  override def simpleString(maxFields: Int): String =
    s"MultiFullJoin ${MultiFullJoin.describe(keyOutput.map(_.name), roles, indicator)}" +
      RewriteReason.madeOf(this).map(joins => s", rewritten from $joins").getOrElse("")

  override protected def withNewChildrenInternal(
      newChildren: IndexedSeq[LogicalPlan]): MultiFullJoin = copy(children = newChildren)
}

object MultiFullJoin {

  /** The input that the others are broadcast to. It stays, while adaptive execution plans again. */
  private[skewext] val LargeInput = TreeNodeTag[Int]("skewext.largeInput")

  /** What larger inputs are asked while the query runs. It stays, too. */
  private[skewext] val RuntimeFilters =
    TreeNodeTag[Map[Int, Seq[Expression]]]("skewext.runtimeFilters")

  /** What does not hold for a join that differs from the one that it was chosen for. */
  private val ChosenByPlanner: Seq[TreeNodeTag[_]] = Seq(LargeInput, RuntimeFilters)

  /** What has been asked of each input, in terms of the output. */
  private val Asked = TreeNodeTag[Map[Int, ExpressionSet]]("skewext.asked")

  /** On the projection that gives new ids to an input. */
  private val Renewed = TreeNodeTag[Unit]("skewext.renewed")

  /** The output of the logical and of the physical node: one home for order and nullability. */
  def output(
      inputs: Seq[Seq[Attribute]],
      keyColumns: Seq[Seq[Attribute]],
      keyOutput: Seq[Attribute],
      roles: Seq[InputRole],
      indicator: Option[Attribute]): Seq[Attribute] = {
    val values = inputs.indices.flatMap { i =>
      val columns = valueColumns(inputs(i), keyColumns(i))
      roles(i) match {
        case Required => columns
        case Optional => columns.map(_.withNullability(true))
        case Excluded | Present => Nil
      }
    }
    val keyNullable = keyOutput.indices.map(j => keyIsNullable(keyColumns, roles, j))
    keyOutput.zip(keyNullable).map { case (a, n) => a.withNullability(n) } ++ values ++ indicator
  }

  /** Something under the name and the id of a column of the output. */
  private[skewext] def aliasFor(value: Expression, column: Attribute): Alias =
    Alias(value, column.name)(
      exprId = column.exprId,
      qualifier = column.qualifier,
      explicitMetadata = Some(column.metadata))

  /**
   * An input with other ids for its columns, and from the columns that it had to those. An alias of
   * the same name would do for the analyzer, but Spark's optimizer removes it as redundant, for all
   * nodes that are not its own joins, and two inputs would end up with the same columns. Hence names
   * like `x@1`.
   */
  private[skewext] def withNewIds(
      input: LogicalPlan,
      i: Int): (LogicalPlan, Attribute => Attribute) = {
    val aliases = input.output.map(a => a -> Alias(a, s"${a.name}@$i")())
    val aliasOf = AttributeMap(aliases)
    val renewed = Project(aliases.map(_._2), input)
    renewed.setTagValue(Renewed, ())
    (renewed, aliasOf(_).toAttribute)
  }

  /**
   * Inputs as they are, but for those of which Spark's optimizer could make columns the same: it takes
   * away aliases that change nothing but an id. These get other ids, all their columns.
   *
   *  - Inputs that have a column in common, somewhere in their plans. One that hides it behind an alias
   *    would show it under the id that another one's has above the join. Not what has got new ids
   *    before: those aliases stay, unless they are inputs of a join that may become a part of another.
   *  - An input that has two columns of one name. They could be aliases of one column; if one of them is
   *    the key, the other would be none of the values any more.
   *
   * @return each with its columns by those that it had
   */
  private[skewext] def separated(
      inputs: Seq[LogicalPlan]): Seq[(LogicalPlan, Attribute => Attribute)] = {
    val firstWith = mutable.HashMap.empty[ExprId, Int]
    val sharing = mutable.BitSet.empty
    def visible(plan: LogicalPlan, belowJoin: Boolean): Seq[LogicalPlan] =
      if (!belowJoin && plan.getTagValue(Renewed).isDefined) Seq(plan)
      else {
        val joins = belowJoin || plan.isInstanceOf[MultiFullJoin]
        plan +: plan.children.flatMap(visible(_, joins))
      }
    for {
      (input, i) <- inputs.zipWithIndex
      node <- visible(input, belowJoin = false)
      column <- node.output
    } {
      val first = firstWith.getOrElseUpdate(column.exprId, i)
      if (first != i) sharing ++= Seq(first, i)
    }
    def repeatsName(input: LogicalPlan) =
      input.output.map(_.name).distinct.size < input.output.size
    inputs.zipWithIndex.map { case (input, i) =>
      if (sharing(i) || repeatsName(input)) withNewIds(input, i)
      else (input, (a: Attribute) => a)
    }
  }

  /** The columns of an input that are not its key. */
  def valueColumns(input: Seq[Attribute], keyColumns: Seq[Attribute]): Seq[Attribute] = {
    val keySet = AttributeSet(keyColumns)
    input.filterNot(keySet.contains)
  }

  /** A key column shows a null only for rows whose key has one, where these come out at all. */
  private def keyIsNullable(
      keyColumns: Seq[Seq[Attribute]],
      roles: Seq[InputRole],
      column: Int): Boolean =
    roles.indices.exists { i =>
      InputRole.emitsNullKeys(roles, i) && keyColumns(i)(column).nullable
    }

  /**
   * A bound for the rows: each combination of rows of some inputs comes out at most once, and at
   * least one input takes part.
   */
  def maxRows(inputs: Seq[Option[Long]], roles: Seq[InputRole]): Option[Long] = {
    val factors = inputs.zip(roles).collect {
      case (rows, Required) => rows.map(BigInt(_))
      case (rows, Optional) => rows.map(BigInt(_) + 1)
    }
    if (factors.forall(_.isDefined)) {
      val product = factors.flatten.product - (if (roles.contains(Required)) 0 else 1)
      if (product.isValidLong) Some(product.toLong) else None
    } else {
      None
    }
  }

  /** `[k] full outer, 4 inputs` or `[k] 3 inputs: required, optional, excluded`. */
  def describe(
      keyNames: Seq[String],
      roles: Seq[InputRole],
      indicator: Option[Attribute]): String = {
    val key = keyNames.mkString("[", ", ", "]")
    val kind = if (roles.forall(_ == Optional)) {
      s"full outer, ${roles.size} inputs"
    } else {
      s"${roles.size} inputs: ${roles.map(_.name).mkString(", ")}"
    }
    s"$key $kind" + indicator.map(a => s", indicator ${a.name}").getOrElse("")
  }
}
