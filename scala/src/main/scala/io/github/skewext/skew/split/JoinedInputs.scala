package io.github.skewext.skew.split

import io.github.skewext.bucket.files.SortedFilesExec
import io.github.skewext.facts.{BuiltinShuffledJoin, CannotFail, ComparedByBytes, JoinHints, OwnShuffledJoin}
import io.github.skewext.join.InputRole
import io.github.skewext.join.InputRole.{Present, Required}
import io.github.skewext.join.exec.{MultiFullJoinExec, SpineJoinExec}
import io.github.skewext.nullkeys.SpreadNulls
import io.github.skewext.platform.LogicalLinks
import io.github.skewext.skew.plan.{SkewInput, SkewReason, SkewSplits, Stability}
import io.github.skewext.skew.run.{SplitJoinExec, SplitSpine}

import org.apache.spark.sql.catalyst.expressions.{Left => _, Right => _, _}
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.execution.joins.ShuffledJoin
import org.apache.spark.sql.execution.{FilterExec, ProjectExec, SortExec, SparkPlan}

/**
 * A join of Spark or skewext, described as inputs with roles, so that a join of split partitions
 * can replace it: a [[SplitJoinExec]], or a [[SpineJoinExec]] that is split.
 *
 * Spark's joins on one key that follow each other without a shuffle become one: in
 * `(a JOIN b ON a.k = b.k) LEFT JOIN c ON a.k = c.k`, a and b are required and c is optional. So do
 * joins on either side: in `(a JOIN b ON a.k = b.k) JOIN (c JOIN d ON c.k = d.k) ON a.k = c.k` all
 * four inputs are required.
 *
 * @param replaced the join.
 * @param condition a further condition on the rows of the new operator.
 * @param output the join's output, over the new operator's columns.
 * @param operator creates the new operator for the given children.
 */
case class JoinedInputs(
    replaced: SparkPlan,
    inputs: Seq[JoinedInputs.Input],
    condition: Option[Expression],
    output: Seq[NamedExpression],
    operator: (Seq[SparkPlan], SkewSplits) => SparkPlan) {

  /**
   * The operator with split reads, and the nodes that produce the output of the replaced join from
   * it.
   */
  def splitPlan(children: Seq[SparkPlan], splits: SkewSplits): SparkPlan = {
    // Each node gets the links of the planned join.
    def linked[P <: SparkPlan](node: P): P = LogicalLinks.replacing(replaced)(node)
    val join = linked(operator(children, splits))
    val filtered = condition.fold(join: SparkPlan)(c => linked(FilterExec(c, join)))
    val sameOutput = output.forall(_.isInstanceOf[Attribute]) &&
      output.map(_.exprId) == join.output.map(_.exprId)
    if (sameOutput) {
      filtered
    } else {
      val shown = asJoined(join.output)
      filtered match {
        case j: SplitJoinExec => j.showing(shown).getOrElse(linked(ProjectExec(shown, j)))
        case other => linked(ProjectExec(shown, other))
      }
    }
  }

  /** The output with the operator's nullability: columns of optional inputs are nullable. */
  private def asJoined(columns: Seq[Attribute]): Seq[NamedExpression] = {
    val known = AttributeMap(columns.map(a => a -> a))
    output.map(
      _.transform { case a: Attribute => known.getOrElse(a, a) }.asInstanceOf[NamedExpression])
  }
}

object JoinedInputs extends AliasHelper with PredicateHelper {

  /**
   * @param replicable whether several tasks may join the same rows of it.
   * @param whole why tasks cannot share its rows, if they cannot. Other inputs may still be sliced.
   * @param cuttable whether a block of its shuffle may be divided.
   * @param byKey whether equal keys alone decide which of its rows match. If not, all its columns
   *              must be stable, and tasks sort its rows even if they then drop them.
   */
  case class Input(
      plan: SparkPlan,
      keys: Seq[Expression],
      role: InputRole,
      replicable: Boolean = true,
      whole: Option[SkewReason] = None,
      cuttable: Boolean = true,
      byKey: Boolean = true) {

    /**
     * The input for the planner of splits.
     *
     * @param first the first input of the join, such as the spine.
     */
    def toSkewInput(from: PartitionedInput, first: PartitionedInput): SkewInput = {
      val all = from.toSkewInput(role, keys)
      val found = all.copy(
        replicable = replicable,
        whole = whole,
        cuttable = () => cuttable && all.cuttable())
      val allStable = Stability(found.stable.rows, found.stable.rows)
      if (byKey) {
        found
      } else if (role.isShown) {
        found.copy(stable = allStable)
      } else {
        // A slice sends about one row for each row of the spine.
        val rowBytes = if (first.rowBytes > 0) from.rowBytes / first.rowBytes else 1.0
        found.copy(
          stable = allStable,
          dropCost = 1.0,
          candidates = partition => first.bytes(partition) * rowBytes)
      }
    }
  }

