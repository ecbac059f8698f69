package io.github.skewext.shuffle

import java.time.ZoneId

import io.github.skewext.facts.EvaluatedInTurn

import org.apache.spark.QueryContext
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.BindReferences.bindReference
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenContext
import org.apache.spark.sql.catalyst.expressions.objects.InvokeLike
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/**
 * Evaluates expressions on rows of batches.
 *
 * The arrays, maps and structs of a batch return 0 for a null, unless one asks first whether it is
 * a null. Generated code asks, interpreted expressions do not. So these get copies of rows, as in
 * Spark, whose transition to rows copies them for operators that are not compiled with it.
 */
private[skewext] object BatchRows {

  /** A filter's condition. Not serializable. */
  def predicate(condition: Expression, input: Seq[Attribute]): BasePredicate = {
    val ofRows = EvaluatedInTurn.predicate(condition, input)
    copied(Seq(condition), input) match {
      // If Spark could not compile the predicate, it is interpreted.
      case Some(columns)
          if ofRows.isInstanceOf[InterpretedPredicate] || !isCompiled(condition, input) =>
        val copy = UnsafeProjection.create(columns)
        new BasePredicate {
          override def initialize(task: Int): Unit = ofRows.initialize(task)
          override def eval(row: InternalRow): Boolean = ofRows.eval(copy(row))
        }
      case _ => ofRows
    }
  }

  /**
   * A projection, without which expressions must not be interpreted on rows of batches. It copies the
   * columns that they read, and leaves the others null. None if they read no nested column.
   */
  def copied(expressions: Seq[Expression], input: Seq[Attribute]): Option[Seq[Expression]] = {
    val read = AttributeSet(expressions)
    if (input.exists(a => read.contains(a) && isNested(a.dataType))) {
      Some(input.map(a => if (read.contains(a)) bindReference[Expression](a, input) else Null))
    } else {
      None
    }
  }

  private val Null = Literal(null)

  private def isNested(dataType: DataType): Boolean = dataType match {
    case _: ArrayType | _: MapType | _: StructType => true
    case udt: UserDefinedType[_] => isNested(udt.sqlType)
    case _ => false
  }

  /**
   * Whether the generated code of a condition does all its work. It calls no method of an object
   * that may read a nested value: an expression that has no generated code, such as a function with
   * a lambda, or the function of a user.
   */
  private def isCompiled(condition: Expression, input: Seq[Attribute]): Boolean =
    !condition.exists(_.isInstanceOf[InvokeLike]) && {
      val context = new CodegenContext
      bindReference(condition, input).genCode(context)
      context.references.forall {
        case null | _: String | _: Number | _: java.lang.Boolean | _: Decimal | _: UTF8String |
            _: DataType | _: ZoneId | _: QueryContext | _: Array[Byte] =>
          true
        case _ => false
      }
    }
}
