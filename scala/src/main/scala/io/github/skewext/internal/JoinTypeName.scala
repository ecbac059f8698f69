package io.github.skewext.internal

import org.apache.spark.sql.catalyst.plans.{ExistenceJoin, JoinType}

/** What a join is called in messages. Spark has no name for the joins that it makes of `EXISTS`. */
object JoinTypeName {
  def of(joinType: JoinType): String = joinType match {
    case _: ExistenceJoin => "EXISTENCE"
    case other => other.sql
  }
}
