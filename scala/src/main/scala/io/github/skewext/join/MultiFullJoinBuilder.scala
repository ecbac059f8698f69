package io.github.skewext.join

import io.github.skewext.inputs.{BatchInputs, HintedInputs, KeyColumn, KeyType, KeyTypes, NewIds, OutputNames}
import io.github.skewext.join.InputRole.{Excluded, Required}

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Project}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.skewext.SqlInternals
import org.apache.spark.sql.types.{ArrayType, IntegerType, Metadata}

/**
 * Builds the logical plan of a multi-way join from its arguments. It checks the arguments, casts
 * the keys to their common types, and names the columns.
 *
 * @param plans the analyzed inputs; their hints become hints of the node.
 * @param keys names of the key columns of each input.
 * @param keyNames names of the key columns in the output.
 * @param suffixes if defined, the suffix of each input for names that occur in another input, too.
 */
private[skewext] class MultiFullJoinBuilder(
    session: SparkSession,
    plans: Seq[LogicalPlan],
    keys: Seq[Seq[String]],
    keyNames: Seq[String],
    roles: Seq[InputRole],
    suffixes: Option[Seq[String]],
    indicator: Option[String]) {

  // A view is analyzed with the settings of its creation.
  private def same = SQLConf.get.resolver
  private def timeZone = SQLConf.get.sessionLocalTimeZone

  private val (inputs, hints) = plans.map(SqlInternals.withoutHints).unzip

  def build(): LogicalPlan = SqlInternals.withActive(session) {
    checkArguments()
    val columns = inputs.indices.map(i => keys(i).map(KeyColumn.of(inputs(i), i, _, same)))
    val keyTypes = keyNames.indices.map { j =>
      KeyTypes.common(session, keyNames(j), columns.map(_(j)))
    }
    val (cast, castKeys) = inputs.indices.map(i => castKeysOf(i, columns(i), keyTypes)).unzip
    val (children, childKeys) = separate(cast, castKeys)
    val keyOutput = keyNames.zip(keyTypes).zip(columns.head).map { case ((name, keyType), first) =>
      // Spark's left and inner joins return the key of the left side.
      val isOfFirst = roles.head == Required && first.dataType == keyType.dataType
      val metadata = if (isOfFirst) first.metadata else Metadata.empty
      AttributeReference(name, keyType.dataType, nullable = true, metadata)()
    }
    val join = MultiFullJoin(
      children,
      childKeys.zipWithIndex.map { case (inputKeys, i) =>
        inputKeys.zip(keyTypes).map { case (key, keyType) => keyType.compared(key, i) }
      },
      childKeys,
      keyOutput,
      roles,
      indicator.map { name =>
        AttributeReference(name, ArrayType(IntegerType, containsNull = false), nullable = false)()
      },
      HintedInputs.hints(hints))
    named(join, columns)
  }

  private def checkArguments(): Unit = {
    if (inputs.size < 2) {
      fail(s"A multi-way join needs at least two inputs, got ${inputs.size}.")
    }
    if (keyNames.isEmpty) fail("The list of key columns is empty; a multi-way join needs a key.")
    OutputNames.repeated(keyNames).foreach { name =>
      fail(s"The list of key columns contains '$name' twice.")
    }
    checkNumber("keys", keys)
    checkNumber("roles", roles)
    suffixes.foreach(checkNumber("suffixes", _))
    keys.zipWithIndex.foreach { case (names, i) =>
      if (names.size != keyNames.size) {
        fail(
          s"Input $i (counting from 0) has ${names.size} key columns (${names.mkString(", ")}), " +
            s"the join has ${keyNames.size} (${keyNames.mkString(", ")}).")
      }
    }
    if (roles.forall(_ == Excluded)) {
      fail("All inputs are excluded, so the join has no rows. Give an input another role.")
    }
    BatchInputs.check(inputs, "a multi-way join")
  }

  private def checkNumber(argument: String, values: Seq[_]): Unit =
    if (values.size != inputs.size) {
      fail(s"$argument must have ${inputs.size} entries, one for each input, not ${values.size}.")
    }

  /**
   * Casts the keys of an input to their common types. A column that is several keys becomes several
   * columns, because each key has its own type and appears in the partitioning by itself. The name
   * of a copy differs from that of the column, for the reason given at `separate`.
   */
  private def castKeysOf(
      i: Int,
      columns: Seq[Attribute],
      types: Seq[KeyType]): (LogicalPlan, Seq[Attribute]) = {
    def typed(c: Attribute, t: KeyType): Expression = t.typed(c, timeZone)
    val isCopy = columns.indices.map(j => columns.take(j).exists(_.semanticEquals(columns(j))))
    val casts = columns.indices.collect {
      case j if !isCopy(j) && typed(columns(j), types(j)) != columns(j) =>
        columns(j) -> Alias(typed(columns(j), types(j)), columns(j).name)()
    }
    val copies = columns.indices.collect {
      case j if isCopy(j) => j -> Alias(typed(columns(j), types(j)), s"${columns(j).name}@key$j")()
    }.toMap
    if (casts.isEmpty && copies.isEmpty) {
      (inputs(i), columns)
    } else {
      val castOf = AttributeMap(casts)
      val list = inputs(i).output.map(a => castOf.getOrElse(a, a))
      (
        Project(list ++ copies.toSeq.sortBy(_._1).map(_._2), inputs(i)),
        columns.indices.map { j =>
          copies.get(j).orElse(castOf.get(columns(j))).map(_.toAttribute).getOrElse(columns(j))
        })
    }
  }

  /**
   * Gives new ids to the columns of inputs that come from one DataFrame. `NewIds.withNewIds`
   * also gives them new names, and the projection above the join restores the old ones.
   */
  private def separate(
      plans: Seq[LogicalPlan],
      keyColumns: Seq[Seq[Attribute]]): (Seq[LogicalPlan], Seq[Seq[Attribute]]) = {
    NewIds
      .separated(plans)
      .zip(keyColumns)
      .map { case ((plan, columnOf), keys) =>
        (plan, keys.map(columnOf))
      }
      .unzip
  }

  /**
   * The join's columns under their final names. Key columns always get aliases, as in Spark's USING
   * joins. If the result is joined with itself, Spark gives new ids to aliases, but not to columns
   * that a node of skewext produces.
   */
  private def named(join: MultiFullJoin, keyColumns: Seq[Seq[Attribute]]): LogicalPlan = {
    val shown = inputs.indices.filter(roles(_) != Excluded)
    // Matches columns by position: those of the children may have new ids, but the same order.
    val valueNames = shown.map { i =>
      MultiJoinOutput.valueColumns(inputs(i).output, keyColumns(i)).map(_.name)
    }
    val finalNames = suffixes match {
      case Some(given) =>
        OutputNames.suffixed(keyNames +: valueNames, null +: shown.map(given)).tail.flatten
      case None => valueNames.flatten
    }
    val names = keyNames ++ finalNames
    for (_ <- suffixes; name <- OutputNames.repeated(names)) {
      fail(
        s"With these suffixes the result would have two columns named '$name'; give " +
          "the inputs that share a name different suffixes.")
    }
    for (name <- indicator if names.exists(same(_, name))) {
      fail(s"The indicator '$name' has the name of a column of the result. Choose another name.")
    }
    val keyOutput = join.keyOutput.map(a => Alias(a, a.name)())
    val values = join.output.slice(keyOutput.size, keyOutput.size + finalNames.size)
    val renamed = values.zip(finalNames).map { case (a, name) =>
      if (a.name == name) a else Alias(a, name)()
    }
    Project(keyOutput ++ renamed ++ join.indicator.map(a => Alias(a, a.name)()), join)
  }

  private def fail(message: String): Nothing = throw SqlInternals.analysisError(message)
}
