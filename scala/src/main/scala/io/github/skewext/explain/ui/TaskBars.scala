package io.github.skewext.explain.ui

import scala.xml.Node

import io.github.skewext.explain.report.{ExecutedTask, StageTasks}

import org.apache.spark.sql.skewext.UiFormats.{bytes, duration, number}

/**
 * The durations of a stage's tasks: a bar for each task, the slowest first, and a line at the
 * median. They use neither scripts nor styles, which a policy of the server may forbid.
 */
private[ui] object TaskBars {

  /** The most bars. Of more tasks, only the slowest are shown. */
  val Shown = 100

  private val Height = 90
  private val Width = 8
  // The line has the colour of the text, because Spark's pages may be dark.
  private val (color, unevenColor, medianColor) = ("#17808a", "#d9622b", "currentColor")

  def of(stage: StageTasks): Node = {
    val tasks = stage.ran.take(Shown)
    val median = stage.median(_.run)
    val longest = math.max(1L, tasks.head.run)
    def heightOf(run: Double): Double = math.max(1, run * Height / longest)
    val width = tasks.size * Width
    val line = (Height - heightOf(median)).toString
    <svg width={width.toString} height={Height.toString} role="img" aria-label={caption(stage)}>
      {
      tasks.zipWithIndex.map { case (task, i) =>
        val height = heightOf(task.run.toDouble)
        <rect x={(i * Width).toString} y={(Height - height).toString}
          width={(Width - 1).toString} height={height.toString}
          fill={if (i < stage.uneven) unevenColor else color}>
          <title>{told(task)}</title>
        </rect>
      }
    }
      <line x1="0" x2={width.toString} y1={line} y2={line} stroke={medianColor}
        stroke-dasharray="4 3"/>
    </svg>
  }

  def caption(stage: StageTasks): String = {
    val ran = stage.ran.size
    val which =
      if (ran > Shown) s"the slowest $Shown of ${number(ran)} tasks" else counted(ran, "task")
    s"$which; the slowest took ${duration(stage.ran.head.run)}, the median is " +
      duration(stage.median(_.run).toLong)
  }

  /** For example, `partition 3 on host1: 1.2 s, read 34.0 MiB, 1,234 rows`. */
  def told(task: ExecutedTask): String = {
    val spilled = if (task.diskSpilled > 0) s", spilled ${bytes(task.diskSpilled)}" else ""
    s"partition ${task.partition} on ${task.host}: ${duration(task.run)}, read " +
      s"${bytes(task.shuffleBytes + task.inputBytes)}, " +
      counted(task.shuffleRows + task.inputRows, "row") + spilled
  }

  private def counted(count: Long, noun: String): String =
    s"${number(count)} $noun${if (count == 1) "" else "s"}"
}
