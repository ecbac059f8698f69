package io.github.skewext

import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path, Paths}

import scala.collection.JavaConverters._

import org.scalatest.funsuite.AnyFunSuite

/** Holds the imports of all sources against the drawing in docs/architecture.md. */
class LayersSuite extends AnyFunSuite {

  private val root = Paths.get(sys.props("skewext.root"))
  private val sources = root.resolve("scala/src/main")

  private def text(file: Path): String = new String(Files.readAllBytes(file), UTF_8)

  /** A place in the drawing: the line, counted from the top, and the room in it. */
  private case class Place(line: Int, room: Int) {
    def mayImport(other: Place): Boolean = other.line > line || other == this
  }

  /** The place of each package. */
  private val drawn: Map[String, Place] = {
    val page = text(root.resolve("docs/architecture.md"))
    val drawing = page.split("```layers\n")(1).split("```")(0)
    val places = for {
      (line, number) <- drawing.linesIterator.toVector.zipWithIndex
      (room, place) <- line.split("  ")(0).split(" \\| ").toVector.zipWithIndex
      name <- room.split(' ')
    } yield {
      val full = if (name.contains("spark")) name else s"$Ours.$name".stripSuffix(".door")
      full -> Place(number, place)
    }
    places.toMap
  }

  private lazy val Ours = "io.github.skewext"

  /** The package of what the build generates, which is not among the sources. */
  private lazy val Generated = s"$Ours.internal"

  private val files: Seq[Path] = {
    val all = Files.walk(sources)
    try all.iterator.asScala.filter(_.toString.endsWith(".scala")).toVector
    finally all.close()
  }

  /** Without comments: they may name what is above. */
  private def code(file: Path): String =
    text(file).replaceAll("(?s)/\\*.*?\\*/", "").replaceAll("//[^\n]*", "")

  private def packageOf(code: String): String = "(?m)^package ([\\w.]+)".r
    .findFirstMatchIn(code)
    .map(_.group(1))
    .get

  private def isOurs(name: String): Boolean =
    name.startsWith(Ours) || name.matches("org\\.apache\\.spark\\.sql\\.(execution\\.)?skewext.*")

  /** The packages that a file names, in imports or in full. */
  private def named(code: String): Set[String] = "[a-z]\\w*(?:\\.[a-z]\\w*)+".r
    .findAllIn(code.replaceAll("\"(?:\\\\.|[^\"\\\\\n])*\"", ""))
    .filter(name => isOurs(name) && name != Generated)
    .toSet

  test("every package is in the drawing, and the drawing names no other") {
    assert(files.map(f => packageOf(code(f))).toSet === drawn.keySet)
  }

  test("a package imports only its own room, and what stands in lines below its own") {
    val wrong = for {
      file <- files
      source = code(file)
      own = packageOf(source)
      other <- named(source)
      if other != own && !drawn.get(other).exists(drawn(own).mayImport)
    } yield s"${root.relativize(file)} names $other"
    assert(wrong.isEmpty, wrong.sorted.mkString("\n", "\n", ""))
  }
}
