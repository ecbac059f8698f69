package io.github.skewext.rewrite

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.types.{IntegerType, StringType}

class JoinTreeSuite extends AnyFunSuite {

  private val a = AttributeReference("a", IntegerType)()
  private val b = AttributeReference("b", IntegerType, nullable = false)()

  test("expressions that are null if a row is missing") {
    for (e <- Seq(a, b, Add(b, Literal(1)), If(IsNull(a), Literal(null, IntegerType), b)))
      assert(JoinTree.isNullOnNulls(e), e)
  }

  test("expressions that have a value, or claim to have one, if a row is missing") {
    for (e <- Seq(
        IsNull(a),
        Coalesce(Seq(a, Literal(1))),
        KnownNotNull(a),
        Add(KnownNotNull(b), Literal(1)),
        If(IsNull(KnownNotNull(a)), Literal(null, StringType), Literal("x"))))
      assert(!JoinTree.isNullOnNulls(e), e)
  }
}
