import java.util.Properties

import sbt._

/** A line of Spark, as spark-lines.properties describes it; `of` gives the value of a key. */
final class SparkLine(val line: String, of: String => String) {
  val spark: String = of("spark")
  val scala: String = of("scala")
  val java: String = of("java")
  val shims: Seq[String] = of("shims").split(' ').toSeq
  val semanticdb: String = of("semanticdb")
  val iceberg: String = of("iceberg")
  val delta: String = of("delta")
  val connect: String = of("connect")
  val fromPySpark: Boolean = of("fromPySpark") == "yes"

  def scalaBinary: String = scala.split('.').take(2).mkString(".")
}

object SparkVersions {
  private val properties: Properties = {
    val read = new Properties
    IO.load(read, file("project/spark-lines.properties"))
    read
  }

  val all: Seq[String] = properties.getProperty("lines").split(' ').toSeq

  /** The line to build: `-Dspark.line=4.2`, else the default. */
  val current: SparkLine = {
    val line = sys.props.getOrElse("spark.line", all.head)
    if (!all.contains(line)) sys.error(s"No Spark line $line; there are: ${all.mkString(", ")}")
    new SparkLine(line, key => properties.getProperty(s"$line.$key", "").trim)
  }

  val scalatest = "3.2.19"
  val scalacheckPlus = "3.2.19.0"
}
