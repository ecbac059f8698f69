package io.github.skewext.shuffle

import java.nio.ByteBuffer

import scala.reflect.ClassTag

import org.apache.spark.serializer.{DeserializationStream, SerializationStream, SerializerInstance}

/**
 * A serializer for shuffles. Like Spark's own serializer of rows, it has only the methods that they
 * call.
 */
private[skewext] trait StreamsOnly extends SerializerInstance {
  override def serialize[T: ClassTag](value: T): ByteBuffer =
    throw new UnsupportedOperationException
  override def deserialize[T: ClassTag](bytes: ByteBuffer): T =
    throw new UnsupportedOperationException
  override def deserialize[T: ClassTag](bytes: ByteBuffer, loader: ClassLoader): T =
    throw new UnsupportedOperationException
}

/** Writes the values of records. Their key is the partition, which the file does not need. */
private[skewext] trait ValuesOut extends SerializationStream {
  override def writeKey[T: ClassTag](key: T): SerializationStream = this
  override def writeAll[T: ClassTag](values: Iterator[T]): SerializationStream =
    throw new UnsupportedOperationException
  override def writeObject[T: ClassTag](value: T): SerializationStream =
    throw new UnsupportedOperationException
}

/** Returns records by `asKeyValueIterator` only. */
private[skewext] trait RecordsIn extends DeserializationStream {
  override def asIterator: Iterator[Any] = throw new UnsupportedOperationException
  override def readKey[T: ClassTag](): T = throw new UnsupportedOperationException
  override def readValue[T: ClassTag](): T = throw new UnsupportedOperationException
  override def readObject[T: ClassTag](): T = throw new UnsupportedOperationException
}
