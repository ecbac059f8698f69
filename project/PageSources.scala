import sbt._

/** Test sources of the code blocks of a page, so that the page shows only code that compiles. */
object PageSources {

  def write(page: File, folder: File): Seq[File] = {
    val text = IO.read(page)
    def lines(language: String): Seq[String] =
      s"(?s)```$language\n(.*?)```".r.findAllMatchIn(text).flatMap(_.group(1).linesIterator).toSeq
    val scala = folder / "ScalaPage.scala"
    IO.writeLines(
      scala,
      Seq("package pages", "object ScalaPage {") ++
        ("def run(spark: org.apache.spark.sql.SparkSession): Unit = {" +: lines("scala")) ++
        Seq("}", "}"))
    val java = folder / "JavaPage.java"
    val (imports, body) = lines("java").partition(_.startsWith("import "))
    IO.writeLines(
      java,
      ("package pages;" +: imports) ++ Seq(
        "public class JavaPage {",
        "public static void run(org.apache.spark.sql.SparkSession spark) {") ++
        body ++ Seq("}", "}"))
    Seq(scala, java)
  }
}
