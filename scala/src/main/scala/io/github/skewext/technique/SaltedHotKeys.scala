package io.github.skewext.technique

import io.github.skewext.profile.FrequentKeys
import io.github.skewext.technique.hint.{HotKey, TechniqueOptions}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.optimizer.{BuildLeft, BuildRight}
import org.apache.spark.sql.skewext.SqlInternals

/** The hot keys of a salted join, and the number of parts of each. */
private[technique] object SaltedHotKeys {

  private val Salts = "salts"
  private val Side = "side"

  val optionNames: Seq[String] = Seq(TechniqueOptions.HotKeys, Salts, Side)

  /** The most parts of a key. The rows of the other side are replicated as often. */
  private val MaxSalts = 1024

  /** The hot keys of the options, if they have some. */
  def given(request: TechniqueRequest): Option[Seq[HotKey]] = {
    // Find wrong options before jobs look for hot keys.
    saltsIn(request)
    sideIn(request)
    val text = request.options.text(TechniqueOptions.HotKeys)
    request.options.hotKeys.orElse(text.map(parsed(_, request.numKeyColumns)))
  }

  private def saltsIn(request: TechniqueRequest) = request.options.int(Salts, 2, MaxSalts)

  private def sideIn(request: TechniqueRequest) =
    request.options.oneOf(Side, Seq("left", "right", "both"))

  /** Keys as text, such as `5,7` for one column, or `5,a;7,b` for two columns. */
  private def parsed(text: String, columns: Int): Seq[HotKey] = {
    val keys =
      if (columns == 1) text.split(",").map(Seq(_)) else text.split(";").map(_.split(",").toSeq)
    keys.toSeq.map(values => HotKey(values.map(value => Literal(value.trim))))
  }

  /** The keys with more rows than an average partition. A job for each side reads its keys. */
  def found(request: TechniqueRequest): Seq[HotKey] = {
    val average = 1.0 / request.numPartitions
    val frequent = FrequentKeys.of(
      request.session,
      Seq(request.left, request.right),
      Seq(request.leftKeys, request.rightKeys),
      average)
    HotKey.above(average, frequent.rows.sum.toDouble, frequent.keys)
  }

  /** The keys whose rows are divided. */
  def of(request: TechniqueRequest): Seq[SaltedKey] = {
    val keys = for {
      key <- request.options.hotKeys.getOrElse(Nil)
      (left, right) = salts(request, key) if left > 1 || right > 1
    } yield SaltedKey(inKeyTypes(request, key), left, if (request.selectsLeft) 1 else right)
    // Keys that are written in different ways may be equal.
    keys.groupBy(_.key).values.map(_.head).toSeq
  }

  /** The number of parts of a key's rows on the left and on the right; without a count, up to 32. */
  private def salts(request: TechniqueRequest, key: HotKey): (Int, Int) = {
    val most = math.max(2, math.min(request.numPartitions, 32))
    def larger = BroadcastSide.nameOf(Seq(BuildLeft, BuildRight).maxBy(request.sizeOf))
    val divided = sideIn(request).getOrElse(if (key.share.isEmpty) larger else "both")
    def of(side: String, share: Option[Double], repeated: Option[Double]): Int = {
      val needed = share.fold(most)(share => math.ceil(share * request.numPartitions).toInt)
      def uncounted = if (divided == "both") math.ceil(math.sqrt(most)).toInt else most
      if (needed <= 1 || !Seq(side, "both").contains(divided)) 1
      else saltsIn(request).getOrElse(repeated.fold(uncounted)(finer(needed, _)))
    }
    (of("left", key.leftShare, key.rightShare), of("right", key.rightShare, key.leftShare))
  }

  /**
   * Up to four times as many parts, which hashes distribute more evenly, while the copies of the
   * `repeated` share of all rows, the key's on the other side, add at most 2 % of all rows.
   */
  private def finer(needed: Int, repeated: Double): Int =
    math.min(MaxSalts, math.max(needed, math.min(4 * needed, 1 + 0.02 / repeated).toInt))

  /** The key in the types of the compared columns. */
  private def inKeyTypes(request: TechniqueRequest, key: HotKey): UnsafeRow = {
    val columns = ComparedColumn.of(request)
    // Keys that were found in the data have a value for each of Spark's comparisons.
    val compared =
      if (key.values.size == request.leftKeys.size) request.leftKeys.map(ComparedColumn(_))
      else columns
    if (key.values.size != compared.size) {
      fail(
        s"The hot key $key has ${key.values.size} values, but the join compares " +
          s"${columns.size} columns.")
    }
    val timeZone = Some(request.session.sessionState.conf.sessionLocalTimeZone)
    val typed = key.values.zip(compared).flatMap { case (value, column) =>
      val cast = Cast(value, column.dataType, timeZone, EvalMode.TRY)
      def isNull = column.isNullSafe && value.eval() == null
      if (!value.foldable || !cast.resolved || (cast.eval() == null && !isNull)) {
        fail(s"The hot key $key is not a key of this join: $value is null or not a value of type " +
          s"${column.dataType.sql}. (Null matches nothing, so rows with a null key need no salt.)")
      }
      column.compared(Literal(cast.eval(), column.dataType))
    }
    UnsafeProjection.create(typed.map(SqlInternals.normalizeFloats)).apply(InternalRow.empty).copy()
  }

  private def fail(message: String): Nothing = throw SqlInternals.analysisError(message)
}
