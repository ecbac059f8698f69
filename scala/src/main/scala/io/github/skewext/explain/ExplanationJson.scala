package io.github.skewext.explain

import org.json4s.jackson.JsonMethods.parse
import org.json4s.{DefaultFormats, Formats, JString}

/**
 * An explanation as JSON, for programs: the fields of [[Explanation]] in snake case. Python returns
 * it from `Explanation.to_dict`.
 */
object ExplanationJson {

  private implicit val formats: Formats = DefaultFormats

  /** @param shown a function from each text to its written form. */
  def of(explanation: Explanation, shown: String => String = identity): String =
    Json.text(Json.tree(explanation).snakizeKeys.map {
      case JString(text) => JString(shown(text))
      case other => other
    })

  /** Reads JSON that this version wrote, or a version with the same fields. */
  def read(json: String): Explanation = parse(json).camelizeKeys.extract[Explanation]
}
