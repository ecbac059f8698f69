package io.github.skewext.explain

import io.github.skewext.internal.BuildInfo
import io.github.skewext.latest.RewriteRowNumbers
import io.github.skewext.platform.{ExtensionPoints, Guard, Linkage, LoadedExtension, SkewConf}

import org.apache.spark.SPARK_VERSION
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.skewext.ShuffleService
import org.apache.spark.sql.skewext.ui.SkewextTab

/** Which parts of skewext are active in a session, and the reasons why others are off. */
object Doctor {

  /**
   * @param rules the rules without which the part does nothing, without the package of skewext.
   *              Names do not load classes, which may not fit this Spark.
   * @param settings the keys of settings that switch it off, of skewext and of Spark.
   * @param isLate whether a session also has the part that registered skewext later.
   * @param needed whether the part has something to do in the session, so that it is missed.
   * @param why other reasons against the part.
   */
  private case class Part(
      name: String,
      rules: Seq[String],
      settings: Seq[String],
      isLate: Boolean = false,
      needed: SparkSession => Boolean = _ => true,
      why: SparkSession => Option[String] = _ => None)

  private val Ours = "io.github.skewext."

  private val ExplainProvider = s"${Ours}JoinExplainProvider"

  private val splitSettings =
    SkewConf.splitSwitches.map(_.key) :+ SQLConf.ADAPTIVE_EXECUTION_ENABLED.key

  private val splitRules = Seq("skew.split.SplitSkewedJoins", "skew.split.RequiredLayout")

  private val bucketSettings = Seq(SkewConf.ENABLED.key, SQLConf.BUCKETING_ENABLED.key)

  /** Only Spark 4 has providers. */
  private lazy val explainPart =
    if (SPARK_VERSION.startsWith("3.")) None
    else {
      Some(
        Part(
          "joins in Spark's EXPLAIN",
          Nil,
          Seq(SkewConf.ENABLED.key),
          why = session => noProvider(session.sessionState.conf)))
    }

  private val parts = Seq(
    Part(
      "multi-way joins",
      Seq("join.MultiFullJoinStrategy"),
      Seq(SkewConf.ENABLED.key),
      isLate = true),
    Part(
      "joins of two sides",
      Seq("join.probe.PlanShuffledJoins"),
      Seq(SkewConf.ENABLED.key, SkewConf.JOIN_ENABLED.key)),
    Part(
      "range joins",
      Seq("join.range.PlanRangeJoins"),
      Seq(SkewConf.ENABLED.key, SkewConf.RANGE_JOIN_ENABLED.key)),
    Part(
      "rewritten chains of joins",
      Seq("rewrite.RewriteJoinChains"),
      Seq(SkewConf.ENABLED.key, SkewConf.MULTI_JOIN_REWRITE.key)),
    Part(
      "rewritten as-of joins",
      Seq("asof.RewriteSparkAsOfJoins"),
      Seq(SkewConf.ENABLED.key, SkewConf.MULTI_JOIN_REWRITE.key)),
    Part(
      "rewritten row numbers",
      Seq("latest.RewriteRowNumbers"),
      Seq(SkewConf.ENABLED.key, SkewConf.LATEST_REWRITE.key),
      why = _ => RewriteRowNumbers.whyOff),
    Part(
      "joins with OR",
      Seq("disjunction.RewriteOrJoins"),
      Seq(SkewConf.ENABLED.key, SkewConf.OR_JOIN_ENABLED.key)),
    Part("splits of skewed partitions", splitRules, splitSettings, why = _ => pointMissing),
    Part(
      "key sampling for splits",
      "skew.split.SketchJoinKeys" +: splitRules,
      splitSettings,
      why = session => pointMissing.orElse(samplingOff(session)).orElse(otherExchanges)),
    Part(
      "splits of a MERGE",
      "merge.UndoReplicatingSplits" +: splitRules,
      splitSettings,
      why = _ => pointMissing),
    Part(
      "spreading of null keys",
      Seq("nullkeys.SpreadNullKeys"),
      Seq(
        SkewConf.ENABLED.key,
        SkewConf.MULTI_JOIN_SPREAD_NULL_KEYS.key,
        SQLConf.ADAPTIVE_EXECUTION_ENABLED.key),
      why = _ => pointMissing),
    Part(
      "columnar shuffle",
      Seq("shuffle.PlanColumnExchanges"),
      Seq(SkewConf.ENABLED.key, SkewConf.SHUFFLE_ENABLED.key),
      why = _ => otherExchanges),
    Part("bucket pruning", Seq("bucket.PruneBuckets"), bucketSettings),
    Part(
      "order of sorted buckets",
      Seq("bucket.UseSortedFiles"),
      bucketSettings :+ SkewConf.BUCKET_ORDER.key),
    Part("point-in-time joins", Nil, Nil, isLate = true, why = _ => unfit("asof")),
    Part(
      "techniques of skew_join",
      Nil,
      Seq(SkewConf.ENABLED.key),
      isLate = true,
      why = _ => unfit("technique")),
    Part(
      "hint SKEWEXT_JOIN",
      Seq("technique.ResolveSkewJoinHints", "technique.PlanSkewJoins"),
      Seq(SkewConf.ENABLED.key)),
    Part("table functions for SQL", Nil, Nil, why = _ => unfit("function")),
    Part(
      "tab in Spark's UI",
      Nil,
      Seq(SkewConf.ENABLED.key, SkewConf.UI_ENABLED.key),
      isLate = true,
      needed = session => SkewextTab.canAttachTo(session.sparkContext),
      why = session =>
        if (!SkewextTab.canAttachTo(session.sparkContext)) {
          Some("Spark's UI and its event log are off")
        } else if (SkewextTab.isAttachedTo(session.sparkContext)) {
          None
        } else {
          Some(s"${SkewConf.UI_ENABLED.key} was false when the application started")
        })) ++ explainPart

