package io.github.skewext

import java.io.ByteArrayOutputStream
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Paths}

import pages.ScalaPage

import org.apache.spark.sql.SparkSession

/** The blocks of docs/scala.md print what the page shows. The build makes sources of them. */
class ScalaPageSuite extends MultiJoinTest {

  private def shown: Seq[String] = {
    val page = Paths.get(sys.props("skewext.root"), "docs", "scala.md")
    val text = new String(Files.readAllBytes(page), UTF_8)
    "(?s)```text\n(.*?)```".r.findAllMatchIn(text).flatMap(m => lines(m.group(1))).toSeq
  }

  private def lines(text: String): Seq[String] = text.linesIterator.filter(_.nonEmpty).toSeq

  private def printed(page: SparkSession => Unit): Seq[String] = {
    val out = new ByteArrayOutputStream
    Console.withOut(out)(page(spark))
    lines(out.toString(UTF_8.name))
  }

  test("the Scala blocks print what the page shows", Slow) {
    assert(shown.nonEmpty && printed(ScalaPage.run) === shown)
  }
}
