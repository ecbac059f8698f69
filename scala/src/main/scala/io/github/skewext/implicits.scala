package io.github.skewext

import io.github.skewext.explain.Explanation

import org.apache.spark.sql.{Column, DataFrame, Dataset}

/** The functions of skewext as methods of Datasets: `import io.github.skewext.implicits._`. */
object implicits {

  implicit class SkewextDataset(private val self: Dataset[_]) extends AnyVal {

    /**
     * Full outer join with any number of other inputs on one key, in one pass. The result has the
     * key columns, then the other columns of every input in order.
     *
     * @param on the names of the key columns.
     * @param suffixes one for each input, this one included: appended to names of its columns that
     *                 another input has, too. If empty, the result may have duplicate names.
     * @param indicator if not empty, the name of a last column with the positions of the inputs that
     *                  have the key.
     */
    def multiFullJoin(
        others: Seq[JoinInput],
        on: Seq[String],
        suffixes: Seq[String] = Nil,
        indicator: String = ""): DataFrame =
      multiJoin(others, on, Seq("full"), suffixes, indicator)

    /**
     * Join with any number of other inputs on one key, in one pass.
     *
     * @param how `full`, `left` or `inner`; or a role for each input, this one included: `optional`,
     *            `required` or `excluded`.
     */
    def multiJoin(
        others: Seq[JoinInput],
        on: Seq[String],
        how: Seq[String],
        suffixes: Seq[String] = Nil,
        indicator: String = ""): DataFrame =
      Joins.multiJoin(
        JoinInput.of(self) +: others,
        on,
        how,
        Option(suffixes).filter(_.nonEmpty),
        Option(indicator).filter(_.nonEmpty))

    /** Join on columns with the same names, by a technique against skewed keys. */
    def skewJoin(
        right: Dataset[_],
        on: Seq[String],
        how: String = "inner",
        technique: Technique = Technique("auto")): DataFrame =
      Joins.skewJoin(self.toDF(), right.toDF(), Left(on), how, technique)

    /** Join on a condition, by a technique against skewed keys. */
    def skewJoin(right: Dataset[_], on: Column, how: String, technique: Technique): DataFrame =
      Joins.skewJoin(self.toDF(), right.toDF(), Right(on), how, technique)

    /**
     * Join of each row with one version of each other table: the one that was valid at its time.
     *
     * @param on the names of the key columns.
     * @param time the name of the column with the time of a row.
     * @param how `left` keeps rows without a match, `inner` does not.
     * @param suffixes as for [[multiFullJoin]]; if empty, duplicate names are an error.
     */
    def asOfJoin(
        versions: Seq[AsOf],
        on: Seq[String],
        time: String,
        how: String = "left",
        suffixes: Seq[String] = Nil): DataFrame =
      Joins.asOfJoin(self.toDF(), versions, on, time, how, Option(suffixes).filter(_.nonEmpty))

    /**
     * The latest row of each key.
     *
     * @param by the row with the greatest value is the latest; a column with an order, such as
     *           `$"price".asc`, takes the first row in that order.
     * @param ties the same for rows that are equal in `by`; if empty, all other columns decide.
     */
    def latest(on: Seq[String], by: Seq[Column], ties: Seq[Column] = Nil): DataFrame =
      Joins.latest(self.toDF(), on, by, Option(ties).filter(_.nonEmpty))

    /** How the joins of this query are planned, and why. It plans the query and runs nothing. */
    def explainJoins: Explanation = Joins.explain(self.toDF())
  }
}
