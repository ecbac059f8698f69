/**
 * A line of Spark: releases that one jar serves. Not even 4.1 and 4.2 can share one, as constructors
 * and descriptors differ that one text compiles to.
 *
 * @param java the Java release whose bytecode and API the jar uses: the oldest that this Spark runs on
 * @param python the oldest Python for this line: PySpark's, and not below that of our package
 * @param shims the folders `scala-spark-<shim>` of sources that are for this line and not for all
 * @param semanticdb the newest SemanticDB plugin that is published for this Scala version
 * @param iceberg the release for the tests of MERGE; empty if there is none for this line
 * @param delta the release for the tests beside Delta, likewise
 * @param connect the release of the Spark Connect server for tests; empty if PySpark has it inside
 * @param fromPySpark whether Spark's classes are those that the package PySpark brings, as Maven
 *                    repositories do not all have them; then there are none of Spark's tests, and no
 *                    Scala suites run
 */
case class SparkLine(
    line: String,
    spark: String,
    scala: String,
    java: String,
    python: String,
    shims: Seq[String],
    semanticdb: String,
    iceberg: String,
    delta: String,
    connect: String,
    fromPySpark: Boolean = false) {
  def scalaBinary: String = scala.split('.').take(2).mkString(".")
}

/** The one list of lines this project is built for; the first is the default one. */
object SparkVersions {
  // The Makefile and a test read it, too, a line of text for each.
  // format: off
  val all: Seq[SparkLine] = Seq(
    SparkLine("3.5", "3.5.9", "2.12.18", "8", "3.9", Seq("3.5", "3.5-4.0", "3.5-4.1", "iceberg"), "4.8.10", "1.10.0", "3.3.2", "3.5.7"),
    SparkLine("4.0", "4.0.5", "2.13.16", "17", "3.9", Seq("4", "4.0", "3.5-4.0", "3.5-4.1", "4.0-4.2"), "4.14.2", "", "", "", fromPySpark = true),
    SparkLine("4.1", "4.1.2", "2.13.17", "17", "3.10", Seq("4", "4.1", "3.5-4.1", "4.0-4.2", "4.1-4.3", "iceberg"), "4.15.0", "1.12.0", "", ""),
    SparkLine("4.2", "4.2.0", "2.13.18", "17", "3.10", Seq("4", "4.2", "4.0-4.2", "4.1-4.3", "4.2-4.3"), "4.14.2", "", "", ""),
    SparkLine("4.3", "4.3.0", "2.13.18", "17", "3.11", Seq("4", "4.1-4.3", "4.2-4.3", "4.3"), "4.14.2", "", "", "", fromPySpark = true))
  // format: on

  /** The line to build: `-Dspark.line=4.2`, else the default one. */
  def current: SparkLine = sys.props.get("spark.line") match {
    case Some(line) =>
      all
        .find(_.line == line)
        .getOrElse(sys.error(s"No Spark line $line; there are: ${all.map(_.line).mkString(", ")}"))
    case None => all.head
  }

  val scalatest = "3.2.19"
  val scalacheckPlus = "3.2.19.0"
}
