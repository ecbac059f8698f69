package io.github.skewext.skew.run

import java.util.{Arrays, BitSet}

import io.github.skewext.rows.{KeyFilter, MatchedKeyFilter, NormalizedKeys}
import io.github.skewext.shuffle.{ColumnBlockRows, PartitionedColumnBuffer, ShuffledColumns}

import org.apache.spark.TaskContext
import org.apache.spark.memory.SparkOutOfMemoryError
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{UnsafeArrayData, UnsafeRow}
import org.apache.spark.sql.execution.RowIterator
import org.apache.spark.sql.skewext.TaskInternals
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.map.BytesToBytesMap

/**
 * A set of keys to look up in a much larger input, which is neither stored nor sorted. It returns
 * one row of each key in the set, and stops reading when it has found all keys.
 *
 * The set uses pages of the task. If there is no memory, the set is dropped and all rows are
 * returned. The answer is the same, only slower, because the join can spill the rows.
 *
 * Several tasks may look up the same keys, each in a part of the input. Together they find the keys
 * that the input has: [[metBy]] runs in these tasks, and [[knownFrom]] in the task that combines
 * them.
 *
 * @param keys the keys of each input, bound to its rows; equal keys have equal bytes
 */
private[skewext] final class KeyLookup(keys: NormalizedKeys, context: TaskContext) {

  import KeyLookup._

  private[this] val projections = keys.projections
  private[this] val notMet = Array[Long](0L)
  private[this] var unmet = 0L

  /** Hashes and compares keys in the rows, which is enough for most rows. */
  private[this] val inRows = keys.inRows
  private[this] val hashes = new KeyFilter(FilterBits)

  /**
   * A row that was looked up, whose key need not be looked up again. A majority vote among the rows
   * chooses it, so that it is one of a hot key.
   */
  private[this] var frequent: UnsafeRow = _
  private[this] var frequentHash = 0L
  private[this] var votes = 0L

  /** Null if there was no memory for it, or if it is no longer needed. */
  private[this] var set: BytesToBytesMap = create()

  private[this] val hashMemory = new TaskInternals.HeapMemory(context)

  private[this] val end = TaskInternals.atEnd(context) {
    free()
    hashMemory.release()
  }

  /** Frees all memory, when what [[knownFrom]] has returned is no longer used. */
  def close(): Unit = end.run()

  /** Drops the set. From now on all rows are returned, and no key is known. */
  def giveUp(): Unit = free()

  /** Adds the key of the row, unless it contains a null. */
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

  /** Returns the first row of each key in the set, or all rows if the set was dropped. */
  def firstOfEach(input: Int, rows: Iterator[InternalRow]): Iterator[InternalRow] =
    new RowIterator {
      private[this] val candidates = new Candidates(input, rows)
      private[this] var found: InternalRow = _

      override def getRow: InternalRow = found

      override def advanceNext(): Boolean = {
        found = candidates.next()
        while (found != null && set != null && !meet(input, found.asInstanceOf[UnsafeRow])) {
          found = candidates.next()
        }
        if (found == null) free()
        found != null
      }
    }.toScala

  /**
   * Looks up the set's keys in the rows, and returns those that occur there. Returns None without
   * reading rows if there is no set (the memory was too small), if it has more than `maxKeys` keys,
   * or if two of its keys have the same hash. The caller then reads the input in full.
   *
   * @param input the number of the input that the rows are from
   */
  def metBy(input: Int, rows: => Iterator[InternalRow], maxKeys: Int): Option[MatchedKeys] =
    (if (set != null && set.numKeys() > maxKeys) None else sortedHashes()).map { hashes =>
      val candidates = new Candidates(input, rows)
      var row = candidates.next()
      while (row != null) {
        meet(input, row.asInstanceOf[UnsafeRow])
        row = candidates.next()
      }
      val met = new BitSet(hashes.length)
      val found = set.iterator()
      while (found.hasNext) {
        val location = found.next()
        if (Platform.getLong(location.getValueBase, location.getValueOffset) == Met) {
          met.set(Arrays.binarySearch(hashes, hashOf(location)))
        }
      }
      free()
      MatchedKeys(KeySetFingerprint.of(hashes), met)
    }

  /**
   * Returns the keys that other tasks have met. None if their key set was another one, or if this
   * set was dropped.
   */
  def knownFrom(met: MatchedKeys): Option[MatchedKeyFilter] =
    sortedHashes().filter(KeySetFingerprint.of(_) == met.keys).map { hashes =>
      free()
      new MatchedKeyFilter(keys, hashes, met.met)
    }

  /**
   * The sorted hashes, which identify the keys. None if two keys have the same hash, or without
   * memory.
   */
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

  /** Whether the key of the row is in the set and was not met before. All rows are of one input. */
  private def meet(input: Int, row: UnsafeRow): Boolean = {
    // A null may pass for a key of zero bits here, and matches nothing, either.
    if (frequent != null && inRows.equal(input, frequent, input, row)) {
      votes += 1
      return false
    }
    if (inRows.hasNull(input, row)) return false
    val hash = inRows.hash(input, row)
    if (!hashes.mayHave(hash)) return false
    if (votes > 0) {
      votes -= 1
    } else {
      if (frequent == null) frequent = UnsafeRow.createFromByteArray(0, row.numFields)
      frequent.copyFrom(row)
      frequentHash = hash
      votes = 1
    }
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

  /**
   * The rows that have to be looked up. In a block of columns only the keys are decoded and
   * searched, and a row is built if its key may be in the set and is not the frequent one.
   */
  private final class Candidates(input: Int, rows: Iterator[InternalRow]) {
    private[this] var block: ColumnBlockRows = _
    private[this] val ofBlock = new Array[Long](PartitionedColumnBuffer.BlockRows)

    /**
     * Null after the last row, or if all keys are met. All remaining rows if there is no set, as
     * when it is dropped.
     */
    def next(): InternalRow = {
      if (set != null && unmet == 0) return null
      while (set != null && openBlock()) {
        var i = block.taken
        while (i < block.numRows && !isCandidate(i)) i += 1
        if (i < block.numRows) return block.rowAt(i)
        block.takeAll()
        block = null
      }
      if (rows.hasNext) rows.next() else null
    }

    private def isCandidate(i: Int): Boolean = {
      val hash = ofBlock(i)
      if (frequent == null || hash != frequentHash || !inRows.equal(
          input,
          frequent,
          input,
          block,
          i)) {
        hashes.mayHave(hash)
      } else {
        votes += 1
        false
      }
    }

    /** Whether the next row is one of a block whose hashes are known. */
    private def openBlock(): Boolean = {
      if (block == null) {
        rows match {
          case columns: ShuffledColumns =>
            block = columns.block
            if (block != null && !inRows.hash(input, block, ofBlock)) block = null
          case _ =>
        }
      }
      block != null
    }
  }

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

  /** 128 KB, which fits into the cache of a core. */
  private val FilterBits = 20
}

/**
 * A fingerprint of a key set. A retried task, or another task that reads the same input, may have
 * found other keys if the input is less stable than expected.
 */
private[skewext] case class KeySetFingerprint(size: Int, sumOfHashes: Long, xorOfHashes: Long)

private[skewext] object KeySetFingerprint {
  def of(hashes: Array[Long]): KeySetFingerprint =
    KeySetFingerprint(hashes.length, hashes.sum, hashes.fold(0L)(_ ^ _))
}

/**
 * The keys of a set that some rows have. A key is identified by its position in the order of the
 * hashes, so that it takes one bit.
 */
private[skewext] case class MatchedKeys(keys: KeySetFingerprint, met: BitSet) {

  /** The union; None if the key sets differ. */
  def or(other: MatchedKeys): Option[MatchedKeys] = if (keys == other.keys) {
    val both = met.clone().asInstanceOf[BitSet]
    both.or(other.met)
    Some(MatchedKeys(keys, both))
  } else {
    None
  }

  /** The form in which a task sends it, of a class that every serializer supports. */
  def toLongs: Array[Long] =
    Array(keys.size.toLong, keys.sumOfHashes, keys.xorOfHashes) ++ met.toLongArray
}

private[skewext] object MatchedKeys {

  /** The array that a task has sent, as a row for the inputs of the join. */
  def row(longs: Array[Long]): InternalRow = InternalRow(UnsafeArrayData.fromPrimitiveArray(longs))

  /**
   * The keys that all slices together have. None if a task could not determine its keys, or if no
   * task has marked any.
   */
  def ofAll(sent: Iterator[InternalRow]): Option[MatchedKeys] = sent
    .map(row => ofLongs(row.getArray(0).toLongArray()))
    .reduceOption((all, next) => for (a <- all; b <- next; both <- a.or(b)) yield both)
    .flatten

  private def ofLongs(longs: Array[Long]): Option[MatchedKeys] =
    if (longs.isEmpty) None
    else
      Some(
        MatchedKeys(
          KeySetFingerprint(longs(0).toInt, longs(1), longs(2)),
          BitSet.valueOf(longs.drop(3))))
}
