package io.github.skewext.technique.hint

import java.util.Locale

import scala.util.Try

import org.apache.spark.network.util.JavaUtils
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
