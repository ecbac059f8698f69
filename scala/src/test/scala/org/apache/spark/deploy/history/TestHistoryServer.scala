package org.apache.spark.deploy.history

import java.io.File

import org.apache.spark.{SecurityManager, SparkConf}

/** Spark's history server; lives here because what reads logs for it is `private[history]`. */
object TestHistoryServer {

  /** Runs `body` with the address of a server of the logs in a folder. */
  def serving[T](folder: File)(body: String => T): T = {
    val conf = new SparkConf(false)
      .set("spark.history.fs.logDirectory", folder.toURI.toString)
      .set("spark.history.fs.update.interval", "1s")
    val provider = new FsHistoryProvider(conf)
    val server = new HistoryServer(conf, provider, new SecurityManager(conf), 0)
    server.bind()
    provider.start()
    try body(s"http://localhost:${server.boundPort}")
    finally server.stop()
  }
}
