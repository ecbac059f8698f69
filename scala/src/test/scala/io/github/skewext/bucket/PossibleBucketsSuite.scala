package io.github.skewext.bucket

import io.github.skewext.bucket.files.BucketSet

import scala.util.Random

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Left => _, Right => _, _}
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String
import org.apache.spark.util.collection.BitSet

/** Which buckets conditions leave: checked with every row that there can be. */
class PossibleBucketsSuite extends AnyFunSuite {

  private val Buckets = 512

  private val a = AttributeReference("a", IntegerType)()
  private val b = AttributeReference("b", StringType)()
  private val c = AttributeReference("c", LongType)()
  private val other = AttributeReference("other", IntegerType)()

  private def text(s: String): Literal = Literal(UTF8String.fromString(s), StringType)

  private def possible(columns: Attribute*)(
      conditions: Expression*): Either[BucketReason, Set[Int]] =
    new PossibleBuckets(columns, Buckets, 1000)
      .of(conditions)
      .fold(given => Left(given.reason), set => Right(set.iterator.toSet))

  private def bucketOf(columns: Seq[Attribute], values: Any*): Int =
    HashPartitioning(
      columns.zipWithIndex.map { case (x, i) =>
        BoundReference(i, x.dataType, nullable = true)
      },
      Buckets).partitionIdExpression.eval(InternalRow(values: _*)).asInstanceOf[Int]

  private def in(x: Attribute, values: Any*): Expression =
    In(x, values.map(v => Literal.create(v, x.dataType)))

  test("finds values of all bucket columns in any form of predicate") {
    def at(i: Integer, s: String): Int = bucketOf(Seq(a, b), i, UTF8String.fromString(s))
    val one = Right(Set(at(1, "x")))
    assert(possible(a, b)(EqualTo(a, Literal(1)), EqualTo(b, text("x"))) === one)
    assert(possible(a, b)(And(EqualTo(Literal(1), a), EqualNullSafe(text("x"), b))) === one)
    assert(possible(a, b)(EqualNullSafe(a, Literal(1)), in(b, "x", null)) === one)
    assert(
      possible(a, b)(in(a, 1, 2), InSet(b, Set(null, UTF8String.fromString("x")))) ===
        Right(Set(at(1, "x"), at(2, "x"))))
    assert(possible(a, b)(IsNull(a), EqualTo(b, text("x"))) === Right(Set(at(null, "x"))))
    assert(
      possible(a, b)(EqualNullSafe(a, Literal(null, IntegerType)), IsNull(b)) ===
        Right(Set(at(null, null))))
    // The order of bucket columns is the table's.
    val swapped = bucketOf(Seq(b, a), UTF8String.fromString("x"), 1)
    assert(possible(b, a)(EqualTo(a, Literal(1)), EqualTo(b, text("x"))) === Right(Set(swapped)))
  }

  test("alternatives, and what they have in common") {
    def at(i: Integer, s: String): Int = bucketOf(Seq(a, b), i, UTF8String.fromString(s))
    def pair(i: Int, s: String): Expression = And(EqualTo(a, Literal(i)), EqualTo(b, text(s)))
    assert(possible(a, b)(Or(pair(1, "x"), pair(2, "y"))) === Right(Set(at(1, "x"), at(2, "y"))))
    assert(
      possible(a, b)(in(a, 1, 2, 3), in(a, 3, 4), in(b, "x", "y"), in(b, "y", "z")) ===
        Right(Set(at(3, "y"))))
    assert(
      possible(a, b)(Or(pair(1, "x"), pair(2, "y")), EqualTo(a, Literal(2))) ===
        Right(Set(at(2, "y"))))
    // What says nothing of bucket columns, or is not understood, takes nothing away.
    assert(
      possible(a, b)(pair(1, "x"), Or(EqualTo(other, Literal(1)), EqualTo(a, Literal(9)))) ===
        Right(Set(at(1, "x"))))
    // No row at all.
    assert(possible(a, b)(Literal(false)) === Right(Set.empty))
    assert(possible(a, b)(EqualTo(a, Literal(null, IntegerType))) === Right(Set.empty))
    assert(possible(a, b)(pair(1, "x"), EqualTo(a, Literal(2))) === Right(Set.empty))
    // What Spark makes of an int that is compared with a long that is none.
    assert(
      possible(a, b)(And(IsNull(a), Literal(null, BooleanType)), in(b, "x")) ===
        Right(Set.empty))
  }

  test("predicates that do not bind a bucket column") {
    val b1 = EqualTo(b, text("x"))
    assert(possible(a, b)() === Left(BucketReason.NoCondition))
    assert(possible(a, b)(EqualTo(other, Literal(1))) === Left(BucketReason.NoCondition))
    for (open <- Seq(
        EqualTo(other, Literal(1)),
        Not(EqualTo(a, Literal(1))),
        Not(In(a, Seq(Literal(1)))),
        IsNotNull(a),
        GreaterThan(a, Literal(1)),
        EqualTo(Add(a, Literal(1)), Literal(2)),
        EqualTo(a, other),
        In(a, Seq(Literal(1), other)),
        EqualTo(Cast(a, StringType), text("1")),
        Or(EqualTo(a, Literal(1)), EqualTo(other, Literal(1))))) {
      assert(possible(a, b)(b1, open) === Left(BucketReason.NotFixed), open)
    }
    // Each alone, and not all of them in one alternative.
    assert(possible(a, b)(Or(EqualTo(a, Literal(1)), b1)) === Left(BucketReason.NoCondition))
    val given = new PossibleBuckets(Seq(a, b, c), Buckets, 9).of(Seq(b1)).left.map(_.detail)
    assert(given === Left(Some("a, c")))
  }

