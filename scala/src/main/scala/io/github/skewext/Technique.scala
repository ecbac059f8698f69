package io.github.skewext

import scala.language.implicitConversions

import org.apache.spark.sql.Column
import org.apache.spark.sql.functions.lit

/**
 * A technique of a skew join with its options, such as `Technique.of("salted").option("salts", 8)`.
 * In Scala its name alone becomes one. Each method returns a changed copy.
 */
final case class Technique private[skewext] (
    private[skewext] val name: String,
    private[skewext] val options: Map[String, String] = Map.empty,
    private[skewext] val keys: Option[Seq[Seq[Column]]] = None) {

  /** An option, under its name in SQL: a number or a text. */
  def option(name: String, value: Any): Technique = copy(options = options + (name -> s"$value"))

  /** Keys with many rows: a value for each, or a `Seq` of values if the key has several columns. */
  def hotKeys(values: Any*): Technique = copy(keys = Some(values.map {
    case key: Seq[_] => key.map(lit)
    case value => Seq(lit(value))
  }))
}

object Technique {

  implicit def of(name: String): Technique = Technique(name)
}
