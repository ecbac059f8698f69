package io.github.skewext.bucket.files

import java.util.{Collections, LinkedHashMap => JLinkedHashMap, Map => JMap}

import scala.collection.mutable
import scala.util.control.NonFatal

import org.apache.hadoop.fs.Path

import org.apache.spark.internal.Logging
import org.apache.spark.sql.catalyst.catalog.BucketSpec
import org.apache.spark.sql.execution.datasources.{BucketingUtils, HadoopFsRelation}
import org.apache.spark.sql.skewext.SqlInternals
import org.apache.spark.sql.types.StructField

/**
 * Checks whether the files of a table have the buckets of its definition. The definition may be
 * wrong: `CREATE TABLE ... CLUSTERED BY ... LOCATION` over files of another table declares any number
 * of buckets and any columns, and Spark does not compare them with the files.
 *
 * A file's name has its bucket and the id of the write that created it, and all files of a write
 * have the same buckets. So for each write, the rows of a few files are compared: the hash of a row
 * must be the bucket of its file. If the number of buckets or the columns differ, a distinct hash
 * fits with a probability of at most one half, mostly of one to the number of buckets. So
 * [[DistinctHashes]] that fit are a proof. The result is remembered for each write and definition.
 */
private[skewext] object FileBuckets extends Logging {

  /** The result of a check. */
  sealed trait Check

  /** Each row is in the bucket of its hash. */
  case object Proven extends Check

  /** @param file a file with another bucket, and why */
  case class Wrong(file: String) extends Check

  case class Unknown(why: String) extends Check

  /** A file of a table. A name without a bucket is that of a file in all buckets. */
  case class Listed(path: Path, length: Long, modified: Long) {
    lazy val bucket: Option[Int] = BucketingUtils.getBucketId(path.getName)

    /** What all files of one write have in their names; of other names the file itself. */
    lazy val write: String = path.getName match {
      case OfSpark(write, _) => write
      case _ => s"$path $length $modified"
    }
  }

  private val OfSpark = """part-\d+-([0-9a-fA-F]{8}-[0-9a-fA-F-]+)_(\d+)\..*""".r

  /** The writes of a table of which files are read. */
  private[files] val MostWrites = 64

  /** The files of a write that are read at first, and if their rows have too few hashes. */
  private val FilesOfWrite = 4
  private val MostFilesOfWrite = 16
  private[files] val DistinctHashes = 16

  /** The rows of a file that are read. Keys may be sorted, and most of them equal. */
  private val MostRows = 100000

  private val Threads = 8
  private val MostRemembered = 10000

  private case class Definition(format: String, spec: BucketSpec, columns: Seq[StructField])

  private val remembered: JMap[(Definition, String), Check] =
    Collections.synchronizedMap(new JLinkedHashMap[(Definition, String), Check] {
      override def removeEldestEntry(eldest: JMap.Entry[(Definition, String), Check]): Boolean =
        size > MostRemembered
    })

  def check(relation: HadoopFsRelation, files: Seq[Listed]): Check = {
    val spec = relation.bucketSpec.get
    val named = files.filter(_.bucket.isDefined)
    val columns = spec.bucketColumnNames.flatMap(c => relation.dataSchema.find(_.name == c))
    val definition = Definition(relation.fileFormat.getClass.getName, spec, columns)
    named.find(_.bucket.get >= spec.numBuckets) match {
      case Some(file) => wrong(definition, file, s"its bucket is not below ${spec.numBuckets}")
      case None if named.isEmpty => Proven
      case None
          if !StoredValues.ofFormat(relation.fileFormat) ||
            columns.size != spec.bucketColumnNames.size ||
            !columns.forall(c => StoredValues.ofType(c.dataType)) =>
        Unknown("the hashes of its rows are not known")
      case None =>
        checkWrites(relation, definition, named)
    }
  }

  private def checkWrites(
      relation: HadoopFsRelation,
      definition: Definition,
      files: Seq[Listed]): Check = {
    val writes = files.groupBy(_.write)
    val found = writes.keys.flatMap(write => Option(remembered.get((definition, write))))
    val open = writes.keys.toSeq.filterNot(write => remembered.containsKey((definition, write)))
    found.collectFirst { case wrong: Wrong => wrong: Check }.getOrElse {
      if (open.isEmpty) Proven
      else if (open.size > MostWrites) Unknown(s"they were created by more than $MostWrites writes")
      else {
        val first = math.max(1, math.min(FilesOfWrite, MostWrites / open.size))
        val checks = SqlInternals.inThreads(open, "skewext-buckets", Threads) { write =>
          checkWrite(relation, definition, writes(write), first)
        }
        checks
          .collectFirst { case wrong: Wrong => wrong }
          .orElse(checks.collectFirst { case unknown: Unknown => unknown })
          .getOrElse(Proven)
      }
    }
  }

  /** Compares rows of some files of a write. Files of different buckets come first. */
  private def checkWrite(
      relation: HadoopFsRelation,
      definition: Definition,
      files: Seq[Listed],
      first: Int): Check =
    try {
      val byBucket = files.groupBy(_.bucket).values.map(_.head).toSeq.sortBy(_.path.getName)
      val inOrder = byBucket ++ files.filterNot(byBucket.contains)
      val rows = new FileHashes(relation, definition.spec, definition.columns)
      val hashes = mutable.Set.empty[Int]
      var isWhole = true
      var (i, check) = (0, Proven: Check)
      def isEnough = i >= first && (hashes.size >= DistinctHashes || i >= MostFilesOfWrite)
      while (check == Proven && i < inOrder.size && !isEnough) {
        val read = rows.of(inOrder(i), DistinctHashes, MostRows)
        hashes ++= read.hashes
        isWhole &= read.isWhole
        if (!read.fits) check = wrong(definition, inOrder(i), "the hash of a row is another bucket")
        i += 1
      }
      if (check == Proven) {
        if (hashes.size < DistinctHashes && !(isWhole && i == inOrder.size)) {
          check = Unknown("their rows have too few different keys")
        } else {
          remembered.put((definition, files.head.write), Proven)
        }
      }
      check
    } catch {
      // The query reports a file that cannot be read, if it reads the file.
      case NonFatal(e) => Unknown(s"reading them failed: $e")
    }

  /** The log names the file once. */
  private def wrong(definition: Definition, file: Listed, why: String): Wrong = {
    val found = Wrong(file.path.getName)
    if (remembered.put((definition, file.write), found) == null) {
      val spec = definition.spec
      logWarning(
        s"A table is declared with ${spec.numBuckets} buckets by " +
          s"${spec.bucketColumnNames.mkString(", ")}, but its file ${file.path} was written with " +
          s"others: $why. Queries that Spark reads by bucket may return wrong rows, also without " +
          "skewext. Write the table again.")
    }
    found
  }
}
