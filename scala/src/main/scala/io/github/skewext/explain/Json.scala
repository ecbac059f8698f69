package io.github.skewext.explain

import scala.collection.immutable.ListMap
import scala.util.Try

import org.json4s.jackson.JsonMethods.{compact, parse, render}
import org.json4s.{DefaultFormats, Extraction, Formats, JObject, JString, JValue}

import org.apache.spark.sql.skewext.QueryStatus

/** Writes JSON. None becomes null, so that every object has all its names. */
private[skewext] object Json {

  private implicit val formats: Formats = DefaultFormats.preservingEmptyValues

  /** An object whose fields keep their order. */
  def fields(fields: (String, Any)*): Map[String, Any] = ListMap(fields: _*)

  /** @param value figures and texts, in case classes, sequences, options and maps. */
  def tree(value: Any): JValue = Extraction.decompose(value)

  def text(value: Any): String = compact(render(tree(value)))
}

/**
 * An explanation as JSON, for programs: the fields of [[Explanation]] in snake case. Python returns
 * it from `Explanation.to_dict`.
 */
object ExplanationJson {

  private implicit val formats: Formats = DefaultFormats

  def of(explanation: Explanation): String = Json.text(Json.tree(explanation).snakizeKeys)

  /** The same with the entries of the text, which Python prints. */
  def withEntries(explanation: Explanation): String = {
    val entries = JObject("entries" -> Json.tree(ExplanationText.entries(explanation)))
    Json.text(Json.tree(explanation).snakizeKeys.merge(entries))
  }

  /** The same explanation with other texts. */
  def mapped(explanation: Explanation, text: String => String): Explanation =
    Json
      .tree(explanation)
      .map {
        case JString(old) => JString(text(old))
        case other => other
      }
      .extract[Explanation]

  /** Reads JSON that this version wrote, or a version with the same fields. */
  def read(json: String): Explanation = parse(json).camelizeKeys.extract[Explanation]

  /** The same; None for a log of another version with less data. */
  def readable(json: String): Option[Explanation] = Try(read(json)).toOption

  /** The explanation of a query that has run. */
  def stored(status: QueryStatus, query: Long): Option[Explanation] =
    status.explanation(query).flatMap(readable)
}
