package io.github.skewext.technique

import java.util.Locale

import scala.collection.mutable

import io.github.skewext.platform.RunsIfDisabled
import io.github.skewext.technique.hint.{TechniqueHint, TechniqueOptions}

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.analysis.{UnresolvedAttribute, UnresolvedRelation}
import org.apache.spark.sql.catalyst.expressions.{Alias, CurrentUser, Literal, NamedExpression}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.util.quoteIdentifier

/**
 * Resolves the hint for a join by a technique: `SKEWEXT_JOIN(t, salted, 'salts=8')` in SQL, or
 * `df.hint("skewext_join", "salted", "salts=8")`. Like `BROADCAST(t)`, it applies to the join that has
 * the relation as a side. A wrong hint changes nothing, and Spark logs a warning.
 */
object ResolveSkewJoinHints extends Rule[LogicalPlan] with RunsIfDisabled {

  val Name = "SKEWEXT_JOIN"

  override def apply(plan: LogicalPlan): LogicalPlan =
    plan.resolveOperatorsUp {
      // Spark merges the hints of a side, the topmost first. Only our hint keeps the other one.
      case ResolvedHint(ResolvedHint(child, ours: TechniqueHint), sparks)
          if !sparks.isInstanceOf[TechniqueHint] =>
        ResolvedHint(ResolvedHint(child, sparks), ours)
      case hint: UnresolvedHint
          if hint.name.equalsIgnoreCase(Name) && !hint.exists(_.isInstanceOf[UnresolvedRelation]) =>
        resolve(hint)
      case join: Join if join.resolved => join.mapChildren(knowing(_, join))
    }

  /** Adds the join to the hints of its side: those that Spark will give to the join. */
  private def knowing(side: LogicalPlan, join: Join): LogicalPlan = side match {
    case ResolvedHint(child, hint: TechniqueHint) =>
      hint.content match {
        case wanted: TechniqueHint.Wanted if wanted.called.isEmpty =>
          val content = wanted.copy(called = TechniqueRequest.called(join))
          val known = ResolvedHint(child, TechniqueHint(content, hint.strategy))
          known.copyTagsFrom(side)
          known
        case _ => side
      }
    case unary: UnaryNode => unary.mapChildren(knowing(_, join))
    case other => other
  }

  /**
   * Turns the names in hints into text, before Spark resolves those that are also names of columns.
   * Spark 3.5 has no such early rules.
   */
  object KeepNames extends Rule[LogicalPlan] with RunsIfDisabled {

    override val ruleName: String = ResolveSkewJoinHints.ruleName

    override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperatorsUp {
      case hint: UnresolvedHint if hint.name.equalsIgnoreCase(Name) =>
        hint.copy(parameters = hint.parameters.map {
          case name: UnresolvedAttribute =>
            Literal(name.nameParts.map(quoteIdentifier).mkString("."))
          case other => other
        })
    }
  }

  private def resolve(hint: UnresolvedHint): LogicalPlan = wantedBy(hint) match {
    case Some((wanted, relations)) if relations.isEmpty =>
      ResolvedHint(hint.child, TechniqueHint(wanted))
    case Some((wanted, relations)) =>
      val found = mutable.Set.empty[Seq[String]]
      val hinted = onRelations(hint.child, wanted, relations, found)
      conf.hintErrorHandler.hintRelationsNotFound(
        hint.name,
        hint.parameters,
        relations.toSet -- found)
      hinted
    case None =>
      conf.hintErrorHandler.hintNotRecognized(hint.name, hint.parameters)
      hint.child
  }

  /** The requested technique and the names of the relations, or None if the hint is wrong. */
  private def wantedBy(hint: UnresolvedHint): Option[(TechniqueHint.Wanted, Seq[Seq[String]])] = {
    val words = hint.parameters.map(wordOf)
    val techniques = words.flatten.collect { case Seq(name) => name }.flatMap(SkewTechniques.named)
    val options = words.flatten.collect { case Seq(OptionText(name, value)) => name -> value }
    val relations = words.flatten.filter {
      case Seq(OptionText(_, _)) => false
      case Seq(name) => SkewTechniques.named(name).isEmpty
      case _ => true
    }
    techniques match {
      case Seq(technique) if words.forall(_.isDefined) =>
        val given = TechniqueOptions(options.toMap)
        try {
          TechniqueOptions.check(technique.name, technique.optionNames, given)
          Some((TechniqueHint.Wanted(technique.name, given, prepared = false), relations))
        } catch {
          case _: AnalysisException => None
        }
      case _ => None
    }
  }

  private def wordOf(parameter: Any): Option[Seq[String]] = parameter match {
    case text: String => Some(parts(text))
    case name: UnresolvedAttribute => Some(name.nameParts)
    case literal: Literal if literal.value != null => Some(parts(literal.toString))
    // Spark has resolved a name that is also the name of a column, or of a function.
    case Alias(_: CurrentUser, _) => Some(Seq("user"))
    case column: NamedExpression => Some(Seq(column.name))
    case _ => None
  }

  private def parts(text: String): Seq[String] =
    if (text.contains("=")) Seq(text) else UnresolvedAttribute.parseAttributeName(text)

  private object OptionText {
    def unapply(text: String): Option[(String, String)] = text.split("=", 2) match {
      case Array(name, value) => Some((name.trim.toLowerCase(Locale.ROOT), value.trim))
      case _ => None
    }
  }

  /** Resolves names like Spark's own join hints do: not below aliases and views. */
  private def onRelations(
      plan: LogicalPlan,
      wanted: TechniqueHint.Wanted,
      relations: Seq[Seq[String]],
      found: mutable.Set[Seq[String]]): LogicalPlan = plan match {
    case alias: SubqueryAlias =>
      val name = alias.identifier.qualifier :+ alias.identifier.name
      val matching = relations.filter { r =>
        r.size <= name.size &&
        r.zip(name.takeRight(r.size)).forall { case (a, b) => conf.resolver(a, b) }
      }
      found ++= matching
      if (matching.nonEmpty) ResolvedHint(alias, TechniqueHint(wanted)) else alias
    case ResolvedHint(alias: SubqueryAlias, sparks) if !sparks.isInstanceOf[TechniqueHint] =>
      onRelations(alias, wanted, relations, found) match {
        case ResolvedHint(_, ours) => ResolvedHint(ResolvedHint(alias, sparks), ours)
        case _ => plan
      }
    case _: ResolvedHint | _: View => plan
    case other => other.mapChildren(onRelations(_, wanted, relations, found))
  }
}
