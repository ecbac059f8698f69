package io.github.skewext.technique.hint

import java.util.Locale

import scala.util.Try

import org.apache.spark.network.util.JavaUtils
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.skewext.SqlInternals

/**
 * The options of a technique, as text, because a hint contains nothing else.
 *
 * @param hotKeys the keys with many rows, if they are given or counted.
 * @param ofAuto whether `auto` chose the technique.
 */
case class TechniqueOptions(
    values: Map[String, String] = Map.empty,
    hotKeys: Option[Seq[HotKey]] = None,
    ofAuto: Boolean = false) {

  def text(name: String): Option[String] = values.get(name)

  def oneOf(name: String, words: Seq[String]): Option[String] = text(name).map { given =>
    val word = given.toLowerCase(Locale.ROOT)
    if (words.contains(word)) word else wrong(name, given, s"one of ${words.mkString(", ")}")
  }

  def int(name: String, least: Int, most: Int): Option[Int] =
    parsed(name, s"a whole number between $least and $most")(t =>
      Some(t.toInt).filter(n => n >= least && n <= most))

  def double(name: String, least: Double): Option[Double] =
    parsed(name, s"a number of at least $least")(t => Some(t.toDouble).filter(_ >= least))

  /** A size as in Spark's settings: `64m`, or a number of bytes. */
  def bytes(name: String): Option[Long] =
    parsed(name, "a size, such as 64m")(t => Some(JavaUtils.byteStringAsBytes(t)).filter(_ > 0))

  private def parsed[T](name: String, what: String)(parse: String => Option[T]): Option[T] =
    text(name).map(t => Try(parse(t)).toOption.flatten.getOrElse(wrong(name, t, what)))

  private def wrong(name: String, given: String, what: String): Nothing =
    throw SqlInternals.analysisError(s"The option $name must be $what, not '$given'.")
}

object TechniqueOptions {

  /** Throws an error for an option that the technique does not have. */
  def check(technique: String, optionNames: Seq[String], options: TechniqueOptions): Unit = {
    val given = options.values.keys.toSeq.sorted ++ options.hotKeys.map(_ => HotKeys)
    given.find(!optionNames.contains(_)).foreach { name =>
      val known =
        if (optionNames.isEmpty) "it takes none"
        else s"it takes ${optionNames.mkString(", ")}"
      throw SqlInternals.analysisError(s"The technique $technique has no option '$name'; $known.")
    }
  }

  val HotKeys = "hot_keys"
}

/**
 * The options of the technique `adaptive`: settings for the split of one join. None is an option
 * that is not given.
 */
case class AdaptiveOptions(
    factor: Option[Double],
    thresholdBytes: Option[Long],
    sliceBytes: Option[Long],
    maxSlices: Option[Int],
    maxRereadFactor: Option[Double],
    minGain: Option[Double])

object AdaptiveOptions {

  private val Factor = "factor"
  private val Threshold = "threshold"
  private val SliceBytes = "slice_bytes"
  private val MaxSlices = "max_slices"
  private val MaxReread = "max_reread_factor"
  private val MinGain = "min_gain"

  val names: Seq[String] = Seq(Factor, Threshold, SliceBytes, MaxSlices, MaxReread, MinGain)

  /** Throws an error for an option with a wrong value. */
  def of(options: TechniqueOptions): AdaptiveOptions = AdaptiveOptions(
    factor = options.double(Factor, least = 1),
    thresholdBytes = options.bytes(Threshold),
    sliceBytes = options.bytes(SliceBytes),
    maxSlices = options.int(MaxSlices, 2, Int.MaxValue),
    maxRereadFactor = options.double(MaxReread, least = 1),
    minGain = options.double(MinGain, least = 1))
}

/**
 * A key with many rows.
 *
 * @param values a literal for every key column.
 * @param leftShare rows with this key on the left, as a fraction of the rows of both sides; None if
 *                  the caller named the key, so that its rows were not counted.
 * @param rightShare the same for the right side.
 */
case class HotKey(
    values: Seq[Expression],
    leftShare: Option[Double] = None,
    rightShare: Option[Double] = None) {

  /** Rows with this key on both sides, as a fraction of all rows; None if not counted. */
  def share: Option[Double] = for (left <- leftShare; right <- rightShare) yield left + right

  override def toString: String = values.mkString("(", ", ", ")")
}

object HotKey {

  /**
   * The keys with more than a share of all rows on one of the sides.
   *
   * @param rows the number of rows of both sides.
   * @param keys each key with its number of rows on the left and on the right.
   */
  def above(share: Double, rows: Double, keys: Seq[(Seq[Expression], Seq[Double])]): Seq[HotKey] =
    for {
      (key, counts) <- keys
      Seq(left, right) = counts.map(_ / math.max(1.0, rows)) if math.max(left, right) > share
    } yield HotKey(key, Some(left), Some(right))
}
