package io.github.skewext.technique

/** Spark's join as it is. */
object PlainJoin extends SkewTechnique {

  override val name: String = "none"

  override def plan(request: TechniqueRequest): Either[TechniqueReason.Given, TechniquePlan] = {
    val join = request.join
    val same = request.joined(join.left, join.right, join.joinType, join.condition)
    Right(TechniquePlan(same, "Spark's join as it is"))
  }
}
