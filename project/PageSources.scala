import sbt._

/** A test source of the code blocks of a page, so that the page shows only code that compiles. */
object PageSources {

  def write(page: File, folder: File): Seq[File] = {
    val blocks = "(?s)```scala\n(.*?)```".r.findAllMatchIn(IO.read(page))
    val source = folder / "ScalaPage.scala"
    IO.writeLines(
      source,
      Seq("package pages", "object ScalaPage {") ++
        ("def run(spark: org.apache.spark.sql.SparkSession): Unit = {" +:
          blocks.flatMap(_.group(1).linesIterator).toSeq) ++
        Seq("}", "}"))
    Seq(source)
  }
}
