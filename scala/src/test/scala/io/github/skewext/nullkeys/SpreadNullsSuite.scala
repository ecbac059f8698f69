package io.github.skewext.nullkeys

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

  test("is 0 with a key, otherwise a hash of values and task, also in generated code") {
    for {
      keys <- Seq(Seq(number), Seq(number, text))
      values <- Seq(Nil, Seq(value), Seq(value, text))
    } withClue(s"$keys, $values: ") {
      val spread = SpreadNulls(keys, values)
      val ofRow = generated(spread)
      // Outside of a task the task number is 0, as in the first task.
      val hash = new XxHash64(values :+ Literal(0))
      for (row <- rows) {
        val expected = if (keys.exists(_.eval(row) == null)) hash.eval(row) else 0L
        assert(spread.eval(row) === expected)
        assert(ofRow(row) === expected)
      }
    }
  }

  test("is 0 for all rows above the shuffle, and equal to the expression below it") {
    val spread = SpreadNulls(Seq(number, text), Seq(value))
    val ofRow = generated(spread.settled)
    assert(rows.forall(row => spread.settled.eval(row) == 0L && ofRow(row) == 0L))
    assert(spread.settled.semanticEquals(spread))
    assert(!SpreadNulls(Seq(number), Seq(value)).semanticEquals(spread))
  }

  // Whole-stage code has no row, only a variable for each column.
  test("has the same value in whole-stage code and in a projection") {
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
      // Of 12 rows, 6 have keys without a null.
      assert(rows.count(_.getLong(1) == 0) === 6)
    }
  }
}
