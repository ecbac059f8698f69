package io.github.skewext.technique

import io.github.skewext.multijoin.KeyTypes

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen._
import org.apache.spark.sql.catalyst.optimizer.BuildSide
import org.apache.spark.sql.catalyst.plans.physical.{Partitioning, UnknownPartitioning}
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLMetrics}
import org.apache.spark.sql.execution.{CodegenSupport, SparkPlan, UnaryExecNode}
import org.apache.spark.sql.skewext.SqlInternals

/** Gives rows the cells of a salted join, see [[SaltKeys]]. */
case class SaltKeysExec(
    keys: Seq[Expression],
    side: BuildSide,
    hot: Seq[SaltedKey],
    hotRows: HotRows,
    nullCells: Int,
    cell: Attribute,
    kind: Option[Attribute],
    child: SparkPlan)
    extends UnaryExecNode
    with CodegenSupport {

  override def nodeName: String = "SaltKeys"

  override lazy val metrics: Map[String, SQLMetric] = Map(
    "numOutputRows" -> SQLMetrics.createMetric(sparkContext, "number of output rows"),
    "numSaltedRows" -> SQLMetrics.createMetric(sparkContext, "number of salted rows"),
    "numCopies" -> SQLMetrics.createMetric(sparkContext, "number of copies of rows"),
    "numMarkers" -> SQLMetrics.createMetric(sparkContext, "number of markers"))

  override def output: Seq[Attribute] = SaltKeys.output(child.output, keys, hotRows, cell, kind)

  override def producedAttributes: AttributeSet = AttributeSet(cell +: kind.toSeq)

  /**
   * Not that of the input: where that has the rows of a key in one partition, a join on the key and
   * the cell would be content with it, and the rows of a hot key would stay there.
   */
  override def outputPartitioning: Partitioning =
    UnknownPartitioning(child.outputPartitioning.numPartitions)

  override def outputOrdering: Seq[SortOrder] = Nil

  override protected def stringArgs: Iterator[Any] = SaltKeys.stringArgs(keys, side, hot, hotRows)

  private def boundKeys: Seq[Expression] = keys.map(SaltKeysExec.bound(_, child.output))

  private def isOfKey: Seq[Boolean] = {
    val ofKeys = SaltKeys.keyColumns(keys)
    child.output.map(ofKeys.contains)
  }

  private def salting: Salting = {
    val exact = AttributeSet(keys.collect {
      case a: Attribute if KeyTypes.comparedByBytes(a) => a
    })
    Salting(
      boundKeys.zipWithIndex.map { case (key, i) => BoundReference(i, key.dataType, key.nullable) },
      keysAlone = child.output.forall(exact.contains),
      side,
      hot,
      hotRows,
      nullCells)
  }

  private def saltingMetrics: SaltingMetrics =
    SaltingMetrics(longMetric("numSaltedRows"), longMetric("numCopies"), longMetric("numMarkers"))

  override protected def doExecute(): RDD[InternalRow] = {
    val (bound, schema, ofKey, withKind) = (boundKeys, child.schema, isOfKey, kind.isDefined)
    val (ofTasks, counters, outputRows) = (salting, saltingMetrics, longMetric("numOutputRows"))
    child.execute().mapPartitionsWithIndex { (task, rows) =>
      val cells = new SaltedCells(ofTasks, task, counters)
      new SaltedRows(bound, schema, ofKey, withKind, cells, outputRows, rows)
    }
  }

  override def inputRDDs(): Seq[RDD[InternalRow]] = child.asInstanceOf[CodegenSupport].inputRDDs()

  /** Copies of a row, and markers, come one after the other from one place in memory. */
  override def needCopyResult: Boolean =
    hotRows != HotRows.Shown || hot.exists(_.copies(side) > 1) || super.needCopyResult

  override def usedInputs: AttributeSet = child.outputSet

  override protected def doProduce(ctx: CodegenContext): String =
    child.asInstanceOf[CodegenSupport].produce(ctx, this)

  /**
   * Asks [[SaltedCells]] about rows whose keys may be hot, or have a null. All others, told by a hash of
   * the key, just go on.
   */
  override def doConsume(ctx: CodegenContext, input: Seq[ExprCode], row: ExprCode): String = {
    val cellsClass = classOf[SaltedCells].getName
    val saltingTerm = ctx.addReferenceObj("salting", salting)
    val metricsTerm = ctx.addReferenceObj("saltingMetrics", saltingMetrics)
    val cells = ctx.addMutableState(
      cellsClass,
      "saltedCells",
      v => s"$v = new $cellsClass($saltingTerm, partitionIndex, $metricsTerm);",
      forceInline = true)
    val numOutputRows = metricTerm(ctx, "numOutputRows")

    ctx.currentVars = input
    ctx.INPUT_ROW = null
    val keyColumns = boundKeys.map(_.genCode(ctx))
    val columns = child.output.zip(input)
    val keyVars = keyColumns.map(_.copy(code = EmptyBlock))
    val keyRefs = boundKeys.zipWithIndex.map { case (k, i) =>
      BoundReference(i, k.dataType, k.nullable)
    }
    ctx.currentVars = keyVars
    val keyHash = SaltedCells.hashOfKey(keyRefs).genCode(ctx)
    val keyRow = GenerateUnsafeProjection.createCode(ctx, keyRefs)
    val rowHash = hashOfRow(ctx, columns)

    val anyNull = keyColumns.map(_.isNull.toString).mkString(" || ")
    val asked = ctx.freshName("asked")
    val more = ctx.freshName("more")
    val cellVar = ctx.freshName("cell")
    val kindVar = ctx.freshName("kind")
    val (markerColumns, outputColumns) = columns
      .zip(isOfKey)
      .map {
        case ((_, value), ofKey) if !ofKey && hotRows != HotRows.Shown =>
          val isNull = ctx.freshName("isNull")
          val code = s"boolean $isNull = $kindVar == ${SaltKeys.Marker} || ${value.isNull};"
          (code, ExprCode(JavaCode.isNullVariable(isNull), value.value))
        case ((_, value), _) => ("", value.copy(code = EmptyBlock))
      }
      .unzip
    val added = (cellVar +: kind.map(_ => kindVar).toSeq).map { variable =>
      ExprCode(FalseLiteral, JavaCode.variable(variable, cell.dataType))
    }
    val advance =
      s"""
         |if ($more) {
         |  $cellVar = $cells.cell();
         |  $kindVar = $cells.kind();
         |}
       """.stripMargin
    s"""
       |${evaluateVariables(keyColumns)}
       |boolean $asked = $anyNull;
       |if (!$asked) {
       |  ${keyHash.code}
       |  $asked = $cells.mayBeHot(${keyHash.value});
       |}
       |boolean $more = true;
       |int $cellVar = 0;
       |int $kindVar = ${SaltKeys.First};
       |if ($asked) {
       |  ${keyRow.code}
       |  $cells.take(${keyRow.value}, $rowHash);
       |  $more = $cells.next();
       |  $advance
       |}
       |while ($more) {
       |  ${markerColumns.filter(_.nonEmpty).mkString("\n")}
       |  $numOutputRows.add(1);
       |  ${consume(ctx, outputColumns ++ added)}
       |  $more = $asked && $cells.next();
       |  $advance
       |}
     """.stripMargin
  }

  /** A hash of all columns, in functions of their own: there may be many, and few rows are asked for it. */
  private def hashOfRow(ctx: CodegenContext, columns: Seq[(Attribute, ExprCode)]): String = {
    val calls = columns.grouped(SaltKeysExec.HashedTogether).toSeq.map { some =>
      val parameters = some.map { case (a, _) =>
        val value = JavaCode.variable(ctx.freshName("value"), a.dataType)
        ExprCode(JavaCode.isNullVariable(ctx.freshName("isNull")), value)
      }
      ctx.currentVars = parameters
      val hash = new XxHash64(some.zipWithIndex.map { case ((a, _), i) =>
        BoundReference(i, a.dataType, a.nullable)
      }).genCode(ctx)
      val declared = some.zip(parameters).map { case ((a, _), p) =>
        s"${CodeGenerator.javaType(a.dataType)} ${p.value}, boolean ${p.isNull}"
      }
      val name = ctx.freshName("hashOfRow")
      val function = ctx.addNewFunction(
        name,
        s"""
           |private long $name(${declared.mkString(", ")}) {
           |  ${hash.code}
           |  return ${hash.value};
           |}
         """.stripMargin)
      val values = some.map { case (_, column) => s"${column.value}, ${column.isNull}" }
      s"$function(${values.mkString(", ")})"
    }
    calls.reduce((a, b) => s"${classOf[XXH64].getName}.hashLong($a, $b)")
  }

  override protected def withNewChildInternal(newChild: SparkPlan): SaltKeysExec =
    copy(child = newChild)
}

object SaltKeysExec {

  /** Columns, for one function. */
  private val HashedTogether = 20

  /** A key, so that equal values have the same bytes. */
  private def bound(key: Expression, input: Seq[Attribute]): Expression =
    BindReferences.bindReference(SqlInternals.normalizeFloats(key), input)

  /** Literals as the key of a row that has them in its key columns. */
  def keyOf(values: Seq[Expression]): UnsafeRow =
    UnsafeProjection.create(values.map(bound(_, Nil))).apply(InternalRow.empty).copy()
}