  def of(plan: SparkPlan): Either[SkewReason, JoinedInputs] = plan match {
    case join: MultiFullJoinExec => Right(ofMultiJoin(join))
    case join: SpineJoinExec => Right(ofSpineJoin(join))
    case BuiltinShuffledJoin(join) =>
      ofShuffledJoin(join) match {
        case Left(reason @ (SkewReason.JoinType | SkewReason.OuterCondition)) =>
          ofStreamedSide(join, reason).toRight(reason)
        case other => other
      }
    case _ => Left(SkewReason.JoinType)
  }

  /** The spine gives the rows, and one task can read what others have found of the other inputs. */
  private def ofSpineJoin(join: SpineJoinExec): JoinedInputs = {
    val spine = Input(join.children.head, join.keys.head, Required, byKey = false)
    val others = join.children.tail.zip(join.keys.tail).map { case (child, keys) =>
      Input(child, keys, Present, byKey = false)
    }
    JoinedInputs(
      join,
      spine +: others,
      None,
      join.output,
      (children, splits) => join.splitBy(children, SplitSpine(splits)))
  }

  private def ofMultiJoin(join: MultiFullJoinExec): JoinedInputs =
    JoinedInputs(
      join,
      join.children.indices.map(i => Input(join.children(i), join.keys(i), join.roles(i))),
      None,
      join.output,
      (children, splits) =>
        SplitJoinExec(
          children,
          join.keys,
          join.keyColumns,
          join.keyOutput,
          join.roles,
          join.indicator,
          mergesSorted = true,
          join.spreadNullKeys,
          splits))

  /** A join in whose place the new operator joins the inputs. */
  private def ofShuffledJoin(join: ShuffledJoin): Either[SkewReason, JoinedInputs] = {
    // The expression that spreads null keys is no key of the operator: it is 0 in all rows that
    // match.
    val (leftKeys, rightKeys) = join.leftKeys
      .zip(join.rightKeys)
      .filterNot { case (left, right) => SpreadNulls.isOne(left) || SpreadNulls.isOne(right) }
      .unzip
    val isSpread = leftKeys.size < join.leftKeys.size
    val (leftReplicable, rightReplicable) = JoinHints.mayReplicate(join)
    def both(left: Boolean => Chain, right: Boolean => Chain): Chain = {
      // Merging looks at all joins below, so it is done once.
      val (ofLeft, ofRight) = Some((left(true), right(true)))
        .filter { case (l, r) => areApart(l.inputs ++ r.inputs) }
        .getOrElse((left(false), right(false)))
      ofLeft.withReplicable(leftReplicable).and(ofRight.withReplicable(rightReplicable))
    }
    InputRole.ofSides(join.joinType) match {
      case _ if join.isSkewJoin => Left(SkewReason.SplitBySpark)
      case _ if leftKeys.exists(k => ComparedByBytes.mayDiffer(k.dataType)) =>
        Left(SkewReason.KeyType)
      case None => Left(SkewReason.JoinType)
      case Some((leftRole, rightRole)) if join.joinType.isInstanceOf[InnerLike] =>
        val left = side(join.left, leftKeys, leftRole)(_)
        val right = side(join.right, rightKeys, rightRole)(_)
        Right(both(left, right).joined(join, join.condition, isSpread))
      case Some((leftRole, rightRole)) =>
        val (ofLeft, others) = conditions(join).partition(isOver(join.left))
        val (ofRight, ofBoth) = others.partition(isOver(join.right))
        if (ofBoth.nonEmpty) {
          Left(SkewReason.OuterCondition)
        } else if (!(ofLeft ++ ofRight).forall(CannotFail(_))) {
          Left(SkewReason.ConditionMayFail)
        } else {
          val left = side(join.left, keysIf(ofLeft, leftKeys), leftRole)(_)
          val right = side(join.right, keysIf(ofRight, rightKeys), rightRole)(_)
          Right(both(left, right).joined(join, None, isSpread))
        }
    }
  }

  /**
   * A join of skewext that returns, or drops, each row of one side by itself. Tasks may share these
   * rows, and the operator remains, with its condition. So it is no part of a join above it. No other
   * task returns rows of the other side.
   *
   * @param reason why the rows of the other side must stay together.
   */
  private def ofStreamedSide(join: ShuffledJoin, reason: SkewReason): Option[JoinedInputs] =
    join match {
      case own: OwnShuffledJoin =>
        val roles = join.joinType match {
          case ExistenceJoin(_) => Some((Required, Present))
          case other => InputRole.ofSides(other)
        }
        roles.filter { case (left, right) => left == Required || right == Required }.map {
          case (leftRole, rightRole) =>
            val (leftReplicable, rightReplicable) = JoinHints.mayReplicate(join)
            def input(plan: SparkPlan, keys: Seq[Expression], role: InputRole, many: Boolean) =
              Input(
                plan,
                keys,
                role,
                many,
                whole = if (role == Required) None else Some(reason),
                cuttable = false)
            JoinedInputs(
              join,
              Seq(
                input(join.left, join.leftKeys, leftRole, leftReplicable),
                input(join.right, join.rightKeys, rightRole, rightReplicable)),
              None,
              join.output,
              (children, _) =>
                own.withParts(
                  join.leftKeys,
                  join.rightKeys,
                  children.head,
                  children(1),
                  isSkewJoin = true))
        }
      case _ => None
    }

