package io.github.skewext.platform

import java.io.{ByteArrayInputStream, InputStream}
import java.nio.charset.StandardCharsets.ISO_8859_1

import io.github.skewext.platform.Linkage.{Reference, faultIn, faultOf, referencesOf}
import org.scalatest.funsuite.AnyFunSuite

/** The check whether the classes of skewext fit the running Spark. */
class LinkageSuite extends AnyFunSuite {

  private val loader = getClass.getClassLoader

  private val Exchange = "org.apache.spark.sql.execution.exchange.ShuffleExchangeExec"

  private def bytesOf(name: String): Array[Byte] = {
    val in: InputStream = loader.getResourceAsStream(name.replace('.', '/') + ".class")
    try Iterator.continually(in.read()).takeWhile(_ >= 0).map(_.toByte).toArray
    finally in.close()
  }

  private def faults(file: Array[Byte]): Seq[String] =
    referencesOf(new ByteArrayInputStream(file)).flatMap(faultIn(_, loader))

  test("all classes fit the Spark that they are compiled for, and no rule is off") {
    assert(Linkage.faults.isEmpty)
    assert(faultOf("io.github.skewext.skew.split.SplitSkewedJoins").isEmpty)
  }

  test("the package of a class, of a package, and of what all packages use") {
    val names = Seq("io.github.skewext.skew.run.KeyLookup", "io.github.skewext.asof.")
    assert(names.map(Linkage.packageOf) === Seq("skew", "asof"))
    val shared = Seq("io.github.skewext.Joins", "org.apache.spark.sql.skewext.SparkShims$")
    assert(shared.map(Linkage.packageOf) === Seq.fill(2)(Linkage.Shared))
  }

  test("finds the member that a class calls and Spark lacks") {
    val rule = bytesOf("io.github.skewext.shuffle.ColumnShuffleExchangeExec$")
    assert(faults(rule).isEmpty)
    // The same class as if it called a method of another name, and read another class.
    def patched(from: String, to: String) =
      new String(rule, ISO_8859_1).replace(from, to).getBytes(ISO_8859_1)
    assert(
      faults(patched("shuffleOrigin", "shuffleOrigim")).exists(
        _.startsWith(s"$Exchange has no method shuffleOrigim()")))
    assert(
      faults(patched("ShuffleExchangeExec", "ShuffleExchangeExed")).exists(
        _ == s"there is no class ${Exchange.init}d"))
  }

  test("constructors, static and protected members, fields and kinds of classes") {
    def of(owner: String, name: String, descriptor: String, ofInterface: Boolean = false) =
      faultIn(Reference(owner, Some((name, descriptor)), ofInterface), loader)
    val context = "org.apache.spark.SparkContext"
    assert(of(context, "<init>", "()V").isEmpty)
    assert(of(context, "<init>", "(I)V").nonEmpty)
    assert(of(context, "getOrCreate", s"()Lorg/apache/spark/SparkContext;").isEmpty)
    assert(of(context, "getOrCreate", "()V").nonEmpty)
    assert(of("org.apache.spark.rdd.RDD", "getDependencies", seq).isEmpty)
    assert(of(context, "stop", "()V", ofInterface = true).exists(_.contains("is no interface")))
    val module = "org.apache.spark.SparkContext$"
    assert(of(module, "MODULE$", s"L${module.replace('.', '/')};").isEmpty)
    assert(of(module, "MODULE", s"L${module.replace('.', '/')};").nonEmpty)
    assert(of(context, "x", "(Lorg/apache/spark/NoSuch;)V").exists(_.contains("NoSuch")))
  }

  private def seq: String =
    classOf[org.apache.spark.rdd.RDD[_]].getDeclaredMethods
      .find(_.getName == "getDependencies")
      .map(method => s"()L${method.getReturnType.getName.replace('.', '/')};")
      .get
}
