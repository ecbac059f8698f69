package io.github.skewext

import java.io.ByteArrayOutputStream
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Paths}

import pages.{JavaPage, ScalaPage}

import org.apache.spark.sql.SparkSession

/** The blocks of docs/scala.md print what the page shows. The build makes sources of them. */
class ScalaPageSuite extends MultiJoinTest {

  private lazy val (scala, java) = {
    val page = Paths.get(sys.props("skewext.root"), "docs", "scala.md")
    val text = new String(Files.readAllBytes(page), UTF_8)
    text.splitAt(text.indexOf("```java"))
  }

  private def shown(part: String): Seq[String] =
    "(?s)```text\n(.*?)```".r.findAllMatchIn(part).flatMap(m => lines(m.group(1))).toSeq

  private def lines(text: String): Seq[String] = text.linesIterator.filter(_.nonEmpty).toSeq

  private def printed(page: SparkSession => Unit): Seq[String] = {
    val out = new ByteArrayOutputStream
    Console.withOut(out)(page(spark))
    lines(out.toString(UTF_8.name))
  }

  test("the Scala blocks print what the page shows", Slow) {
    assert(shown(scala).nonEmpty && printed(ScalaPage.run) === shown(scala))
  }

  test("the Java block prints what the page shows") {
    assert(shown(java).nonEmpty && printed(JavaPage.run(_)) === shown(java))
  }
}
