package io.github.skewext.technique

import java.util.HashMap

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen.GenerateUnsafeRowJoiner
import org.apache.spark.sql.catalyst.optimizer.BuildSide
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.types.{IntegerType, StructField, StructType}

/**
 * What the tasks of [[SaltKeysExec]] need.
 *
 * @param keys bound to the rows
 * @param keyColumns which columns of the rows the keys are made of
 * @param keysAlone whether rows with equal keys are identical
 */
private[technique] case class Salting(
    keys: Seq[Expression],
    keyColumns: Seq[Boolean],
    keysAlone: Boolean,
    side: BuildSide,
    hot: Seq[SaltedKey],
    hotRows: HotRows,
    nullCells: Int,
    withKind: Boolean,
    schema: StructType)

private[technique] case class SaltingMetrics(
    outputRows: SQLMetric,
    saltedRows: SQLMetric,
    copies: SQLMetric,
    markers: SQLMetric)

/**
 * The rows of one task with their cells. A row of a hot key is put into a part by a hash of all that
 * is in it and of the task's number. Where rows are nothing but their key, this would put all of
 * them into one part; but then they cannot be told apart, and go to the parts in turn.
 */
private[technique] final class SaltedRows(
    salting: Salting,
    task: Int,
    rows: Iterator[InternalRow],
    metrics: SaltingMetrics)
    extends Iterator[InternalRow] {
  import SaltedRows._
  import salting.{hotRows, nullCells, side}

  private[this] val keyOf = UnsafeProjection.create(salting.keys)
  private[this] lazy val wholeRow = UnsafeProjection.create(salting.schema)
  private[this] lazy val markerOf = UnsafeProjection.create(salting.schema.zipWithIndex.map {
    case (column, i) if salting.keyColumns(i) => BoundReference(i, column.dataType, column.nullable)
    case (column, _) => Literal(null, column.dataType)
  })

  private[this] val hotKeys = new HashMap[UnsafeRow, Met]
  salting.hot.foreach(each => hotKeys.put(each.key, new Met(each)))

  private[this] val numAdded = if (salting.withKind) 2 else 1
  private[this] val joiner = GenerateUnsafeRowJoiner.create(
    salting.schema,
    StructType((0 until numAdded).map(i => StructField(s"added$i", IntegerType, nullable = false))))
  private[this] val added = {
    val row = new UnsafeRow(numAdded)
    row.pointTo(new Array[Byte](8 + 8 * numAdded), 8 + 8 * numAdded)
    row
  }

  // The row whose copies come next, and what else comes of the same input row.
  private[this] var row: UnsafeRow = _
  private[this] var copiesLeft = 0
  private[this] var cell = 0
  private[this] var stride = 0
  private[this] var kind = SaltKeys.First
  private[this] var toMark: SaltedKey = _

  override def hasNext: Boolean = {
    while (copiesLeft == 0 && advance()) {}
    copiesLeft > 0
  }

  override def next(): InternalRow = {
    if (!hasNext) throw new NoSuchElementException
    added.setInt(0, cell)
    if (salting.withKind) added.setInt(1, kind)
    cell += stride
    copiesLeft -= 1
    if (kind == SaltKeys.First) kind = SaltKeys.Further
    metrics.outputRows += 1
    joiner.join(row, added)
  }

  /** Goes on to a row or a marker; false at the end. */
  private def advance(): Boolean =
    if (toMark != null) {
      mark()
      true
    } else if (rows.hasNext) {
      take(rows.next())
      true
    } else {
      false
    }

  private def take(input: InternalRow): Unit = {
    val key = keyOf(input)
    if (key.anyNull()) {
      if (nullCells > 0)
        show(unsafe(input), -1 - Math.floorMod(hash(unsafe(input)), nullCells), 1, 0)
    } else {
      val met = hotKeys.get(key)
      if (met == null) show(unsafe(input), 0, 1, 0) else takeHot(unsafe(input), met)
    }
  }

  private def takeHot(input: UnsafeRow, met: Met): Unit = {
    val salted = met.key
    val isFirst = met.rows == 0
    met.rows += 1
    if (hotRows != HotRows.Marked) {
      val salts = salted.salts(side)
      val salt =
        if (salts == 1) 0
        else if (salting.keysAlone) Math.floorMod(task + met.rows, salts.toLong).toInt
        else Math.floorMod(hash(input), salts)
      if (salts > 1) metrics.saltedRows += 1
      val copies = salted.copies(side)
      metrics.copies += copies - 1
      show(input, salted.firstCell(side, salt), copies, salted.stride(side))
    }
    val marks = hotRows match {
      case HotRows.Shown => false
      // Where all rows are in one part, they are in every cell that a row of the other side is in.
      case HotRows.ShownAndMarked => salted.salts(side) > 1
      case HotRows.Marked => true
    }
    if (isFirst && marks) {
      row = input
      toMark = salted
    }
  }

  private def show(input: UnsafeRow, firstCell: Int, copies: Int, step: Int): Unit = {
    row = input
    cell = firstCell
    copiesLeft = copies
    stride = step
    kind = SaltKeys.First
  }

  private def mark(): Unit = {
    val copies = toMark.copies(side)
    show(markerOf(row), toMark.firstCell(side, 0), copies, toMark.stride(side))
    kind = SaltKeys.Marker
    metrics.markers += copies
    toMark = null
  }

  private def unsafe(input: InternalRow): UnsafeRow = input match {
    case row: UnsafeRow => row
    case other => wholeRow(other)
  }

  private def hash(input: UnsafeRow): Int = {
    val h = XXH64.hashUnsafeBytes(
      input.getBaseObject,
      input.getBaseOffset,
      input.getSizeInBytes,
      task.toLong)
    (h ^ (h >>> 32)).toInt
  }
}

private[technique] object SaltedRows {

  /** A hot key, and how many rows of it the task has seen. */
  private final class Met(val key: SaltedKey) {
    var rows = 0L
  }
}
