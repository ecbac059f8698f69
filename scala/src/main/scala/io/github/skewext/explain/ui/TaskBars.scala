package io.github.skewext.explain.ui

import scala.xml.Node

import io.github.skewext.explain.report.{ExecutedTask, StageTasks}

import org.apache.spark.sql.skewext.UiFormats.{bytes, counted, duration, number}

/**
 * The durations of a stage's tasks: a bar for each task, the slowest first, a line at the median, an
 * axis and a legend. They use neither scripts nor styles, which a policy of the server may forbid.
 */
private[ui] object TaskBars {

  /** The most bars. Of more tasks, only the slowest are shown. */
  val Shown = 100

  private val Height = 90
  private val Width = 8

  /** The top left corner of the bars: beside the labels of the axis, below half of its letters. */
  private val (left, top) = (56, 8)
  private val bottom = top + Height

  /** The legend is as wide even if there are few bars. */
  private val LeastWidth = 380
  private val FontSize = "12"

  // Lines and text have the colour of the text, because Spark's pages may be dark.
  private val (color, unevenColor, textColor) = ("#17808a", "#d9622b", "currentColor")
  private val Dashes = "4 3"

  def of(stage: StageTasks): Node = {
    val tasks = stage.ran.take(Shown)
    val median = stage.median(_.run)
    val longest = math.max(1L, tasks.head.run)
    def heightOf(run: Double): Double = math.max(1, run * Height / longest)
    val end = left + tasks.size * Width
    val width = math.max(end, LeastWidth)
    <svg width={width.toString} height={(bottom + 40).toString} role="img"
      aria-label={caption(stage)} font-size={FontSize}>
      {
      tasks.zipWithIndex.map { case (task, i) =>
        val height = heightOf(task.run.toDouble)
        <rect x={(left + i * Width).toString} y={(bottom - height).toString}
          width={(Width - 1).toString} height={height.toString}
          fill={if (i < stage.uneven) unevenColor else color}>
          <title>{told(task)}</title>
        </rect>
      }
    }
      {line(left, end, bottom - heightOf(median), dashed = true)}
      {axis(longest, end)}
      {legend(median.toLong)}
    </svg>
  }

  /** From zero to the longest task, whose bar is as high as the axis. */
  private def axis(longest: Long, end: Int): Seq[Node] = Seq(
    <line x1={left.toString} x2={left.toString} y1={top.toString} y2={bottom.toString}
      stroke={textColor}/>,
    line(left, end, bottom),
    label(left - 6, top + 4, duration(longest), "end"),
    label(left - 6, bottom + 4, "0", "end"),
    label(left, bottom + 16, "tasks, the slowest first"))

  private def legend(median: Long): Seq[Node] = {
    val y = bottom + 34
    def dot(x: Int, fill: String): Node =
      <circle cx={(x - 8).toString} cy={(y - 4).toString} r="4" fill={fill}/>
    Seq(
      dot(left + 8, unevenColor),
      label(left + 8, y, "over 2x median"),
      dot(left + 144, color),
      label(left + 144, y, "others"),
      line(left + 198, left + 214, y - 4, dashed = true),
      label(left + 218, y, s"median ${duration(median)}"))
  }

  private def line(from: Int, to: Int, y: Double, dashed: Boolean = false): Node =
    <line x1={from.toString} x2={to.toString} y1={y.toString} y2={y.toString} stroke={textColor}
      stroke-dasharray={if (dashed) Dashes else "none"}/>

  private def label(x: Int, y: Int, text: String, anchor: String = "start"): Node =
    <text x={x.toString} y={y.toString} text-anchor={anchor} fill={textColor}>{text}</text>

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
      s"${bytes(task.readBytes)}, ${counted(task.readRows, "row")}$spilled"
  }
}
