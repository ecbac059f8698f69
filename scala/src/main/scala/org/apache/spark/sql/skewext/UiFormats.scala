package org.apache.spark.sql.skewext

import java.util.Locale

import org.apache.spark.ui.UIUtils
import org.apache.spark.util.Utils

/** Formats figures like Spark's UI. Lives here because the functions are `private[spark]`. */
object UiFormats {

  def duration(milliseconds: Long): String = UIUtils.formatDuration(milliseconds)

  def time(milliseconds: Long): String = UIUtils.formatDate(milliseconds)

  def bytes(number: Long): String = Utils.bytesToString(number)

  def number(number: Long): String = "%,d".formatLocal(Locale.US, number)

  /** For example, `1,234 rows`. */
  def counted(count: Long, noun: String): String =
    s"${number(count)} $noun${if (count == 1) "" else "s"}"
}
