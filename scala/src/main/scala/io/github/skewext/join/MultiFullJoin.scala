package io.github.skewext.join

import io.github.skewext.facts.{AddedPredicates, ComparedByBytes, ComputedBelow, KeptInPlace, SafeToPush}
import io.github.skewext.inputs.HintedInputs
import io.github.skewext.join.InputRole.{Excluded, Optional, Present, Required}
import io.github.skewext.platform.OwnNode

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.plans.{Inner, LeftAnti, LeftOuter, LeftSemi}
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.catalyst.trees.TreePattern.{CTE, FILTER, JOIN, PLAN_EXPRESSION}
import org.apache.spark.sql.internal.SQLConf

/**
 * The full outer join of N inputs on one equi-join key. The role of each input narrows the result.
 *
 * If all roles are `Optional`, the result is, as a multiset, that of the chain
 * `c1 FULL JOIN c2 USING (k) FULL JOIN c3 USING (k) ...`. In general it is that chain, filtered to
 * the keys that every `Required` input has and no `Excluded` input has.
 *
 * A row of the output is `keyOutput ++ the other columns of each input ++ indicator`. A key column
 * has the value of the first input that has the key.
 *
 * @param keys the compared expressions of each input; all inputs have the same number and types.
 * @param keyColumns the columns of each input with the values for `keyOutput`. They are the
 *                   attributes in `keys`, unless different values compare as equal.
 * @param keyOutput the key columns of the output.
 * @param roles the role of each input.
 * @param indicator if defined, a column with the zero-based positions of the inputs that have the
 *                  key.
 * @param hints the join hint of each input, or empty.
 */
