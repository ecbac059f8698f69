package io.github.skewext.join

import java.util.BitSet
import java.util.concurrent.TimeUnit

import scala.collection.mutable.ArrayBuffer

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.SQLExecution
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLMetrics}
import org.apache.spark.sql.skewext.SqlInternals

/**
 * A set of rows of a broadcast side, with one bit per row. A row is identified by a number, or by its
 * `monotonically_increasing_id`: the partition in the upper bits, and the position of the row in the
 * partition in the lower bits.
 */
final class MarkedRows {
  import MarkedRows._

  private[this] val rowsOf = ArrayBuffer.empty[BitSet]

  /** Returns false if the row was in the set already. */
  def add(id: Long): Boolean = {
    val rows = ofPartition((id >>> RowBits).toInt)
    val row = rowIn(id)
    val isNew = !rows.get(row)
    if (isNew) rows.set(row)
    isNew
  }

  def contains(id: Long): Boolean = {
    val partition = (id >>> RowBits).toInt
    partition < rowsOf.size && rowsOf(partition).get(rowIn(id))
  }

  /** A broadcast has far fewer rows than 2 to the 31. */
  private def rowIn(id: Long): Int = Math.toIntExact(id & ((1L << RowBits) - 1))

  private def ofPartition(partition: Int): BitSet = {
    while (rowsOf.size <= partition) rowsOf += new BitSet
    rowsOf(partition)
  }

  def toBytes: Array[Byte] = SqlInternals.toBytes(rowsOf.toArray)

  private def addAll(bytes: Array[Byte]): this.type = {
    SqlInternals.fromBytes[Array[BitSet]](bytes).zipWithIndex.foreach { case (rows, partition) =>
      ofPartition(partition).or(rows)
    }
    this
  }
}

object MarkedRows {

  private val RowBits = 33

  /**
   * Runs a job whose tasks return the rows that theirs match, and returns all of them as bytes. Spark
   * accepts one result per partition even if a task runs several times, and marks are idempotent.
   *
   * @param time gets the duration of the job.
   */
  def ofJob(rows: RDD[InternalRow], time: SQLMetric)(
      mark: Iterator[InternalRow] => MarkedRows): Array[Byte] = {
    val started = System.nanoTime()
    val marked = rows
      .mapPartitions(ofTask => Iterator.single(mark(ofTask).toBytes))
      .treeAggregate(Array.emptyByteArray)(merge, merge)
    time.set(TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - started))
    val context = rows.sparkContext
    SQLMetrics.postDriverMetricUpdates(
      context,
      context.getLocalProperty(SQLExecution.EXECUTION_ID_KEY),
      Seq(time))
    marked
  }

  def fromBytes(bytes: Array[Byte]): MarkedRows =
    if (bytes.isEmpty) new MarkedRows else new MarkedRows().addAll(bytes)

  /**
   * The union of two sets as bytes, which every serializer supports. No bytes are the empty set.
   */
  private def merge(a: Array[Byte], b: Array[Byte]): Array[Byte] =
    if (a.isEmpty) b else if (b.isEmpty) a else fromBytes(a).addAll(b).toBytes
}
