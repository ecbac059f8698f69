package io.github.skewext.join

import org.apache.spark.sql.catalyst.plans.{ExistenceJoin, JoinType}

/**
 * The name of a join type in messages. Spark has no name for the joins that it creates for
 * `EXISTS`.
 */
object JoinTypeName {
  def of(joinType: JoinType): String = joinType match {
    case _: ExistenceJoin => "EXISTENCE"
    case other => other.sql
  }
}