case class MultiFullJoin(
    children: Seq[LogicalPlan],
    keys: Seq[Seq[Expression]],
    keyColumns: Seq[Seq[Attribute]],
    keyOutput: Seq[Attribute],
    roles: Seq[InputRole],
    indicator: Option[Attribute],
    hints: Seq[Option[HintInfo]] = Nil)
    extends PrunedByKeys
    with HintedInputs
    with UnorderedInputs
    with OwnNode {

  override lazy val output: Seq[Attribute] =
    MultiJoinOutput.of(
      children.map(_.output),
      keyColumns,
      keyOutput,
      roles,
      indicator,
      isCanonicalizedPlan)

  override def producedAttributes: AttributeSet = AttributeSet(keyOutput ++ indicator)

  /** As in Spark's semi and anti joins, `_metadata` is that of the inputs whose rows are shown. */
  override def metadataOutput: Seq[Attribute] =
    children.indices.filter(roles(_).isShown).flatMap(children(_).metadataOutput)

  override lazy val resolved: Boolean = childrenResolved && expressions.forall(_.resolved)

  override def maxRows: Option[Long] = MultiJoinOutput.maxRows(children.map(_.maxRows), roles)

  /** Cached, as in Spark's own nodes, because plans above read it repeatedly. */
  override def stats: Statistics = {
    if (statsCache.isEmpty) statsCache = Some(MultiJoinEstimation(this))
    statsCache.get
  }

  /**
   * Predicates that hold for every output row: those of required inputs. Without a required input,
   * these are the predicates on the key that hold in every input whose rows are returned.
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
    // Without a filter or a join below, an input has hardly a predicate on its key, and Spark takes
    // long to compute the constraints of many columns.
    def mayHold = shown.forall(children(_).containsAnyPattern(FILTER, JOIN))
    val ofAll = if (ofNeeded.isEmpty && mayHold) ofEach.reduceOption(_ intersect _) else None
    ExpressionSet((ofNeeded ++ ofAll).flatten)
  }

  /** The key is unique in the output if it is unique in every input whose rows are returned. */
  override lazy val distinctKeys: Set[ExpressionSet] = {
    val once = conf.getConf(SQLConf.PROPAGATE_DISTINCT_KEYS_ENABLED) && hasExactKeys &&
      children.indices.forall(i => !roles(i).isShown || hasDistinctKeys(i))
    // Rows with a null key match nothing, so several of them may have the same key.
    def noNulls = output.take(keyOutput.size).forall { key =>
      !key.nullable || constraints.contains(IsNotNull(key))
    }
    if (once && noNulls) Set(ExpressionSet(keyOutput)) else Set.empty
  }

  override def unusedHint(i: Int): Option[String] = hint(i).map { hint =>
    if (hint.strategy.contains(BROADCAST)) BroadcastSmallInputs.obstacle(this, i)
    else if (hint.strategy.isDefined) "one operator joins all inputs, in its own way"
    else "it is a hint for a join of two inputs"
  }

  def hasDistinctKeys(i: Int): Boolean =
    children(i).distinctKeys.exists(_.subsetOf(ExpressionSet(keys(i))))

  def valueColumns(i: Int): Seq[Attribute] =
    MultiJoinOutput.valueColumns(children(i).output, keyColumns(i))

  /**
   * The positions of the key columns whose equal values are identical, so that any input can
   * provide the value. Floating-point keys are not among them (-0.0 equals 0.0), nor are keys that
   * are padded for the comparison.
   */
  override lazy val exactKeys: Seq[Int] = keyOutput.indices.filter { j =>
    keys.indices.forall { i =>
      ComparedByBytes(keys(i)(j)) && keys(i)(j).semanticEquals(keyColumns(i)(j))
    }
  }

  override def isNeeded(input: Int): Boolean = roles(input) == Required

  override def keptInput: Option[Int] = roles.partition(_ == Required) match {
    case (Seq(_), others) if others.forall(_ == Optional) => Some(roles.indexOf(Required))
    case _ => None
  }

  def hasExactKeys: Boolean = exactKeys.size == keyOutput.size

  lazy val exactKeyOutput: AttributeSet = AttributeSet(exactKeys.map(keyOutput))

  /** The columns of the output that have the input's value in every row. */
  def owned(i: Int): AttributeSet =
    if (roles(i) == Required) AttributeSet(valueColumns(i)) ++ exactKeyOutput
    else AttributeSet.empty

  /** Translates a predicate on the output into one on an input. */
  def overInput(i: Int, predicate: Expression): Expression = {
    val keyOf = AttributeMap(keyOutput.zip(keys(i)))
    predicate.transform { case a: Attribute => keyOf.getOrElse(a, a) }
  }

  /**
   * Whether the input may have the predicate, which is on the output. A key may be computed in such a
   * way that it fails for rows that the input drops.
   */
  def mayFilter(i: Int, predicate: Expression): Boolean =
    SafeToPush(children(i), overInput(i, predicate))

  /** The same for an expression that only requires of the key columns that they do not fail. */
  def mayReadKeys(i: Int, e: Expression): Boolean =
    e.references.intersect(AttributeSet(keyOutput)).forall(mayFilter(i, _))

  /**
   * Adds predicates on the output to inputs, unless the constraints of an input already contain
   * them, or it may not have them. Null keys stay if a Python function computes the key, because the
   * filter would call it once more. Each predicate is added once.
   */
  def withFilters(predicates: Int => Seq[Expression]): MultiFullJoin = {
    val missing = children.indices.map { i =>
      predicates(i).filterNot { p =>
        AddedPredicates.has(this, i, p) || children(i).constraints.contains(overInput(i, p)) ||
        !mayFilter(i, p) || callsPython(i, p)
      }
    }
    if (missing.forall(_.isEmpty)) {
      this
    } else {
      val join = withInputs(children.indices.map(i => filtered(i, missing(i))))
      AddedPredicates.record(join, children.indices.zip(missing).toMap)
      join
    }
  }

  /** The input with predicates, which are on the output. */
  def filtered(i: Int, predicates: Seq[Expression]): LogicalPlan =
    KeptInPlace.filtered(children(i), predicates.map(overInput(i, _)), keyColumns(i))

  private def callsPython(i: Int, predicate: Expression): Boolean =
    predicate.isInstanceOf[IsNotNull] &&
      ComputedBelow.byPython(children(i), overInput(i, predicate).references)

  /**
   * Translates predicates on an input into predicates on the output. If a column is several keys,
   * the result has a predicate on each of them.
   */
  private def overOutput(i: Int, predicates: ExpressionSet): ExpressionSet =
    keyColumns(i).zip(keyOutput).groupBy(_._1.exprId).values.foldLeft(predicates) { (said, same) =>
      ExpressionSet(same.flatMap { case (column, out) =>
        said.map(_.transform { case a: Attribute if a.exprId == column.exprId => out })
      })
    }

  /** Projects a plan with some of this plan's columns to all of them. The others are null. */
  def withOutputOf(below: LogicalPlan): LogicalPlan = if (below.outputSet == outputSet) {
    below
  } else {
    val known = AttributeMap(below.output.map(a => a -> a))
    Project(
      output.map(a =>
        known.getOrElse(a, MultiFullJoin.aliasFor(Literal.create(null, a.dataType), a))),
      below)
  }

  /** The join with other roles. It keeps the tags of this node, except the planner's choices. */
  def withRoles(newRoles: Seq[InputRole]): MultiFullJoin = changed(copy(roles = newRoles))

  def withInputs(inputs: Seq[LogicalPlan]): MultiFullJoin =
    if (inputs.zip(children).forall { case (a, b) => a eq b }) this
    else changed(copy(children = inputs))

  private def changed(join: MultiFullJoin): MultiFullJoin = {
    join.copyTagsFrom(this)
    PlannerChoices.forget(join)
    join
  }

  /** The empty relation with the output of this join. */
  def empty: LogicalPlan = LocalRelation(output, Nil)

  /**
   * The join without some inputs; their columns are null. The caller guarantees that these inputs
   * do not change the result, and that the indicator is unused, because the positions of inputs
   * change.
   */
  def without(dropped: Set[Int]): LogicalPlan = {
    val kept = children.indices.filterNot(dropped)
    if (kept.exists(roles(_).isShown)) withOutputOf(joinOf(kept)) else empty
  }

  /**
   * Whether some of the inputs may replace the join. The aliases of a single one are redundant, so
   * Spark removes them ([[MultiFullJoin.markWithHiddenIds]]).
   */
  def mayBecome(kept: Seq[Int]): Boolean =
    kept.size > 1 || getTagValue(MultiFullJoin.HidesIds).isEmpty

  /** The join of some of the inputs: the key columns, then the others, without the indicator. */
  private[skewext] def joinOf(kept: Seq[Int]): LogicalPlan = kept match {
    case Seq(one) =>
      val shownKeys = keyColumns(one).zip(keyOutput).map { case (column, out) =>
        MultiFullJoin.aliasFor(column, out)
      }
      Project(shownKeys ++ valueColumns(one), children(one))
    case _ =>
      val join = changed(
        copy(
          children = kept.map(children),
          keys = kept.map(keys),
          keyColumns = kept.map(keyColumns),
          roles = kept.map(roles),
          indicator = None,
          hints = HintedInputs.hints(kept.map(hint))))
      // It is by position.
      AddedPredicates.forget(join)
      join
  }

  /**
   * Spark's join with an input that is broadcast, of a plan that has all keys of the result. It may
   * return further columns.
   */
  def broadcastTo(left: LogicalPlan, leftKeys: Seq[Expression], i: Int, hint: HintInfo): Join = {
    val joinType = roles(i) match {
      case Required => Inner
      case Optional => LeftOuter
      case Excluded => LeftAnti
      case Present => LeftSemi
    }
    // Spark infers predicates on the keys of its own joins, such as that they are not null. On the
    // left side it does so if each row needs a match.
    val (input, inputKeys) = KeptInPlace.keys(children(i), keys(i))
    val (others, otherKeys) =
      if (roles(i).isNeeded) KeptInPlace.keys(left, leftKeys) else (left, leftKeys)
    val condition = otherKeys.zip(inputKeys).map { case (l, r) => EqualTo(l, r): Expression }
    Join(others, input, joinType, Some(condition.reduce(And)), JoinHint(None, Some(hint)))
  }

  override protected def withoutHints: LogicalPlan = copy(hints = Nil)

  override def simpleString(maxFields: Int): String =
    s"MultiFullJoin ${MultiFullJoin.describe(keyOutput.map(_.name), roles, indicator)}" +
      JoinOrigin.rewrittenFrom(this).map(joins => s", rewritten from $joins").getOrElse("") +
      children.indices
        .flatMap(i => hint(i).map(hint => s", hint of input $i: $hint"))
        .mkString

  override protected def withNewChildrenInternal(
      newChildren: IndexedSeq[LogicalPlan]): MultiFullJoin = copy(children = newChildren)
}

