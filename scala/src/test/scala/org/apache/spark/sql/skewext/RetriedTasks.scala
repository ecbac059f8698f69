package org.apache.spark.sql.skewext

import org.apache.spark.SparkContext
import org.apache.spark.sql.test.{SharedSparkSession, TestSparkSession}

/**
 * Tasks may fail, as on a cluster; the first failure in local mode is usually the last. Lives here
 * because `TestSparkSession` is `private[spark]`.
 */
trait RetriedTasks extends SharedSparkSession {

  override protected def createSparkSession: TestSparkSession = {
    TestShims.forgetSessions()
    new TestSparkSession(new SparkContext("local[2,4]", getClass.getSimpleName, sparkConf))
  }
}
