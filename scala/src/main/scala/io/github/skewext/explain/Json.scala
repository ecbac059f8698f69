package io.github.skewext.explain

import scala.collection.immutable.ListMap

import org.json4s.jackson.JsonMethods.{compact, render}
import org.json4s.{DefaultFormats, Extraction, Formats, JValue}

/** Writes JSON. None becomes null, so that every object has all its names. */
private[skewext] object Json {

  private implicit val formats: Formats = DefaultFormats.preservingEmptyValues

  /** An object whose fields keep their order. */
  def fields(fields: (String, Any)*): Map[String, Any] = ListMap(fields: _*)

  /** @param value figures and texts, in case classes, sequences, options and maps. */
  def tree(value: Any): JValue = Extraction.decompose(value)

  def text(value: Any): String = compact(render(tree(value)))
}
