package io.github.skewext

import scala.language.implicitConversions

import org.apache.spark.sql.{DataFrame, Dataset}

/**
 * An input of a multi-way join. In Scala a Dataset becomes one, and so does a pair of a Dataset and
 * the names of its key columns, such as `calls -> "device"`.
 *
 * @param keys the names of its key columns; empty if they are those of the join.
 */
final case class JoinInput private[skewext] (
    private[skewext] val frame: DataFrame,
    private[skewext] val keys: Seq[String])

object JoinInput {

  /** An input, with the names of its key columns if they differ from those of the join. */
  def of(input: Dataset[_], keys: String*): JoinInput = JoinInput(input.toDF(), keys)

  implicit def ofDataset(input: Dataset[_]): JoinInput = of(input)

  implicit def ofKeyName(input: (Dataset[_], String)): JoinInput = of(input._1, input._2)

  implicit def ofKeyNames(input: (Dataset[_], Seq[String])): JoinInput = of(input._1, input._2: _*)
}
