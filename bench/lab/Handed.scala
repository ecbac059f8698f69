package org.apache.spark.sql.skewext.lab

import scala.collection.mutable.ArrayBuffer
import scala.concurrent.duration.Duration
import scala.concurrent.{Await, Future}

import org.apache.spark.SparkContext
import org.apache.spark.scheduler.{SparkListener, SparkListenerTaskEnd}

/** What a task of this JVM is to do, and what came out: nothing of it need be serializable. */
private[lab] object Handed {
  @volatile var body: Iterator[Any] => Any = _
  @volatile var result: Any = _

  def run[T](values: Iterator[T]): Unit = result = body(values)
}

/** What the one task of a job took. */
private case class ThreadTimes(nanos: Long, shuffleBytes: Long)

private object ThreadTimes {

  def of[T](sc: SparkContext)(job: => Future[T]): (ThreadTimes, T) = {
    val ended = ArrayBuffer.empty[ThreadTimes]
    val listener = new SparkListener {
      override def onTaskEnd(end: SparkListenerTaskEnd): Unit = ended += ThreadTimes(
        end.taskMetrics.executorCpuTime,
        end.taskMetrics.shuffleWriteMetrics.bytesWritten)
    }
    sc.addSparkListener(listener)
    val result = Await.result(job, Duration.Inf)
    sc.listenerBus.waitUntilEmpty()
    sc.removeSparkListener(listener)
    (ended.toSeq match { case Seq(one) => one }, result)
  }
}