  private def conditions(join: ShuffledJoin): Seq[Expression] =
    join.condition.toSeq.flatMap(splitConjunctivePredicates)

  private def isOver(side: SparkPlan)(condition: Expression): Boolean =
    condition.deterministic && condition.references.subsetOf(side.outputSet)

  /**
   * The keys of a side with a condition. A row that fails the condition gets a null key, so it is
   * an unmatched row. Spark evaluates the condition only for rows with equal keys, and here it is
   * evaluated for all rows.
   */
  private def keysIf(conditions: Seq[Expression], keys: Seq[Expression]): Seq[Expression] =
    conditions.reduceOption(And).fold(keys) { mayMatch =>
      If(mayMatch, keys.head, Literal(null, keys.head.dataType)) +: keys.tail
    }

  /**
   * Whether no two shown inputs have a column in common. Spark 3.5 keeps the ids of aliases in a
   * plan that is joined with itself, if projections above hide them. As inputs of one operator they
   * would be one column.
   */
  private def areApart(inputs: Seq[Input]): Boolean = {
    val ids = inputs.filter(_.role.isShown).flatMap(_.plan.outputSet.map(_.exprId))
    ids.distinct.size == ids.size
  }

  /**
   * One side of a join: one input, or those of joins on the same key, if each of their rows is
   * required and they are to be merged.
   */
  private def side(plan: SparkPlan, keys: Seq[Expression], role: InputRole)(
      merged: Boolean): Chain = {
    val child = withoutSort(plan)
    val onSameKey = if (merged && role == Required) chain(child).flatMap(_.by(keys)) else None
    onSameKey.getOrElse(
      Chain(Seq(Input(child, keys, role)), if (role.isShown) child.output else Nil))
  }

  /**
   * Spark's joins on one key whose result is a side of another one. They have no further condition,
   * and no projection computes anything: the operator would evaluate it on the product of all
   * inputs, and Spark on the product of two.
   *
   * These nodes disappear and the operator does their work, so fewer nodes are allowed than in
   * `MadeOf`.
   */
  private def chain(plan: SparkPlan): Option[Chain] = plan match {
    case ProjectExec(list, child) if list.forall(isColumn) =>
      chain(child).map { c =>
        val known = c.aliases
        c.copy(output = list.map(replaceAliasButKeepName(_, known)))
      }
    case BuiltinShuffledJoin(join) =>
      ofShuffledJoin(join).toOption
        .filter(_.condition.isEmpty)
        .map(j => Chain(j.inputs, j.output))
    case _ => None
  }

  private def isColumn(e: NamedExpression): Boolean = e match {
    case _: Attribute | Alias(_: Attribute | _: Literal, _) => true
    case _ => false
  }

  private case class Chain(inputs: Seq[Input], output: Seq[NamedExpression]) {

    def aliases: AttributeMap[Alias] = getAliasMap(output)

    /**
     * The chain with the keys of all inputs in the order of `keys`, if these are the key of a
     * required input.
     */
    def by(keys: Seq[Expression]): Option[Chain] = {
      val wanted = keys.map(replaceAlias(_, aliases))
      inputs
        .filter(_.role == Required)
        .map(input => wanted.map(k => input.keys.indexWhere(_.semanticEquals(k))))
        .find(order => !order.contains(-1) && order.sorted == inputs.head.keys.indices)
        .map(order => copy(inputs = inputs.map(i => i.copy(keys = order.map(i.keys)))))
    }

    def withReplicable(replicable: Boolean): Chain =
      copy(inputs = inputs.map(i => i.copy(replicable = i.replicable && replicable)))

    def and(right: Chain): Chain =
      Chain(inputs ++ right.inputs, output ++ right.output)

    def joined(
        join: SparkPlan,
        condition: Option[Expression],
        spreadNullKeys: Boolean): JoinedInputs = {
      val inOrder = inputs.forall(isInFileOrder)
      JoinedInputs(
        join,
        if (inOrder) inputs else inputs.map(i => i.copy(plan = withoutFileOrder(i.plan))),
        condition.map(replaceAlias(_, aliases)),
        output,
        (children, splits) =>
          SplitJoinExec(
            children,
            inputs.map(_.keys),
            keyColumns = inputs.map(_ => Nil),
            keyOutput = Nil,
            roles = inputs.map(_.role),
            indicator = None,
            mergesSorted = inOrder,
            spreadNullKeys,
            splits))
    }
  }

  /** Whether its rows come from sorted files in the order of the keys. */
  private def isInFileOrder(input: Input): Boolean = input.plan match {
    case sorted: SortedFilesExec =>
      SortOrder.orderingSatisfies(sorted.outputOrdering, input.keys.map(SortOrder(_, Ascending)))
    case _ => false
  }

  private def withoutFileOrder(plan: SparkPlan): SparkPlan = plan match {
    case SortedFilesExec(_, child) => child
    case other => other
  }

  private def withoutSort(plan: SparkPlan): SparkPlan = plan match {
    case SortExec(_, false, child, _) => child
    case other => other
  }
}
