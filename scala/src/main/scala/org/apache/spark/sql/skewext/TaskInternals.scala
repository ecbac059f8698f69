package org.apache.spark.sql.skewext

import java.io.{BufferedInputStream, DataInputStream, File, FileInputStream}
import java.util.Properties

import org.apache.spark.executor.ShuffleWriteMetrics
import org.apache.spark.memory.{MemoryConsumer, MemoryMode, TaskMemoryManager}
import org.apache.spark.scheduler.TaskSchedulerImpl
import org.apache.spark.sql.execution.ExternalAppendOnlyUnsafeRowArray
import org.apache.spark.storage.BlockId
import org.apache.spark.util.collection.unsafe.sort.{RecordComparator, UnsafeSorterSpillReader, UnsafeSorterSpillWriter}
import org.apache.spark.{SparkContext, SparkEnv, TaskContext, TaskContextImpl, TaskKilledException}

/** Internals of Spark that a running task uses: its memory, its sorters and its metrics. */
object TaskInternals {

  /**
   * An array of rows that can be read repeatedly. It holds some rows on the heap, and more in pages
   * that Spark accounts for and spills.
   */
  type RowArray = ExternalAppendOnlyUnsafeRowArray

  def memory(context: TaskContext): TaskMemoryManager = context.taskMemoryManager()

  /**
   * Throws if the task was killed, or has ended: the thread that feeds a script may still ask for
   * rows then.
   */
  def endIfKilled(context: TaskContext): Unit = {
    context.killTaskIfInterrupted()
    if (context.isCompleted()) throw new TaskKilledException("the task has ended")
  }

  /**
   * Whether the task's work is useless by now: it was killed, or output of other tasks is missing.
   */
  def isEnding(context: TaskContext): Boolean =
    context.isInterrupted() || context.fetchFailed.isDefined

  /** The number of the attempt after which Spark fails a task, and its job. */
  def lastAttempt(sc: SparkContext): Int = sc.taskScheduler match {
    case scheduler: TaskSchedulerImpl => scheduler.maxTaskFailures - 1
    case _ => 0
  }

  def reportPeakMemory(context: TaskContext, bytes: Long): Unit =
    context.taskMetrics().incPeakExecutionMemory(bytes)

  /**
   * Runs an action once: when the task ends, or before. A task holds its listeners until it ends, and
   * may go on with other partitions, as in a coalesced RDD. So it drops what the action refers to.
   */
  def atEnd(context: TaskContext)(action: => Unit): AtEnd = {
    val end = new AtEnd(() => action)
    context.addTaskCompletionListener[Unit] { _ =>
      end.run()
      ()
    }
    end
  }

  final class AtEnd private[TaskInternals] (private[this] var action: () => Unit) {

    /** Returns whether this call ran the action. If another thread runs it, it waits for the end. */
    def run(): Boolean = synchronized {
      val pending = action
      action = null
      if (pending != null) pending()
      pending != null
    }
  }

  /** Runs code for a task, also in a thread that does not know it. */
  def within[T](context: TaskContext)(body: => T): T =
    if (TaskContext.get() != null) {
      body
    } else {
      TaskContext.setTaskContext(context)
      try body
      finally TaskContext.unset()
    }

  /** The id by which Spark's block manager knows the driver, such as for locks of broadcasts. */
  private val NoTask = -1024L

  /** Runs code on the driver that opens files, and closes them when its task is completed. */
  def asTask[T](body: => T): T = {
    val context = new TaskContextImpl(0, 0, 0, NoTask, 0, 1, null, new Properties, null)
    TaskContext.setTaskContext(context)
    try body
    finally {
      try context.markTaskCompleted(None)
      finally TaskContext.unset()
    }
  }

  /**
   * Accounts for objects on the heap.
   *
   * @param giveUp releases memory if it can, when another operator of the task needs some.
   */
  final class HeapMemory(context: TaskContext, giveUp: () => Unit = () => ())
      extends MemoryConsumer(context.taskMemoryManager(), MemoryMode.ON_HEAP) {

    /** Acquires memory up to this total. Returns false if there is not enough. */
    def reserve(bytes: Long): Boolean = {
      val more = math.max(0L, bytes - getUsed)
      // Spark asserts that a request is larger than 0.
      more == 0 || acquireMemory(more) == more
    }

    def release(): Unit = freeMemory(getUsed)

    /** Frees so many bytes, or all there are. */
    def release(bytes: Long): Unit = freeMemory(math.min(bytes, getUsed))

    override def spill(size: Long, trigger: MemoryConsumer): Long = {
      val before = getUsed
      if (trigger ne this) giveUp()
      before - getUsed
    }
  }

  /** Writes records to a file of the task, without memory that Spark accounts for. */
  def spillWriter(numRecords: Int): UnsafeSorterSpillWriter =
    new UnsafeSorterSpillWriter(
      SparkEnv.get.blockManager,
      SpillBuffer,
      // The task's own metrics would count spilled records as written to its shuffle.
      new ShuffleWriteMetrics,
      numRecords)

  /**
   * The records of a file that a writer has closed: their number, and of each the size, the prefix and
   * the bytes. Spark's own reader has a buffer of a megabyte, which it keeps until the task ends.
   */
  def openSpilled(file: File): DataInputStream = {
    val in = new BufferedInputStream(new FileInputStream(file), SpillBuffer)
    new DataInputStream(SparkEnv.get.serializerManager.wrapStream(BlockId(file.getName), in))
  }

  def reportSpill(context: TaskContext, memoryBytes: Long, diskBytes: Long): Unit = {
    context.taskMetrics().incMemoryBytesSpilled(memoryBytes)
    context.taskMetrics().incDiskBytesSpilled(diskBytes)
  }

  private val SpillBuffer = 32 * 1024

  def spillReader(written: UnsafeSorterSpillWriter): UnsafeSorterSpillReader =
    written.getReader(SparkEnv.get.serializerManager)

  private[skewext] val InitialRecords = 4096

  private[skewext] object AnyOrder extends RecordComparator {
    override def compare(
        leftBase: AnyRef,
        leftOffset: Long,
        leftLength: Int,
        rightBase: AnyRef,
        rightOffset: Long,
        rightLength: Int): Int = 0
  }
}
