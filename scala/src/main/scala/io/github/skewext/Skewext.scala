package io.github.skewext

import java.util.{List => JList}

import scala.collection.JavaConverters._

import io.github.skewext.Joins.listed

import org.apache.spark.sql.{Column, DataFrame, Dataset}

/** The functions of skewext for Java. Scala has them as methods of Datasets: [[implicits]]. */
object Skewext {

  /** Full outer join of all inputs on one key, in one pass. */
  def multiFullJoin(inputs: JList[JoinInput], on: JList[String]): DataFrame =
    multiJoin(inputs, on, Seq("full").asJava, null, null)

  /**
   * Join of all inputs on one key, in one pass.
   *
   * @param how `full`, `left` or `inner`; or a role for each input: `optional`, `required` or
   *            `excluded`. Null is `full`.
   * @param suffixes null, or one for each input, which may be null: appended to names of its columns
   *                 that another input has, too.
   * @param indicator null, or the name of a last column with the positions of the inputs that have
   *                  the key.
   */
  def multiJoin(
      inputs: JList[JoinInput],
      on: JList[String],
      how: JList[String],
      suffixes: JList[String],
      indicator: String): DataFrame =
    Joins.multiJoin(
      inputs.asScala.toSeq,
      on.asScala.toSeq,
      listed(how).getOrElse(Seq("full")),
      listed(suffixes),
      Option(indicator))

  /**
   * Join on columns with the same names, by a technique against skewed keys.
   *
   * @param how null is `inner`.
   * @param technique null is `auto`.
   */
  def skewJoin(
      left: Dataset[_],
      right: Dataset[_],
      on: JList[String],
      how: String,
      technique: Technique): DataFrame =
    skewJoin(left, right, Left(on.asScala.toSeq), how, technique)

  /** The same on a condition. */
  def skewJoin(
      left: Dataset[_],
      right: Dataset[_],
      on: Column,
      how: String,
      technique: Technique): DataFrame =
    skewJoin(left, right, Right(on), how, technique)

  private def skewJoin(
      left: Dataset[_],
      right: Dataset[_],
      on: Either[Seq[String], Column],
      how: String,
      technique: Technique): DataFrame =
    Joins.skewJoin(
      left.toDF(),
      right.toDF(),
      on,
      Option(how).getOrElse("inner"),
      Option(technique).getOrElse(Technique("auto")))

  /**
   * Join of each row of the spine with one version of each other table: the one that was valid at
   * its time.
   *
   * @param how `left` keeps rows without a match, `inner` does not. Null is `left`.
   * @param suffixes null, or one for the spine and for each table; without it, duplicate names are an
   *                 error.
   */
  def asOfJoin(
      spine: Dataset[_],
      versions: JList[AsOf],
      on: JList[String],
      time: String,
      how: String,
      suffixes: JList[String]): DataFrame =
    Joins.asOfJoin(
      spine.toDF(),
      versions.asScala.toSeq,
      on.asScala.toSeq,
      time,
      Option(how).getOrElse("left"),
      listed(suffixes))

  /**
   * The latest row of each key.
   *
   * @param by the row with the greatest value is the latest; a column with an order takes the first
   *           row in that order.
   * @param ties null, or the same for rows that are equal in `by`; by default all other columns
   *             decide.
   */
  def latest(
      rows: Dataset[_],
      on: JList[String],
      by: JList[Column],
      ties: JList[Column]): DataFrame =
    Joins.latest(rows.toDF(), on.asScala.toSeq, by.asScala.toSeq, listed(ties))

  /** How the joins of a query are planned, and why, as text. It plans the query and runs nothing. */
  def explain(query: Dataset[_]): String = Joins.explain(query.toDF()).toString
}
