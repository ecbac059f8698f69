package io.github.skewext.technique

import io.github.skewext.platform.RunsIfDisabled
import io.github.skewext.technique.hint.TechniqueHint
import org.apache.hadoop.fs.Path

import org.apache.spark.sql.catalyst.expressions.{And, Attribute, BoundReference, Expression, Literal, Predicate}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.datasources._
import org.apache.spark.sql.skewext.SqlInternals
import org.apache.spark.sql.types.StructType

/**
 * Lists the files of a table once for all its scans in a query with a technique, or with a join with
 * OR whose parts read a side several times. A side that is read twice has several scans. Spark lists
 * the files of each one when it starts, and an INSERT may come in between. Then a row of the other
 * side would be matched and also unmatched.
 *
 * Partitions are pruned first, because Spark does not prune those of a list. Adaptive execution plans
 * the rest of a query again from its logical plan, so the list is in that plan.
 */
object ListFilesOnce extends Rule[LogicalPlan] with RunsIfDisabled {

  override def apply(query: LogicalPlan): LogicalPlan =
    if (query.exists(TechniqueHint.mayReadTwice)) {
      val plan = SqlInternals.prunePartitions(query)
      val lists = plan
        .collectWithSubqueries { case scan: LogicalRelation => scan }
        .flatMap(scan => tableOf(scan).map(_ -> filesOf(scan)))
        .groupBy(_._1)
        .collect { case (table, scans) if scans.size > 1 => table -> FixedFiles(scans.map(_._2)) }
      if (lists.isEmpty) plan
      else {
        plan.transformWithSubqueries { case scan: LogicalRelation =>
          tableOf(scan).flatMap(lists.get).fold(scan) { list =>
            val files = filesOf(scan)
            scan.copy(relation = files.copy(location = list)(files.sparkSession))
          }
        }
      }
    } else {
      query
    }

  private def filesOf(scan: LogicalRelation): HadoopFsRelation =
    scan.relation.asInstanceOf[HadoopFsRelation]

  /**
   * A key that the scans of a table have in common, if Spark may list its files more than once.
   * Scans of a path have their index of files in common. Two reads of a path are not one table,
   * because Spark lists its files for each read. Pruning gives each scan of a partitioned table an
   * index of its own.
   */
  private def tableOf(scan: LogicalRelation): Option[Any] = scan.relation match {
    case files: HadoopFsRelation =>
      files.location match {
        case index @ (_: CatalogFileIndex | _: InMemoryFileIndex) =>
          val partitioned = scan.catalogTable.filter(_ => files.partitionSchema.nonEmpty)
          // Pruning changes the statistics.
          Some(partitioned.fold[Any](new Same(index))(_.copy(stats = None)))
        case _ => None
      }
    case _ => None
  }

  /** Spark's indexes of files are equal if their paths are. */
  private final class Same(private val index: FileIndex) {
    override def equals(other: Any): Boolean = other match {
      case same: Same => same.index eq index
      case _ => false
    }
    override def hashCode: Int = System.identityHashCode(index)
  }
}

/** The files of a table, as they are when they are listed for the first time. */
private[skewext] final class FixedFiles(
    indexes: Seq[FileIndex],
    override val partitionSchema: StructType)
    extends FileIndex {

  private lazy val listed: Seq[PartitionDirectory] =
    indexes.map(_.listFiles(Nil, Nil)).reduce { (before, more) =>
      val known = before.map(_.values).toSet
      before ++ more.filterNot(partition => known(partition.values))
    }

  override def listFiles(
      partitionFilters: Seq[Expression],
      dataFilters: Seq[Expression]): Seq[PartitionDirectory] = {
    val filter = partitionFilters.reduceOption(And).getOrElse(Literal.TrueLiteral).transform {
      case a: Attribute =>
        val i = partitionSchema.fieldIndex(a.name)
        BoundReference(i, partitionSchema(i).dataType, nullable = true)
    }
    val isWanted = Predicate.createInterpreted(filter)
    listed.filter(partition => isWanted.eval(partition.values))
  }

  override def rootPaths: Seq[Path] = indexes.flatMap(_.rootPaths).distinct

  override def inputFiles: Array[String] = indexes.flatMap(_.inputFiles).distinct.toArray

  /** Of a table without statistics. A pruned scan has statistics of its own. */
  override def sizeInBytes: Long = indexes.map(_.sizeInBytes).max

  override def refresh(): Unit = ()
}

private object FixedFiles {
  def apply(scans: Seq[HadoopFsRelation]): FixedFiles =
    new FixedFiles(scans.map(_.location).distinct, scans.head.partitionSchema)
}