  test("too many values") {
    def of(max: Int)(conditions: Expression*) =
      new PossibleBuckets(Seq(a, c), Buckets, max).of(conditions).left.map(_.reason)
    val conditions = Seq(in(a, 1 to 5: _*), in(c, (1L to 4L): _*))
    assert(of(20)(conditions: _*).isRight)
    assert(of(19)(conditions: _*) === Left(BucketReason.TooManyValues))
    val pairs = (1 to 9).map(i => And(EqualTo(a, Literal(i)), EqualTo(c, Literal(i.toLong))))
    assert(of(9)(pairs.reduce(Or)).isRight)
    assert(of(8)(pairs.reduce(Or)) === Left(BucketReason.TooManyValues))
    // What is given up may not have been needed.
    assert(of(8)(pairs.reduce(Or), EqualTo(a, Literal(1)), EqualTo(c, Literal(1L))).isRight)
    val many = pairs.reduce(Or)
    assert(of(10)(many, many, many).isRight)
  }

  test("types whose equal values may be in several buckets") {
    val struct = AttributeReference("s", new StructType().add("x", IntegerType))()
    val one = Literal.create(InternalRow(1), struct.dataType)
    assert(possible(struct)(EqualTo(struct, one)) === Left(BucketReason.HashUnknown))
    val list = AttributeReference("l", ArrayType(IntegerType))()
    assert(possible(list)(IsNull(list)) === Left(BucketReason.HashUnknown))
    val at = AttributeReference("at", TimestampType)()
    assert(possible(at)(EqualTo(at, Literal(1L, TimestampType))) === Left(BucketReason.HashUnknown))

    for ((dataType, zero, minusZero, nan) <- Seq(
        (FloatType, 0.0f, -0.0f, Float.NaN),
        (DoubleType, 0.0d, -0.0d, Double.NaN))) {
      val d = AttributeReference("d", dataType)()
      // Older Sparks wrote -0.0 to a bucket of its own.
      for (z <- Seq(zero, minusZero)) {
        assert(possible(d)(EqualTo(d, Literal(z))) === Left(BucketReason.NoCondition))
        val several = In(d, Seq(Literal.create(nan, dataType), Literal(z)))
        assert(possible(d)(several) === Left(BucketReason.NoCondition))
      }
      val atNaN = Right(Set(bucketOf(Seq(d), nan)))
      assert(possible(d)(IsNaN(d)) === atNaN)
      assert(possible(d)(EqualTo(d, Literal.create(nan, dataType)), IsNaN(d)) === atNaN)
    }
    // Only literals of the column's own type say what is hashed.
    assert(possible(a)(EqualTo(a, Literal(1L))) === Left(BucketReason.NoCondition))
  }

  test("decimals are hashed with the digits of the column, flags by themselves") {
    for (dataType <- Seq(DecimalType(9, 3), DecimalType(25, 3))) {
      val d = AttributeReference("d", dataType)()
      val stored = Decimal(BigDecimal("1.500"), dataType.precision, dataType.scale)
      val written = Literal(Decimal(BigDecimal("1.5")), dataType)
      assert(possible(d)(EqualTo(d, written)) === Right(Set(bucketOf(Seq(d), stored))))
    }
    val flag = AttributeReference("f", BooleanType)()
    assert(possible(flag)(flag) === Right(Set(bucketOf(Seq(flag), true))))
    assert(possible(flag)(Not(flag)) === Right(Set(bucketOf(Seq(flag), false))))
    assert(possible(flag)(Not(Not(flag))) === Left(BucketReason.NoCondition))
  }

  test("random conditions: no row that meets them is in another bucket") {
    val random = new Random(3)
    val columns = Seq(a, c)
    val ints = Seq[Any](null, 0, 1, 2)
    val longs = Seq[Any](null, 0L, 1L, 2L)
    def literal(x: Attribute): Literal = {
      val values = if (x eq a) ints else longs
      Literal.create(values(random.nextInt(values.size)), x.dataType)
    }
    def condition(depth: Int): Expression = {
      val x = columns(random.nextInt(2))
      random.nextInt(if (depth == 0) 6 else 9) match {
        case 0 | 1 => EqualTo(x, literal(x))
        case 2 => EqualNullSafe(literal(x), x)
        case 3 => In(x, Seq.fill(1 + random.nextInt(3))(literal(x)))
        case 4 => IsNull(x)
        case 5 => if (random.nextInt(4) == 0) GreaterThan(x, literal(x)) else EqualTo(x, literal(x))
        case 6 => Or(condition(depth - 1), condition(depth - 1))
        case 7 => And(condition(depth - 1), condition(depth - 1))
        case 8 => Not(condition(depth - 1))
      }
    }
    var pruned = 0
    for (_ <- 1 to 2000) {
      val conditions = Seq.fill(1 + random.nextInt(3))(condition(3))
      val bound = conditions.map(BindReferences.bindReference(_, columns))
      val meeting = for {
        x <- ints
        y <- longs
        if bound.forall(_.eval(InternalRow(x, y)) == true)
      } yield bucketOf(columns, x, y)
      possible(columns: _*)(conditions: _*).foreach { buckets =>
        assert(meeting.toSet.subsetOf(buckets), conditions)
        pruned += 1
      }
    }
    assert(pruned > 500, pruned)
  }

  test("files with numbers that no bucket has") {
    val set = new BucketSet(70, None)
    set.set(69)
    assert(set.iterator.toSeq === Seq(69))
    assert(set.get(69) && !set.get(68) && !set.get(0))
    assert(Seq(70, 127, 128, 99999).forall(set.get))
    // Spark's own set has the numbers up to 127.
    val again = new BucketSet(70, Some(new BitSet(70)))
    assert(!again.get(70) && !again.get(127))
  }
}
