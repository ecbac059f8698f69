package io.github.skewext.join.exec

import scala.util.Try

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.physical.{CoalescedHashPartitioning, Partitioning}

/**
 * The partitioning of a shuffle whose partitions Spark has coalesced. Spark 3.5.0 lacks the class.
 * No operator may mention it: Python reads all methods of an operator, and would fail there.
 */
private[exec] object CoalescedPartitions {

  val exist: Boolean = Try(
    Class.forName(
      "org.apache.spark.sql.catalyst.plans.physical.CoalescedHashPartitioning")).isSuccess

  /** The partitioning by other expressions; None if it is of another kind. */
  def translated(
      partitioning: Partitioning,
      translate: Seq[Expression] => Option[Seq[Expression]]): Option[Partitioning] =
    partitioning match {
      case c: CoalescedHashPartitioning =>
        translate(c.from.expressions).map(e => c.copy(from = c.from.copy(expressions = e)))
      case _ => None
    }
}
