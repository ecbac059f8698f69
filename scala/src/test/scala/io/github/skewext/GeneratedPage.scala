package io.github.skewext

import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Paths}

/**
 * A program that writes a page of the documentation, or checks that it is up to date:
 * `<name> [--check] <file>`.
 *
 * @param source what in the code the page is made of
 */
abstract class GeneratedPage(source: String) {

  /** The page as it should be, from the one that is there; nothing if there is none. */
  protected def page(current: Option[String]): String

  def main(args: Array[String]): Unit = args match {
    case Array("--check", file) =>
      val current = read(file)
      if (!current.contains(page(current))) {
        System.err.println(s"$file is not what $source give; run `make docs`.")
        sys.exit(1)
      }
    case Array(file) =>
      Files.write(Paths.get(file), page(read(file)).getBytes(UTF_8))
    case _ =>
      System.err.println(s"usage: ${getClass.getSimpleName.stripSuffix("$")} [--check] <file>")
      sys.exit(2)
  }

  private def read(file: String): Option[String] = {
    val path = Paths.get(file)
    if (Files.exists(path)) Some(new String(Files.readAllBytes(path), UTF_8)) else None
  }
}
