package org.apache.spark.sql.skewext

import java.util.Properties

import org.apache.spark.executor.TaskMetrics
import org.apache.spark.memory.{MemoryConsumer, MemoryManager, MemoryMode, SparkOutOfMemoryError, TaskMemoryManager, TestMemoryManager, UnifiedMemoryManager}
import org.apache.spark.rdd.RDD
import org.apache.spark.unsafe.memory.MemoryBlock
import org.apache.spark.{SparkConf, SparkEnv, TaskContext, TaskContextImpl}

/**
 * A task without a job, for tests that need a task's memory and completion listeners. Lives here
 * because `TaskContextImpl` and the memory managers are `private[spark]`.
 */
object TestTask {

  /** Whether Spark expects rows in another order, or other rows, if the RDD is computed again. */
  def level(rdd: RDD[_]): String = rdd.outputDeterministicLevel.toString

  /** The bytes that the task has written to disk. */
  def spilled(context: TaskContext): Long = context.taskMetrics().diskBytesSpilled

  /** What Spark's writer does when it spills. */
  def noteSpilled(context: TaskContext, memoryBytes: Long): Unit =
    context.taskMetrics().incMemoryBytesSpilled(memoryBytes)

  /** What Spark does to a task whose query is cancelled. */
  def kill(context: TaskContext): Unit =
    context.asInstanceOf[TaskContextImpl].markInterrupted("killed")

  /** What Spark's threads begin with that do a part of a task. */
  def setContext(context: TaskContext): Unit = TaskContext.setTaskContext(context)

  /** Runs `body` as a task; fails if memory is left when the task has ended. */
  def run[T](memory: TestMemory)(body: TaskContext => T): T = {
    val manager = new TaskMemoryManager(memory.manager, 0) {
      override def releaseExecutionMemory(size: Long, consumer: MemoryConsumer): Unit = {
        super.releaseExecutionMemory(size, consumer)
        memory.noteFreed(size)
      }
    }
    val metrics = TaskMetrics.empty
    val context =
      new TaskContextImpl(0, 0, 0, 0, 0, 1, manager, new Properties, null, taskMetrics = metrics)
    TaskContext.setTaskContext(context)
    try {
      try {
        body(context)
      } catch {
        // As it is, it would end the run of all tests.
        case e: SparkOutOfMemoryError => throw new AssertionError("The task is out of memory.", e)
      } finally {
        context.markTaskCompleted(None)
      }
    } finally {
      TaskContext.unset()
      val leaked = manager.cleanUpAllAllocatedMemory()
      assert(leaked == 0, s"$leaked bytes were not freed")
    }
  }
}

/** Something else in a task that takes memory, and cannot give it back when asked to. */
class TestConsumer(context: TaskContext)
    extends MemoryConsumer(context.taskMemoryManager(), MemoryMode.ON_HEAP) {

  /** How much there was of that, others having given back what they can. */
  def acquire(bytes: Long): Long = acquireMemory(bytes)

  def release(): Unit = freeMemory(getUsed)

  def page(bytes: Long): MemoryBlock = allocatePage(bytes)

  def giveBack(page: MemoryBlock): Unit = freePage(page)

  override def spill(size: Long, trigger: MemoryConsumer): Long = 0L
}

/** A memory manager, and what tests do to it. */
class TestMemory private (val manager: MemoryManager) {

  /** As much as is free is left to take; what is freed can be taken again. */
  def limit(bytes: Long): Unit = manager.asInstanceOf[TestMemoryManager].limit(bytes)

  private val otherTask = {
    val task = new TaskMemoryManager(manager, 1)
    new MemoryConsumer(task, MemoryMode.ON_HEAP) {
      override def spill(size: Long, trigger: MemoryConsumer): Long = 0
    }
  }

  private var bytesWanted = 0L

  /** Another task asks for memory, and so halves what the test's task may have. */
  def startOtherTask(): Unit = otherTask.acquireMemory(1)

  /** Another task waits for so much, and takes what the test's task frees, as soon as it does. */
  def letOtherTaskWaitFor(bytes: Long): Unit = bytesWanted = bytes

  private[skewext] def noteFreed(bytes: Long): Unit = if (bytesWanted > 0) {
    bytesWanted -= otherTask.acquireMemory(math.min(bytes, bytesWanted))
  }

  def inUse: Long = manager.executionMemoryUsed
}

object TestMemory {

  private def conf(pageSize: Long): SparkConf =
    SparkEnv.get.conf.clone.set("spark.buffer.pageSize", pageSize.toString)

  /** Memory that is `limit`ed by the test, with Spark's pages of `pageSize` bytes. */
  def limited(bytes: Long, pageSize: Long = 1 << 16): TestMemory = {
    val memory = new TestMemory(new TestMemoryManager(conf(pageSize)))
    memory.limit(bytes)
    memory
  }

  def offHeap(bytes: Long, pageSize: Long = 1 << 16): TestMemory =
    new TestMemory(
      UnifiedMemoryManager(
        conf(pageSize)
          .set("spark.memory.offHeap.enabled", "true")
          .set("spark.memory.offHeap.size", bytes.toString),
        numCores = 1))

  /** As in a running executor: tasks share the memory, and the share shrinks as they come. */
  def shared(bytes: Long, pageSize: Long = 1 << 16): TestMemory =
    new TestMemory(new UnifiedMemoryManager(conf(pageSize), bytes, 0, 2))
}
