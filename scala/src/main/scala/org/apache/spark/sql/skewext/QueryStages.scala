package org.apache.spark.sql.skewext

import java.util.concurrent.atomic.AtomicReference

import scala.util.Try

import org.apache.spark.sql.execution.adaptive.{ExchangeQueryStageExec, QueryStageExec}

/** Ends stages of a query as adaptive execution does after an error. */
object QueryStages {

  /** A further execution of the plan throws the same error. */
  def fail(stage: ExchangeQueryStageExec, error: Throwable): Unit = {
    // Spark cancels all stages after an error, whatever happens to one of them.
    Try(SparkShims.cancel(stage, error.getMessage))
    // Visible in the package of adaptive execution only.
    Try(errorOf.invoke(stage).asInstanceOf[AtomicReference[Option[Throwable]]].set(Some(error)))
  }

  private lazy val errorOf = classOf[QueryStageExec].getMethod("error")
}
