package io.github.skewext.shuffle

import org.apache.spark.api.plugin.{DriverPlugin, ExecutorPlugin, SparkPlugin}

/** A plugin that changes nothing, as those that monitor. */
class NoPlugin extends SparkPlugin {
  override def driverPlugin(): DriverPlugin = new DriverPlugin {}
  override def executorPlugin(): ExecutorPlugin = new ExecutorPlugin {}
}
