package io.github.skewext.shuffle

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow
import org.apache.spark.sql.execution.vectorized.OnHeapColumnVector
import org.apache.spark.sql.types.DataType
import org.apache.spark.sql.vectorized.ColumnarBatch

/** Rows as a task reads them from a columnar shuffle. */
object BlocksOf {

  /** @param rows with null, integers, longs and strings; so many go to each block */
  def apply(types: Seq[DataType], rows: Iterator[Seq[Any]], ofBlock: Int): ShuffledColumns = {
    val read = new ColumnBlockRows(types)
    val runs = new PartitionedColumnBuffer(types, 1, BatchPartitioner.byRow(_ => 0))
    val blocks = rows.grouped(ofBlock).flatMap { some =>
      val vectors = types.map(new OnHeapColumnVector(some.size, _)).toArray
      for ((row, i) <- some.zipWithIndex; (vector, value) <- vectors.zip(row)) value match {
        case null => vector.putNull(i)
        case v: Int => vector.putInt(i, v)
        case v: Long => vector.putLong(i, v)
        case v: String => vector.putByteArray(i, v.getBytes)
      }
      runs.add(new ColumnarBatch(vectors.toArray, some.size), 0, some.size)
      runs.drain().map { case (_, _, block) =>
        // Without its size.
        val bytes = block.array.slice(4, block.size) ++ new Array[Byte](BitPacking.Slack)
        read.open(bytes, block.size - 4)
        new GenericInternalRow(Array[Any](read)): InternalRow
      }
    }
    new ShuffledColumns(blocks, _ => ())
  }
}
