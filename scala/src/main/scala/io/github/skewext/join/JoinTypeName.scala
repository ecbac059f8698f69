package io.github.skewext.join

import java.util.Locale

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

  /** For example, `left outer`. */
  def lower(joinType: JoinType): String = of(joinType).toLowerCase(Locale.ROOT)
}
