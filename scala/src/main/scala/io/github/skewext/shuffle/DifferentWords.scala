package io.github.skewext.shuffle

/**
 * Finds runs of words that have few different ones. Then a block has each of them once, and their
 * numbers in the order of the run. Packed bits of the words themselves begin in the middle of bytes,
 * so a codec would not see that they repeat.
 */
private[shuffle] final class DifferentWords {
  import DifferentWords._

  // A hash table: the run that filled a slot, and the number of its word.
  private[this] val runOf = new Array[Int](Slots)
  private[this] val numberOf = new Array[Int](Slots)
  private[this] var run = 0

  /** The different words of the run. */
  val words = new Array[Long](Most)
  var count = 0

  /** For each word of the run, its position among the different ones. */
  var numbers: Array[Long] = Array.emptyLongArray

  /**
   * Finds the different words of `values(from until until)`. Returns whether they and their numbers
   * have so much less bits that it is worth their time.
   *
   * @param bits of a word as it would be packed.
   */
  def find(values: Array[Long], from: Int, until: Int, bits: Int): Boolean = {
    val size = until - from
    bits > ShortWords && size >= FewRows && findAll(values, from, until) && {
      val bitsOfNumber = 64 - java.lang.Long.numberOfLeadingZeros(count - 1L)
      8L * (count.toLong * bits + size.toLong * bitsOfNumber) <= 5L * size * bits
    }
  }

  /** Returns false as soon as there are many different ones. */
  private def findAll(values: Array[Long], from: Int, until: Int): Boolean = {
    val size = until - from
    if (numbers.length < size) numbers = new Array[Long](size)
    run += 1
    count = 0
    var i = 0
    while (i < size && count < math.min(Most, math.max(First, i) / 2)) {
      numbers(i) = numberOf(values(from + i)).toLong
      i += 1
    }
    i == size
  }

  private def numberOf(word: Long): Int = {
    var slot = (word * Spread >>> (64 - SlotBits)).toInt
    while (runOf(slot) == run && words(numberOf(slot)) != word) slot = (slot + 1) & (Slots - 1)
    if (runOf(slot) != run) {
      runOf(slot) = run
      numberOf(slot) = count
      words(count) = word
      count += 1
    }
    numberOf(slot)
  }
}

private object DifferentWords {

  /** The numbers of words that have so few bits would not have much fewer. */
  private final val ShortWords = 12

  /** A shorter run is not worth the search. */
  private final val FewRows = 32

  /** If half of the first words are different, there are many. */
  private final val First = 256
  private final val Most = 1024
  private final val SlotBits = 11
  private final val Slots = 1 << SlotBits

  /** The golden ratio, which spreads words that differ in a few bits. */
  private final val Spread = 0x9e3779b97f4a7c15L
}
