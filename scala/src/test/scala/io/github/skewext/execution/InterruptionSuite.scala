package io.github.skewext.execution

import io.github.skewext.execution.grouping.{GroupingSettings, JoinKeys}
import io.github.skewext.plan.InputRole
import io.github.skewext.plan.InputRole.{Excluded, Required}

import org.apache.spark.TaskKilledException
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BoundReference, UnsafeProjection}
import org.apache.spark.sql.execution.metric.SQLMetrics
import org.apache.spark.sql.skewext.{TestMemory, TestTask}
import org.apache.spark.sql.test.SharedSparkSession
import org.apache.spark.sql.types.{DataType, LongType}

/** A task that is killed while all that it needs is in its memory. */
class InterruptionSuite extends SharedSparkSession {

  // It warns of the threads of Spark's own pools.
  override protected def doThreadPostAudit(): Unit = ()

  private val types: Seq[DataType] = Seq(LongType, LongType)

  private def join(role: InputRole): MultiJoinTask = {
    val keys = Seq.fill(2)(Seq(BoundReference(0, LongType, nullable = true)))
    def metric = SQLMetrics.createMetric(spark.sparkContext, "rows")
    MultiJoinTask(
      inputTypes = Seq(types, types),
      keys = JoinKeys(keys, 64),
      roles = Seq(Required, role),
      output = Seq(InputColumn(0, 1, LongType, nullable = true)),
      makesRows = true,
      withIndicator = false,
      ordered = None,
      grouping = GroupingSettings(sortAlways = false, Long.MaxValue, 4096),
      metrics = MultiJoinMetrics(metric, Seq(metric, metric), metric, metric, metric, metric))
  }

  private def rows(n: Int, keys: Int): Iterator[InternalRow] = {
    val projection = UnsafeProjection.create(types.toArray)
    Iterator.tabulate(n)(i => projection(InternalRow((i % keys).toLong, i.toLong)))
  }

  test("a killed task ends while the combinations of one key come out") {
    TestTask.run(TestMemory.limited(1 << 26)) { context =>
      val joined =
        join(Required)(0, Array(() => rows(1000, keys = 1), () => rows(1000, keys = 1)))
      assert(joined.hasNext)
      TestTask.kill(context)
      val more = joined.map(_ => 1).take(1000000)
      var seen = 0
      intercept[TaskKilledException](more.foreach(seen += _))
      assert(seen <= MultiJoinIterator.StepsUnchecked)
    }
  }

  test("a killed task ends where no key comes out") {
    val n = 4 * MultiJoinIterator.StepsUnchecked
    TestTask.run(TestMemory.limited(1 << 26)) { context =>
      val joined =
        join(Excluded)(0, Array(() => rows(n, keys = n), () => rows(n, keys = n)))
      TestTask.kill(context)
      intercept[TaskKilledException](joined.hasNext)
    }
  }
}