object MultiFullJoin {

  /** On joins whose key columns must hide those of their inputs. */
  private val HidesIds = TreeNodeTag[Boolean]("skewext.hidesIds")

  /**
   * Marks the joins that must not become a plan of one input, because Spark would confuse columns if
   * it removed the aliases:
   *
   *  - in the definition of a CTE that several references read;
   *  - with columns that a correlated subquery has, too. On Spark 3.5 it may read the same view.
   */
  private[join] def markWithHiddenIds(plan: LogicalPlan): Unit =
    if (plan.containsAnyPattern(CTE, PLAN_EXPRESSION)) {
      val inTables = plan.collect { case table: CTERelationDef => joinsIn(table) }.flatten
      val others = joinsIn(plan).filterNot(_.getTagValue(HidesIds).isDefined)
      lazy val ofSubqueries = AttributeSet(
        plan
          .flatMap(_.expressions)
          .flatMap(_.collect {
            case subquery: SubqueryExpression if subquery.isCorrelated => subquery.plan.output
          }.flatten))
      val sharing = others.filter(_.children.exists(_.outputSet.exists(ofSubqueries.contains)))
      (inTables ++ sharing).foreach(_.setTagValue(HidesIds, true))
    }

  private def joinsIn(plan: LogicalPlan): Seq[MultiFullJoin] =
    plan.collect { case join: MultiFullJoin => join }

  /** An alias with the name and the id of a column of the output. */
  private[skewext] def aliasFor(value: Expression, column: Attribute): Alias =
    Alias(value, column.name)(
      exprId = column.exprId,
      qualifier = column.qualifier,
      explicitMetadata = Some(column.metadata))

  /** For example, `[k] full outer, 4 inputs` or `[k] 3 inputs: required, optional, excluded`. */
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