  /** The names of all rules that parts need. */
  private[skewext] val ruleNames: Set[String] = parts.flatMap(_.rules).map(Ours + _).toSet

  /** For each part its name, and the reason if it is off. */
  def reasons(session: SparkSession): Seq[(String, Option[String])] = {
    // Before the first part, as otherwise a release of Apache Spark is not checked.
    Linkage.faults
    parts.map(part => part.name -> reasonAgainst(part, session))
  }

  /**
   * The needed parts in one line, for the log. It does not compare classes in a release of Apache
   * Spark, which would take seconds.
   */
  def summary(session: SparkSession): String =
    summary(parts.filter(_.needed(session)).map(p => p.name -> reasonAgainst(p, session)))

  private[explain] def summary(reasons: Seq[(String, Option[String])]): String = {
    val off = reasons.collect { case (name, Some(reason)) => (reason, name) }
    // Parts that one setting switches off share its reason.
    val groups = off.map(_._1).distinct.map { reason =>
      s"${off.collect { case (`reason`, name) => name }.mkString(", ")} ($reason)"
    }
    s"skewext ${BuildInfo.version} for Spark ${BuildInfo.sparkLine} on Spark $SPARK_VERSION: " +
      s"${reasons.size - off.size} of ${reasons.size} parts are active" +
      (if (off.isEmpty) "" else groups.mkString("; off: ", "; ", ""))
  }

  def json(session: SparkSession): String = Json.text(
    Json.fields(
      "version" -> BuildInfo.version,
      "spark_line" -> BuildInfo.sparkLine,
      "spark" -> SPARK_VERSION,
      "parts" -> parts.zip(reasons(session)).map { case (part, (name, reason)) =>
        Json.fields(
          "name" -> name,
          "active" -> reason.isEmpty,
          "reason" -> reason,
          "needed" -> part.needed(session))
      },
      "notes" -> notes(session)))

  private def reasonAgainst(part: Part, session: SparkSession): Option[String] = {
    val conf = session.sessionState.conf
    val rules = part.rules.map(Ours + _)
    lazy val absent =
      if (LoadedExtension.isIn(session) || part.isLate && LoadedExtension.canPlanIn(session)) None
      else Some(LoadedExtension.Missing)
    lazy val misfit = rules.flatMap(rule => unfit(rule.stripPrefix(Ours))).headOption
    lazy val off = part.settings.find(!conf.getConfString(_).trim.toBoolean).map(_ + " is false")
    lazy val excluded = rules.flatMap(Origins.whyExcluded(conf, _)).headOption
    absent
      .orElse(misfit)
      .orElse(off)
      .orElse(excluded)
      .orElse(part.why(session))
  }

  private def unfit(rule: String): Option[String] =
    Linkage.faultOf(s"$Ours$rule.").map(Origins.misfit)

  private def pointMissing: Option[String] = ExtensionPoints.missing

  private def otherExchanges: Option[String] = ShuffleService.exchangesMissing

  private def samplingOff(session: SparkSession): Option[String] = {
    val mode = session.sessionState.conf.getConf(SkewConf.SKEW_OUTPUT_MODE)
    if (mode == SkewConf.OutputSkew.Off) Some(s"${SkewConf.SKEW_OUTPUT_MODE.key} is $mode")
    else None
  }

  private def noProvider(conf: SQLConf): Option[String] = {
    val key = "spark.sql.extendedExplainProviders"
    if (conf.getConfString(key, "").split(',').map(_.trim).contains(ExplainProvider)) None
    else Some(s"$key does not name $ExplainProvider")
  }

  private def notes(session: SparkSession): Seq[String] = {
    val used = Seq(Linkage.Shared, "platform", "facts", "nullkeys", "profile", "explain")
    val missing =
      if (LoadedExtension.isIn(session)) None
      else {
        val jars = session.sparkContext.getConf.get("spark.jars", "")
        Some(
          s"The extension is missing: ${LoadedExtension.whyMissing(session)}. spark.jars is " +
            s"${if (jars.isEmpty) "not set" else jars}.")
      }
    missing.toSeq ++ used.flatMap(Linkage.faults.get(_)).map { fault =>
      s"A class that several parts use does not fit this Spark: $fault. Spark plans what fails."
    } ++ Guard.loadFailures ++ Explainer.failureNotes(session) ++
      Photon.note(session.sessionState.conf)
  }
}

/** Databricks' engine of its own, whose operators have names like `PhotonShuffledHashJoin`. */
private[explain] object Photon {

  private val Note = "Photon executes queries here, or parts of them. Its joins are not split at " +
    "run time by skewext, and its shuffles are not replaced. Use compute without Photon for that."

  def note(plan: SparkPlan): Option[String] = if (isIn(plan)) Some(Note) else None

  def note(conf: SQLConf): Option[String] =
    if (conf.getConfString("spark.databricks.photon.enabled", "false").equalsIgnoreCase("true")) {
      Some(Note)
    } else {
      None
    }

  private def isIn(plan: SparkPlan): Boolean =
    plan.nodeName.startsWith("Photon") || PlannedJoin.below(plan).exists(isIn)
}
