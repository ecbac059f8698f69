package org.apache.spark.sql.skewext

import java.io.{ByteArrayInputStream, ByteArrayOutputStream}
import java.util.concurrent.ConcurrentHashMap

import scala.reflect.ClassTag

import org.apache.spark.scheduler.MapStatus
import org.apache.spark.shuffle._
import org.apache.spark.{ShuffleDependency, SparkConf, SparkEnv, TaskContext}

/**
 * A shuffle manager that is not Spark's, as those of remote shuffle services. It serializes each
 * record by itself, keeps the bytes of a partition in the memory of this process, and reads ranges
 * of map tasks. Its readers look one record ahead. Lives here because the interface is
 * `private[spark]`.
 */
private[spark] class RecordShuffleManager(conf: SparkConf) extends ShuffleManager {

  private type Handle = BaseShuffleHandle[Any, Any, Any]

  // The partitions of each map task, by shuffle and map task.
  private val written = new ConcurrentHashMap[(Int, Int), Array[Array[Byte]]]

  override val shuffleBlockResolver: ShuffleBlockResolver = new IndexShuffleBlockResolver(conf)

  override def registerShuffle[K, V, C](
      shuffleId: Int,
      dependency: ShuffleDependency[K, V, C]): ShuffleHandle =
    new BaseShuffleHandle(shuffleId, dependency)

  override def getWriter[K, V](
      handle: ShuffleHandle,
      mapId: Long,
      context: TaskContext,
      metrics: ShuffleWriteMetricsReporter): ShuffleWriter[K, V] = new ShuffleWriter[K, V] {

    private val dependency = handle.asInstanceOf[Handle].dependency
    private val partitioner = dependency.partitioner
    private val partitions = Array.fill(partitioner.numPartitions)(new ByteArrayOutputStream)

    override def write(records: Iterator[Product2[K, V]]): Unit = {
      val record = new ByteArrayOutputStream
      val out = dependency.serializer.newInstance().serializeStream(record)
      // A manager may keep records as objects before it writes them.
      records.toArray.foreach { case (key, value) =>
        out.writeKey[Any](key)(ClassTag.Any)
        out.writeValue[Any](value)(ClassTag.Any)
        out.flush()
        record.writeTo(partitions(partitioner.getPartition(key)))
        record.reset()
        metrics.incRecordsWritten(1)
      }
      metrics.incBytesWritten(getPartitionLengths().sum)
      written.put((handle.shuffleId, context.partitionId()), partitions.map(_.toByteArray))
    }

    override def getPartitionLengths(): Array[Long] = partitions.map(_.size.toLong)

    override def stop(success: Boolean): Option[MapStatus] = Some(
      MapStatus(SparkEnv.get.blockManager.shuffleServerId, getPartitionLengths(), mapId))
  }

  override def getReader[K, C](
      handle: ShuffleHandle,
      startMapIndex: Int,
      endMapIndex: Int,
      startPartition: Int,
      endPartition: Int,
      context: TaskContext,
      metrics: ShuffleReadMetricsReporter): ShuffleReader[K, C] = new ShuffleReader[K, C] {

    override def read(): Iterator[Product2[K, C]] = {
      val dependency = handle.asInstanceOf[Handle].dependency
      val serializer = dependency.serializer.newInstance()
      val maps = Iterator
        .range(startMapIndex, endMapIndex)
        .map(map => written.get((handle.shuffleId, map)))
        .takeWhile(_ != null)
        .toSeq
      val records = for {
        partition <- Iterator.range(startPartition, endPartition)
        map <- maps.iterator
        bytes = map(partition)
        record <- serializer.deserializeStream(new ByteArrayInputStream(bytes)).asKeyValueIterator
      } yield {
        metrics.incRecordsRead(1)
        record.asInstanceOf[Product2[K, C]]
      }
      new Iterator[Product2[K, C]] {
        override def hasNext: Boolean = records.hasNext
        override def next(): Product2[K, C] = {
          val record = records.next()
          records.hasNext
          record
        }
      }
    }
  }

  override def unregisterShuffle(shuffleId: Int): Boolean =
    written.keySet().removeIf(_._1 == shuffleId)

  override def stop(): Unit = ()
}
