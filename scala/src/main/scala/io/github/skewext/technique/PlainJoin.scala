package io.github.skewext.technique

/** Spark's join as it is. */
object PlainJoin extends SkewTechnique {

  override val name: String = "none"

  override def plan(request: TechniqueRequest): Either[TechniqueReason.Given, TechniquePlan] =
    Right(TechniquePlan(request.sameJoin(), "Spark's join as it is"))
}
