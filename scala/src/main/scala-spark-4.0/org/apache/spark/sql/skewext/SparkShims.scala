package org.apache.spark.sql.skewext

import org.apache.spark.sql.execution.{EmptyRelationExec, LeafExecNode}

/** Code that differs between lines of Spark. Each line has its own object. */
object SparkShims extends Spark4Shims with Until40Shims with Until42Shims {

  /** Whether the node holds its rows: a query without FROM is an RDD of one row. */
  def hasFixedRows(leaf: LeafExecNode): Boolean = leaf match {
    case _: EmptyRelationExec => true
    case _ => leaf.nodeName == "Scan OneRowRelation"
  }
}
