package io.github.skewext.explain

import org.scalatest.funsuite.AnyFunSuite

/** The text of explanations, without Spark. */
class ExplanationTextSuite extends AnyFunSuite {

  private def input(position: Int, source: String, role: String = null): ExplainedInput =
    ExplainedInput(position, Option(role), None, source, Nil, Nil, Nil)

  private def join(number: Int, title: String): ExplainedJoin =
    ExplainedJoin(
      number,
      Place.Query,
      title,
      Seq("MultiFullJoin"),
      Origin(Origin.AskedFor, "one operator"),
      Nil,
      None,
      Nil)

  private def skew(status: String, text: String): ExplainedSkew =
    ExplainedSkew("MultiFullJoin", status, text)

  private def scan(number: Int): ExplainedScan =
    ExplainedScan(number, Place.Query, "parquet t", Seq("a", "b"), 8, 2, None, "no condition", None)

  private val streams = skew(ExplainedSkew.Whole, "it streams").copy(advice = Some("Do this."))

  private val explanation = Explanation(
    Seq("A note.", "Another one."),
    Seq(
      join(1, "full outer join of 3 inputs on [k]").copy(
        inputs = Seq(
          input(0, "parquet t0", "optional").copy(key = Seq("k", "l")),
          input(1, "t1", "required").copy(
            narrowedFrom = Some("optional"),
            key = Seq("x"),
            filters = Seq("x > 5", "y = '<b>'"),
            read = Seq("partitions: 3 of 8")),
          input(2, "join 2", "excluded")
            .copy(filters = Seq("z"), hint = Some("BROADCAST not used"))),
        execution = Some(Execution("hash", "spread", 1, 1, Nil, 0)),
        skew = Seq(skew(ExplainedSkew.Split, "1 partition in 4 pieces"))),
      join(2, "SortMergeJoin inner [a = b]").copy(
        place = Place.Cached,
        operators = Seq("SortMergeJoin", "MultiFullJoin"),
        origin =
          Origin(Origin.LeftAlone, "one operator", Some("2 inputs"), advice = Some("Do that.")),
        inputs = Seq(input(0, "t"), input(1, "t2")),
        skew = Seq(
          streams,
          streams,
          skew(ExplainedSkew.NotRun, "not yet").copy(operator = "SortMergeJoin"))),
      join(3, "no shuffle").copy(
        place = Place.Subquery,
        execution = Some(Execution("merged", "none", 0, 0, Nil, 0)),
        skew = Seq(skew(ExplainedSkew.Ignored, "off"))),
      join(4, "in a command").copy(
        place = Place.Command,
        execution = Some(Execution("merged", "none", 2, 1, Seq("array in a column"), 1)))),
    Seq(
      scan(1).copy(partitions = Some(2), advice = Some("Write it anew.")),
      scan(2).copy(place = Place.Cached)))

  private val all = """A note.
    |Another one.
    |Join 1: full outer join of 3 inputs on [k]
    |  asked for: one operator
    |  input 0  optional  parquet t0 [k, l]
    |  input 1  required  t1 [x]             was optional; filter: x > 5, y = '<b>'; """ +
    """read by: partitions: 3 of 8
    |  input 2  excluded  join 2             filter: z; hint: BROADCAST not used
    |  grouping: hash; exchanges: 1 (columnar 1); key sampling: 0
    |  null keys: spread
    |  skew: split, 1 partition in 4 pieces
    |Join 2 (in a cached table): SortMergeJoin inner [a = b]
    |  not rewritten: one operator (2 inputs)
    |    Do that.
    |  input 0  t
    |  input 1  t2
    |  skew of MultiFullJoin: not split: it streams
    |    Do this.
    |  skew of SortMergeJoin: not run: not yet
    |Join 3 (in a subquery): no shuffle
    |  asked for: one operator
    |  grouping: merged; exchanges: none
    |  null keys: none
    |  skew: not looked at: off
    |Join 4 (in a command): in a command
    |  asked for: one operator
    |  grouping: merged; exchanges: 2 (columnar 1; by row: array in a column); key sampling: 1
    |  null keys: none
    |Scan 1: parquet t, 8 buckets by [a, b]
    |  reads 2 of 8 buckets, in 2 partitions: no condition
    |    Write it anew.
    |Scan 2 (in a cached table): parquet t, 8 buckets by [a, b]
    |  reads 2 of 8 buckets: no condition"""

  test("all that the text can say") {
    assert(explanation.toString === all.stripMargin)
  }

  test("nothing to say") {
    assert(ExplanationText.entries(Explanation(Nil, Nil)) === Seq(Seq("No joins.")))
  }
}
