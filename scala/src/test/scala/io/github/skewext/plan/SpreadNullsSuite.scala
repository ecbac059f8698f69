package io.github.skewext.plan

import io.github.skewext.MultiJoinTest

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen.GenerateUnsafeProjection
import org.apache.spark.sql.catalyst.plans.logical.Project
import org.apache.spark.sql.execution.{ProjectExec, WholeStageCodegenExec}
import org.apache.spark.sql.skewext.SqlInternals
import org.apache.spark.sql.types.{IntegerType, LongType, StringType}
import org.apache.spark.unsafe.types.UTF8String

class SpreadNullsSuite extends MultiJoinTest {

  private val number = BoundReference(0, LongType, nullable = true)
  private val text = BoundReference(1, StringType, nullable = true)
  private val value = BoundReference(2, IntegerType, nullable = true)

  private val rows = for {
    number <- Seq[Any](null, 0L, 7L)
    text <- Seq(null, "", "a")
    value <- Seq[Any](null, 1, 2)
  } yield InternalRow(number, if (text == null) null else UTF8String.fromString(text), value)

  private def generated(e: Expression): InternalRow => Long = {
    val projection = GenerateUnsafeProjection.generate(Seq(e))
    projection(_).getLong(0)
  }

  test("0 with a key, else a hash of the values and the task, in generated code and without") {
    for {
      keys <- Seq(Seq(number), Seq(number, text))
      values <- Seq(Nil, Seq(value), Seq(value, text))
    } withClue(s"$keys, $values: ") {
      val spread = SpreadNulls(keys, values)
      val ofRow = generated(spread)
      // Not in a task, as in the first one.
      val hash = new XxHash64(values :+ Literal(0))
      for (row <- rows) {
        val expected = if (keys.exists(_.eval(row) == null)) hash.eval(row) else 0L
        assert(spread.eval(row) === expected)
        assert(ofRow(row) === expected)
      }
    }
  }

  test("behind the shuffle 0 for all rows, and the same expression") {
    val spread = SpreadNulls(Seq(number, text), Seq(value))
    val ofRow = generated(spread.settled)
    assert(rows.forall(row => spread.settled.eval(row) == 0L && ofRow(row) == 0L))
    assert(spread.settled.semanticEquals(spread))
    assert(!SpreadNulls(Seq(number), Seq(value)).semanticEquals(spread))
  }

  // There is no row there, only a variable for each column.
  test("in the code of a whole stage as in a projection") {
    val table = spark
      .range(0, 12, 1, 2)
      .selectExpr(
        "if(id % 3 = 0, null, id) k",
        "if(id % 5 = 0, null, cast(id as string)) s",
        "id v")
    val Seq(k, s, v) = table.queryExecution.analyzed.output
    val spread = Alias(SpreadNulls(Seq(k, s), Seq(v, s)), "spread")()
    def found() =
      SqlInternals.dataFrame(spark, Project(Seq(v, spread), table.queryExecution.analyzed))
    inGeneratedCode {
      val df = found()
      val rows = df.collect()
      val stages = df.queryExecution.executedPlan.collect { case stage: WholeStageCodegenExec =>
        stage
      }
      assert(stages.exists(_.exists {
        case project: ProjectExec => project.projectList.exists(_.exists(SpreadNulls.isOne))
        case _ => false
      }))
      withSQLConf(Interpreted: _*)(assert(found().collect().toSet === rows.toSet))
      // Those of keys that are not null, of 12.
      assert(rows.count(_.getLong(1) == 0) === 6)
    }
  }
}
