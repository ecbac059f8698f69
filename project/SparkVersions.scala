/**
 * The one list of Spark lines this project is built for. Everything that depends on a version (the
 * jar's name, the Scala version, the folder of shims, the libraries of the tests) reads it here.
 */
case class SparkLine(line: String, spark: String, scala: String, iceberg: String) {
  def scalaBinary: String = scala.split('.').take(2).mkString(".")
}

object SparkVersions {
  val all: Seq[SparkLine] = Seq(
    SparkLine(line = "3.5", spark = "3.5.9", scala = "2.12.18", iceberg = "1.10.0"))

  /** The line to build: `-Dspark.line=3.5`, else the first of the list. */
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
