package io.github.skewext.explain

import org.json4s.jackson.JsonMethods.{compact, parse, render}
import org.json4s.{DefaultFormats, Formats, JArray, JInt, JNull, JObject, JString, JValue}

/** An explanation as JSON, for programs. Python returns it from `Explanation.to_dict`. */
object ExplanationJson {

  private implicit val formats: Formats = DefaultFormats

  def of(explanation: Explanation): String = compact(render(tree(explanation)))

  /** @param shown a function from each text to its written form. */
  def of(explanation: Explanation, shown: String => String): String = {
    val written = tree(explanation).map {
      case JString(text) => JString(shown(text))
      case other => other
    }
    compact(render(written))
  }

  /** Reads JSON that this version wrote, or a version with the same fields. */
  def read(json: String): Explanation = parse(json).camelizeKeys.extract[Explanation]

  private def tree(explanation: Explanation): JValue = JObject(
    "notes" -> strings(explanation.notes),
    "joins" -> JArray(explanation.joins.map(of(_)).toList),
    "scans" -> JArray(explanation.scans.map(of(_)).toList))

  private def of(join: ExplainedJoin): JObject = JObject(
    "number" -> JInt(join.number),
    "place" -> JString(join.place),
    "title" -> JString(join.title),
    "operators" -> strings(join.operators),
    "origin" -> JObject(
      "status" -> JString(join.origin.status),
      "text" -> JString(join.origin.text),
      "detail" -> optional(join.origin.detail),
      "advice" -> optional(join.origin.advice)),
    "inputs" -> JArray(join.inputs.map(of(_)).toList),
    "execution" -> join.execution.fold[JValue](JNull)(of(_)),
    "skew" -> JArray(join.skew.map(of(_)).toList))

  private def of(input: ExplainedInput): JValue = JObject(
    "position" -> JInt(input.position),
    "role" -> optional(input.role),
    "narrowed_from" -> optional(input.narrowedFrom),
    "source" -> JString(input.source),
    "key" -> strings(input.key),
    "filters" -> strings(input.filters),
    "pushed" -> strings(input.pushed),
    "read" -> strings(input.read),
    "hint" -> optional(input.hint))

  private def of(execution: Execution): JValue = JObject(
    "rows" -> JString(execution.rows),
    "null_keys" -> JString(execution.nullKeys),
    "exchanges" -> JInt(execution.exchanges),
    "bulk" -> JInt(execution.bulk),
    "columns" -> JInt(execution.columns),
    "by_row" -> strings(execution.byRow),
    "counted" -> JInt(execution.counted))

  private def of(skew: ExplainedSkew): JValue = JObject(
    "operator" -> JString(skew.operator),
    "status" -> JString(skew.status),
    "text" -> JString(skew.text),
    "partitions" -> JInt(skew.partitions),
    "pieces" -> JInt(skew.pieces),
    "residuals" -> JInt(skew.residuals),
    "advice" -> optional(skew.advice))

  private def of(scan: ExplainedScan): JValue = JObject(
    "number" -> JInt(scan.number),
    "place" -> JString(scan.place),
    "source" -> JString(scan.source),
    "by" -> strings(scan.by),
    "buckets" -> JInt(scan.buckets),
    "read" -> JInt(scan.read),
    "partitions" -> scan.partitions.fold[JValue](JNull)(JInt(_)),
    "why" -> JString(scan.why),
    "advice" -> optional(scan.advice))

  private def strings(values: Seq[String]): JValue = JArray(values.map(JString(_)).toList)

  /** A string or null, so that every entry has all names. */
  private def optional(value: Option[String]): JValue =
    value.fold[JValue](JNull)(JString(_))
}
