package io.github.skewext

import org.apache.spark.sql.{Column, DataFrame, Dataset}

/**
 * A table of versions of an as-of join, such as
 * `AsOf.of(clicks, "clicked").on("uid").tolerance(lit(5))`. Each method returns a changed copy.
 */
final case class AsOf private[skewext] (
    private[skewext] val frame: DataFrame,
    private[skewext] val time: String,
    private[skewext] val keys: Seq[String] = Nil,
    private[skewext] val spineKeys: Seq[String] = Nil,
    private[skewext] val towards: String = "backward",
    private[skewext] val within: Option[Column] = None,
    private[skewext] val exact: Boolean = true,
    private[skewext] val order: Option[Seq[Column]] = None) {

  /** The names of the key columns, if they differ from those of the join. */
  def on(names: String*): AsOf = copy(keys = names)

  /** The columns of the spine that are compared with the key, if they are not those of the join. */
  def onSpine(names: String*): AsOf = copy(spineKeys = names)

  /**
   * The match: `backward`, the last version at or before the time of the spine, which is the
   * default; `forward`, the first one at or after it; or `nearest`.
   */
  def direction(name: String): AsOf = copy(towards = name)

  /** The largest distance of a match, inclusive: a literal, such as an interval. */
  def tolerance(distance: Column): AsOf = copy(within = Option(distance))

  /** Whether a version at the exact time of the spine matches, as it does by default. */
  def allowExactMatches(allow: Boolean): AsOf = copy(exact = allow)

  /**
   * The order among versions with equal keys and times: the greatest one matches. By default all
   * other columns decide, from left to right.
   */
  def ties(columns: Column*): AsOf = copy(order = Some(columns))
}

object AsOf {

  /** A table of versions, with the name of the column that has the time of each version. */
  def of(versions: Dataset[_], time: String): AsOf = AsOf(versions.toDF(), time)
}
