package io.github.skewext.facts

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.xml.XPathExtract
import org.apache.spark.sql.catalyst.optimizer.NormalizeNaNAndZero
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types._

/**
 * Recognizes conditions that have a value, or null, for every row. Such a condition may be
 * evaluated for rows for which Spark's join does not evaluate it. An unknown expression counts as
 * failing.
 */
private[skewext] object CannotFail {

  def apply(condition: Expression): Boolean = !condition.exists(mayFail)

  private def mayFail(e: Expression): Boolean = e match {
    case _: Attribute | _: Literal | _: And | _: Or | _: Not | _: IsNull | _: IsNotNull |
        _: BinaryComparison | _: In | _: InSet | _: StringPredicate | _: Coalesce | _: If |
        _: CaseWhen | _: GetStructField | _: Upper | _: Lower | _: Length | _: Substring |
        _: String2TrimExpression | _: GetDateField | _: GetTimeField | _: TruncDate |
        _: TruncTimestamp | _: Greatest | _: Least | _: Murmur3Hash | _: XxHash64 | _: Md5 |
        _: Sha1 | _: Sha2 | _: Crc32 | _: ConcatWs | _: CreateNamedStruct | _: ScalarSubquery |
        _: TaggingExpression | _: NormalizeNaNAndZero =>
      false
    // A pattern with an escape at its end is an error.
    case Like(_, Literal(pattern, _: StringType), escape) =>
      pattern != null && pattern.toString.contains(escape.toString)
    case c: Concat => !Seq(StringType, BinaryType).contains(c.dataType)
    case Remainder(_, Divisor(), _) | Pmod(_, Divisor(), _) => false
    case a: Add => fails(a, a.evalMode)
    case s: Subtract => fails(s, s.evalMode)
    case m: Multiply => fails(m, m.evalMode)
    case d: Divide => fails(d, d.evalMode)
    case r: Remainder => fails(r, r.evalMode)
    // Days after the year 294,247 have no time, but nobody has them.
    case cast: Cast if isDayOrTime(cast.child.dataType) && isDayOrTime(cast.dataType) => false
    case cast: Cast =>
      val (from, to) = (cast.child.dataType, cast.dataType)
      !isPlain(from) || !isPlain(to) ||
      (cast.evalMode == EvalMode.ANSI && !Cast.canUpCast(from, to))
    case _ => true
  }

  /**
   * Whether an expression may fail outside of ANSI mode. One of a view or an earlier query may be in
   * ANSI mode though the session is not.
   */
  def failsInEachMode(e: Expression): Boolean = e match {
    case _: ToNumber | _: Sequence | _: Slice | _: CreateMap | _: MapFromArrays |
        _: MapFromEntries | _: MapConcat | _: StringToMap | _: TransformKeys | _: UTCTimestamp |
        _: SecondsToTimestamp | _: MillisToTimestamp | _: FormatString | _: BitwiseGet |
        _: XPathExtract | _: JsonToStructs | _: CsvToStructs | _: UnBase64 =>
      true
    case hex: Unhex => hex.failOnError
    case Cast(text, _: DayTimeIntervalType | _: YearMonthIntervalType, _, _)
        if text.dataType.isInstanceOf[StringType] =>
      true
    case _: AddMonths | _: ArrayRepeat => true
    // Of intervals.
    case a: BinaryArithmetic if !a.dataType.isInstanceOf[NumericType] => true
    case _: MultiplyDTInterval | _: MultiplyYMInterval | _: DivideDTInterval |
        _: DivideYMInterval =>
      true
    case e @ (_: Like | _: StringSplit | _: RLike | _: RegExpExtractBase | _: RegExpReplace) =>
      !e.children.tail.forall(_.foldable)
    // Spark 3.5 refuses texts that its older parser reads otherwise.
    case t: ToTimestamp =>
      t.failOnError || SQLConf.get.legacyTimeParserPolicy.toString == "EXCEPTION"
    case ElementAt(of, index, _, _) if of.dataType.isInstanceOf[ArrayType] =>
      !index.foldable || index.eval() == 0 || isAnsi(e)
    case other => isAnsi(other)
  }

  private def isAnsi(e: Expression): Boolean = e match {
    case e: SupportQueryContext => e.initQueryContext().isDefined
    case e: MakeDate => e.failOnError
    case e: MakeTimestamp => e.failOnError
    case e: MakeInterval => e.failOnError
    case e: NextDay => e.failOnError
    case e: UnaryMinus => e.failOnError
    case e: Abs => e.failOnError
    case e: DateAddInterval => e.ansiEnabled
    case _ => false
  }

  private def fails(arithmetic: Expression, mode: EvalMode.Value): Boolean =
    mode == EvalMode.ANSI || !arithmetic.dataType.isInstanceOf[NumericType]

  /** A literal by which each whole number can be divided. */
  private object Divisor {
    def unapply(e: Expression): Boolean = e match {
      case Literal(n @ (_: Byte | _: Short | _: Int | _: Long), _) =>
        n.asInstanceOf[Number].longValue != 0
      case _ => false
    }
  }

  private def isPlain(dataType: DataType): Boolean = dataType match {
    case _: NumericType | StringType | BooleanType | DateType => true
    case _ => false
  }

  private def isDayOrTime(dataType: DataType): Boolean =
    Seq(DateType, TimestampType, TimestampNTZType).contains(dataType)
}
