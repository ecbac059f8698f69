package io.github.skewext.execution.split

import java.util.{Arrays, BitSet}

import io.github.skewext.execution.{KeyFilter, MatchedKeyFilter, NormalizedKeys}

import org.apache.spark.TaskContext
import org.apache.spark.memory.SparkOutOfMemoryError
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{UnsafeArrayData, UnsafeRow}
import org.apache.spark.sql.skewext.TaskInternals
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.map.BytesToBytesMap

/**
 * A set of keys, to which a much larger input is compared that is neither kept nor sorted: one row of
 * each key is let through, and the input is left as soon as all keys were met.
 *
 * The set is in pages of the task. If there is no memory for it, it is given up and all rows are let
 * through, which is as right and only slower: the join knows how to spill them.
 *
 * Several sets of the same keys, each compared to a part of the input by a task of its own, tell
 * together which keys the input has: [[metBy]] in these tasks, [[knownFrom]] in the one that asks.
 *
 * @param keys the keys of each input, bound to its rows; equal keys have equal bytes
 */
private[skewext] final class KeyLookup(keys: NormalizedKeys, context: TaskContext) {

  import KeyLookup._

  private[this] val projections = keys.projections
  private[this] val notMet = Array[Long](0L)
  private[this] var unmet = 0L

  /** Reads keys where they stand: of most rows no more has to be known than that. */
  private[this] val inRows = keys.inRows
  private[this] val hashes = new KeyFilter(FilterBits)

  /** The row looked for last: where a key is hot, that of the next one is often the same. */
  private[this] var lastRow: UnsafeRow = _
  private[this] var lastHash = 0L

  /** Null once there was no memory for it, or when it is not needed any more. */
  private[this] var set: BytesToBytesMap = create()

  private[this] val hashMemory = new TaskInternals.HeapMemory(context)

  context.addTaskCompletionListener[Unit] { _ =>
    free()
    hashMemory.release()
  }

  /** From now on all rows are let through, and no key is known. */
  def giveUp(): Unit = free()

  /** The key of the row, if it has no null, is wanted. */
  def add(input: Int, row: UnsafeRow): Unit = if (set != null) {
    val key = projections(input)(row)
    if (!key.anyNull()) {
      val location = set.lookup(key.getBaseObject, key.getBaseOffset, key.getSizeInBytes)
      if (!location.isDefined) {
        val added =
          try {
            location.append(
              key.getBaseObject,
              key.getBaseOffset,
              key.getSizeInBytes,
              notMet,
              Platform.LONG_ARRAY_OFFSET,
              8)
          } catch {
            case _: SparkOutOfMemoryError => false
          }
        if (added) {
          unmet += 1
          hashes.add(inRows.hash(input, row))
        } else {
          free()
        }
      }
    }
  }

  /** Of the rows, the first of each wanted key; all of them if the set was given up. */
  def firstOfEach(input: Int, rows: Iterator[InternalRow]): Iterator[InternalRow] =
    new Iterator[InternalRow] {
      private[this] var found: InternalRow = _
      private[this] var ended = false

      override def hasNext: Boolean = {
        while (found == null && !ended) {
          if (unmet == 0 && set != null || !rows.hasNext) {
            ended = true
            free()
          } else {
            val row = rows.next()
            // Without the set also in the middle: who takes the rows may have given it up.
            if (set == null || meet(input, row.asInstanceOf[UnsafeRow])) found = row
          }
        }
        found != null
      }

      override def next(): InternalRow = {
        if (!hasNext) throw new NoSuchElementException
        val row = found
        found = null
        row
      }
    }

  /**
   * Which of the keys the rows have; nothing if that cannot be told apart from other keys, or if there
   * are more than so many of them. Then the rows are not read.
   */
  def metBy(input: Int, rows: => Iterator[InternalRow], maxKeys: Int): Option[MatchedKeys] =
    (if (set != null && set.numKeys() > maxKeys) None else sortedHashes()).map { hashes =>
      val opened = rows
      while (unmet > 0 && opened.hasNext) meet(input, opened.next().asInstanceOf[UnsafeRow])
      val met = new BitSet(hashes.length)
      val found = set.iterator()
      while (found.hasNext) {
        val location = found.next()
        if (Platform.getLong(location.getValueBase, location.getValueOffset) == Met) {
          met.set(Arrays.binarySearch(hashes, hashOf(location)))
        }
      }
      free()
      MatchedKeys(KeySet.of(hashes), met)
    }

  /** The keys that were met by others; nothing if they had not the same keys, or these are unknown. */
  def knownFrom(met: MatchedKeys): Option[MatchedKeyFilter] =
    sortedHashes().filter(KeySet.of(_) == met.keys).map { hashes =>
      free()
      new MatchedKeyFilter(keys, hashes, met.met)
    }

  /** Stand for the keys: no two of them have one hash. */
  private def sortedHashes(): Option[Array[Long]] =
    if (set == null || !hashMemory.reserve(8L * set.numKeys())) {
      None
    } else {
      val hashes = new Array[Long](set.numKeys())
      val locations = set.iterator()
      var i = 0
      while (locations.hasNext) {
        hashes(i) = hashOf(locations.next())
        i += 1
      }
      Arrays.sort(hashes)
      if ((1 until hashes.length).exists(j => hashes(j - 1) == hashes(j))) None else Some(hashes)
    }

  private def hashOf(key: BytesToBytesMap#Location): Long =
    keys.hash(key.getKeyBase, key.getKeyOffset, key.getKeyLength)

  /** Whether the key of the row is wanted and was not met before. All rows are of one input. */
  private def meet(input: Int, row: UnsafeRow): Boolean = {
    if (inRows.hasNull(input, row)) return false
    val hash = inRows.hash(input, row)
    if (!hashes.mayHave(hash) || isLast(input, row, hash)) return false
    if (lastRow == null) lastRow = UnsafeRow.createFromByteArray(0, row.numFields)
    lastRow.copyFrom(row)
    lastHash = hash
    val key = projections(input)(row)
    val location = set.lookup(key.getBaseObject, key.getBaseOffset, key.getSizeInBytes)
    val first = location.isDefined &&
      Platform.getLong(location.getValueBase, location.getValueOffset) != Met
    if (first) {
      Platform.putLong(location.getValueBase, location.getValueOffset, Met)
      unmet -= 1
    }
    first
  }

  private def isLast(input: Int, row: UnsafeRow, hash: Long): Boolean =
    lastRow != null && hash == lastHash && inRows.equal(input, lastRow, input, row)

  private def create(): BytesToBytesMap = {
    val memory = TaskInternals.memory(context)
    try {
      new BytesToBytesMap(memory, InitialCapacity, math.min(PageSize, memory.pageSizeBytes))
    } catch {
      case _: SparkOutOfMemoryError => null
    }
  }

  private def free(): Unit = if (set != null) {
    set.free()
    set = null
  }
}

private object KeyLookup {
  private val Met = 1L
  private val InitialCapacity = 1024
  private val PageSize = (1L << 20) - Platform.LONG_ARRAY_OFFSET

  /** 128 KB: what a core has close by. */
  private val FilterBits = 20
}

/**
 * What tells sets of keys apart: a task that runs again, or another one that reads the same input,
 * may have found other keys where the input is not as stable as it seemed.
 */
private[skewext] case class KeySet(size: Int, sumOfHashes: Long, xorOfHashes: Long)

private[skewext] object KeySet {
  def of(hashes: Array[Long]): KeySet = KeySet(hashes.length, hashes.sum, hashes.fold(0L)(_ ^ _))
}

/**
 * Which keys of a set some rows have. The keys are known by their place in the order of their
 * hashes, so that a bit is enough for each.
 */
private[skewext] case class MatchedKeys(keys: KeySet, met: BitSet) {

  /** Nothing if the keys are not the same ones. */
  def or(other: MatchedKeys): Option[MatchedKeys] = if (keys == other.keys) {
    val both = met.clone().asInstanceOf[BitSet]
    both.or(other.met)
    Some(MatchedKeys(keys, both))
  } else {
    None
  }

  /** As a task sends it: of a class that every serializer knows. */
  def toLongs: Array[Long] =
    Array(keys.size.toLong, keys.sumOfHashes, keys.xorOfHashes) ++ met.toLongArray
}

private[skewext] object MatchedKeys {

  /** What a task has sent, for those who read rows. */
  def row(longs: Array[Long]): InternalRow = InternalRow(UnsafeArrayData.fromPrimitiveArray(longs))

  /** What all slices together have; nothing if a task has said nothing, or none was asked. */
  def ofAll(sent: Iterator[InternalRow]): Option[MatchedKeys] = sent
    .map(row => ofLongs(row.getArray(0).toLongArray()))
    .reduceOption((all, next) => for (a <- all; b <- next; both <- a.or(b)) yield both)
    .flatten

  private def ofLongs(longs: Array[Long]): Option[MatchedKeys] =
    if (longs.isEmpty) None
    else
      Some(MatchedKeys(KeySet(longs(0).toInt, longs(1), longs(2)), BitSet.valueOf(longs.drop(3))))
}
