package io.github.skewext.inputs

import org.apache.spark.sql.internal.SQLConf

/** The names of columns in the result of a join. Inputs may have thousands of columns. */
private[skewext] object OutputNames {

  /** The same for names that Spark does not distinguish. */
  def spelling(name: String): String =
    if (SQLConf.get.caseSensitiveAnalysis) name
    else name.map(c => Character.toLowerCase(Character.toUpperCase(c)))

  /**
   * The names of the columns of each input. A name that several inputs have gets a suffix.
   *
   * @param suffixes one for each input; null is none.
   */
  def suffixed(inputs: Seq[Seq[String]], suffixes: Seq[String]): Seq[Seq[String]] = {
    val inputsOf = inputs.flatMap(_.map(spelling).distinct).groupBy(identity)
    inputs.zip(suffixes).map { case (names, suffix) =>
      names.map(name =>
        if (inputsOf(spelling(name)).size > 1) name + Option(suffix).mkString else name)
    }
  }

  /** The first name that occurs twice. */
  def repeated(names: Seq[String]): Option[String] = {
    val seen = scala.collection.mutable.HashSet.empty[String]
    names.find(name => !seen.add(spelling(name)))
  }
}
