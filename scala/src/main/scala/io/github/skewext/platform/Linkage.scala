package io.github.skewext.platform

import java.io.InputStream
import java.lang.invoke.{MethodHandles, MethodType}
import java.nio.file.{FileSystems, Files, Path, Paths}

import scala.collection.JavaConverters._
import scala.util.control.NonFatal

import org.apache.xbean.asm9.ClassReader

import org.apache.spark.SPARK_REPO_URL

/**
 * Checks once whether the classes of skewext fit the running Spark. A vendor's Spark may lack a
 * class or a method, or have it with other parameters. Without this check, that fails only when it
 * is called, and in a task that fails the query. The rules of a package that does not fit are
 * excluded, as if `spark.skewext.excludedRules` named them.
 *
 * The check takes about two seconds of processor time. The releases of Apache Spark are tested, so
 * there it runs only if `doctor` needs it.
 */
private[skewext] object Linkage {

  private val Ours = "io.github.skewext."

  /** Classes that all packages use. They switch nothing off: most of their methods may fit. */
  val Shared = "shared"

  private val Shims =
    Seq("org/apache/spark/sql/skewext/", "org/apache/spark/sql/execution/skewext/")

  private val isApaches = SPARK_REPO_URL.stripSuffix(".git") == "https://github.com/apache/spark"

  @volatile private var isChecked = false

  /** What `KeyTypes`, `CoalescedPartitions` and `ExtensionPoints` look for before it is used. */
  private val Optional = Set(
    "addPaddingInStringComparison",
    "CoalescedHashPartitioning",
    "injectQueryPostPlannerStrategyRule")

  /** A class or a member of Spark that a class file refers to; a class has no member. */
  case class Reference(owner: String, member: Option[(String, String)], ofInterface: Boolean) {
    def isOptional: Boolean = Optional(owner.split('.').last) || member.exists(m => Optional(m._1))
  }

  /** For each package with a class that does not fit, the first fault. */
  lazy val faults: Map[String, String] = {
    val all = Guard.protect("the check of classes", Map.empty[String, String])(found)
    isChecked = true
    all
  }

  /** What most parts use, to plan the multi-way join or to run its tasks. */
  private val Joins = Seq("join", "inputs", "rows")

  /** Why a rule is off. */
  def faultOf(ruleName: String): Option[String] =
    if (isApaches && !isChecked || faults.isEmpty || !ruleName.startsWith(Ours)) None
    else (packageOf(ruleName) +: Joins).flatMap(faults.get(_)).headOption

  private[skewext] def packageOf(className: String): String =
    // A name may be a package, with a dot at its end.
    className.stripPrefix(Ours).split("\\.", -1) match {
      case parts if className.startsWith(Ours) && parts.length > 1 => parts.head
      case _ => Shared
    }

  private def found: Map[String, String] = {
    val loader = getClass.getClassLoader
    val seen = new java.util.HashMap[Reference, Option[String]]
    val all = classFiles { (name, file) =>
      val own = name.stripSuffix(".class").replace('/', '.')
      val references = referencesOf(file).filterNot(_.isOptional)
      references.iterator
        .flatMap(seen.computeIfAbsent(_, faultIn(_, loader)))
        .toSeq
        .headOption
        .orElse(unlinked(own, loader))
        .map(packageOf(own) -> _)
    }
    val first = all.groupBy(_._1).map { case (name, faults) => name -> faults.head._2 }
    first.foreach { case (name, fault) =>
      Guard.logOnce(s"skewext: its package $name does not fit this Spark: $fault.")
    }
    first
  }

  /** The results for all class files of skewext, in its jar or in a folder of classes. */
  private def classFiles[T](look: (String, InputStream) => Option[T]): Seq[T] = {
    val place = Paths.get(getClass.getProtectionDomain.getCodeSource.getLocation.toURI)
    def in(root: Path): Seq[T] = {
      val files = Files.walk(root)
      try {
        val classes = files.iterator.asScala.filter(_.toString.endsWith(".class"))
        classes.flatMap { file =>
          val opened = Files.newInputStream(file)
          try look(root.relativize(file).toString, opened)
          finally opened.close()
        }.toVector
      } finally {
        files.close()
      }
    }
    if (Files.isDirectory(place)) {
      in(place)
    } else {
      val jar = FileSystems.newFileSystem(place, null: ClassLoader)
      try in(jar.getPath("/"))
      finally jar.close()
    }
  }

  /** The classes of Spark, and their members, that are in the constant pool of a class file. */
  private[skewext] def referencesOf(file: InputStream): Seq[Reference] = {
    val reader = new ClassReader(file)
    val buffer = new Array[Char](reader.getMaxStringLength)
    def text(at: Int) = reader.readUTF8(at, buffer)
    def isSparks(owner: String) =
      owner.startsWith("org/apache/spark/") && !Shims.exists(owner.startsWith)
    def reference(owner: String, member: Option[(String, String)], ofInterface: Boolean) =
      if (isSparks(owner)) Some(Reference(owner.replace('/', '.'), member, ofInterface)) else None
    // The second place of a constant that takes two is 0.
    (1 until reader.getItemCount).map(reader.getItem(_)).filter(_ > 0).flatMap { at =>
      reader.readByte(at - 1) match {
        case 7 => reference(text(at), None, ofInterface = false)
        case kind @ (9 | 10 | 11) =>
          val member = reader.getItem(reader.readUnsignedShort(at + 2))
          val named = (text(member), text(member + 2))
          reference(reader.readClass(at, buffer), Some(named), ofInterface = kind == 11)
        case _ => None
      }
    }
  }

  private[skewext] def faultIn(reference: Reference, loader: ClassLoader): Option[String] = {
    val Reference(name, member, ofInterface) = reference
    try {
      val owner = Class.forName(name, false, loader)
      member.flatMap {
        case (method, descriptor) if descriptor.startsWith("(") =>
          if (owner.isInterface != ofInterface) {
            Some(s"$name is ${if (ofInterface) "no" else "an"} interface")
          } else if (hasMethod(owner, method, descriptor, loader)) {
            None
          } else {
            Some(s"$name has no method $method$descriptor")
          }
        case (field, descriptor) =>
          if (hasField(owner, field, descriptor, loader)) None
          else Some(s"$name has no field $field of type $descriptor")
      }
    } catch {
      case _: ClassNotFoundException => Some(s"there is no class $name")
      case missing: TypeNotPresentException => Some(s"there is no class ${missing.typeName}")
      case error: LinkageError => Some(error.toString)
    }
  }

  private def hasMethod(owner: Class[_], name: String, descriptor: String, loader: ClassLoader) = {
    val signature = MethodType.fromMethodDescriptorString(descriptor, loader)
    exists {
      if (name == "<init>") lookup.findConstructor(owner, signature)
      else lookup.findVirtual(owner, name, signature)
    }
  }

  private def hasField(owner: Class[_], name: String, descriptor: String, loader: ClassLoader) = {
    val kind = MethodType.fromMethodDescriptorString(s"()$descriptor", loader).returnType
    exists(lookup.findGetter(owner, name, kind))
  }

  private val lookup = MethodHandles.lookup()

  /** A member that is static or protected exists, although it is found in another way. */
  private def exists(found: => Any): Boolean =
    try {
      found
      true
    } catch {
      case _: NoSuchMethodException | _: NoSuchFieldException => false
      case _: IllegalAccessException => true
    }

  /** Why the JVM does not link a class. It does so before it returns the constructors. */
  private def unlinked(name: String, loader: ClassLoader): Option[String] =
    try {
      Class.forName(name, false, loader).getDeclaredConstructors
      None
    } catch {
      case error @ (_: LinkageError | NonFatal(_)) => Some(error.toString)
    }
}
