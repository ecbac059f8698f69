package io.github.skewext.technique

/** Spark's own join. */
object PlainJoin extends SkewTechnique {

  override val name: String = "none"

  override def mayRefuse: Boolean = false

  override def plan(request: TechniqueRequest): Either[TechniqueReason.Detailed, TechniquePlan] =
    Right(TechniquePlan(request.sameJoin(), "Spark's own join"))
}
