package org.apache.spark.sql.execution.skewext

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.adaptive.BroadcastQueryStageExec
import org.apache.spark.sql.execution.joins.{HashedRelation, HashedRelationWithAllNullKeys}

/** Here because Spark shows its hash tables to `org.apache.spark.sql.execution` alone. */
object BroadcastKeys {

  /**
   * The keys in a hash table that has been broadcast, as the table has them: integral ones may be
   * packed into a long. A key may come more than once. Rows are one object.
   */
  def of(stage: BroadcastQueryStageExec): Option[Iterator[InternalRow]] =
    stage.executeBroadcast[Any]().value match {
      case HashedRelationWithAllNullKeys => None
      case table: HashedRelation => Some(table.keys())
      case _ => None
    }
}
