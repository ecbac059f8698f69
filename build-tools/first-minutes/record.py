"""Record the first minutes with skewext in a terminal: docs/images/first-minutes.svg.

    .venv/bin/python build-tools/first-minutes/record.py            record and draw
    .venv/bin/python build-tools/first-minutes/record.py --draw     draw the last recording

It types the commands into bash, in a folder with the job of this folder and four made-up tables.
Waits are cut, and the figures are those of this machine: nothing else must run on it. It needs the
jar (`make environment jar`).
"""

import json
import os
import pty
import select
import shutil
import subprocess
import sys
import time
from html import escape
from itertools import groupby
from pathlib import Path

import duckdb

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PICTURE = ROOT / "docs" / "images" / "first-minutes.svg"
HOME = Path("/tmp/demo")
COMMANDS = (
    "cat job.py",
    "time spark-submit job.py",
    "# What would be faster? The event log knows.",
    "python -m pyspark_skewext report logs/local-*",
    "# The same job with a jar and an extension.",
    "python -m pyspark_skewext jar",
    'time spark-submit --jars "$(python -m pyspark_skewext jar)" \\\n'
    "  --conf spark.sql.extensions=io.github.skewext.SkewExtensions job.py",
    "# What became of the joins?",
    "cat why.py",
    "python why.py",
)
PROMPT, PROMPT_STYLE = "~/demo$ ", " class='p'"
COLUMNS, ROWS = 120, 32
WIDTH, HEIGHT, MARGIN = 8, 18, 14
LINE_WAIT, LONGEST_WAIT, LAST_WAIT = 0.1, 2.0, 6.0
ROWS_OF_TABLE = 500_000
TABLES = {
    "sales": "i * 7 % 750000 AS customer, i % 9973 AS spent",
    "visits": "i * 11 % 750000 AS customer, i % 90 AS pages",
    "mails": "i * 13 % 750000 AS customer, i % 40 AS opened",
    "calls": "i * 17 % 750000 AS customer, i % 70 AS minutes",
}
# A cluster has such settings. The local addresses keep the name of the host out of the picture.
DEFAULTS = """spark.eventLog.enabled true
spark.eventLog.dir logs
spark.eventLog.rolling.enabled false
spark.driver.host localhost
spark.ui.showConsoleProgress false
"""
LOGGING = """rootLogger.level = error
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %p %m%n
"""


def prepare() -> dict[str, str]:
    """Fill the home folder; the variables of its shell."""
    shutil.rmtree(HOME, ignore_errors=True)
    demo, packages, conf = HOME / "demo", HOME / "packages", HOME / "conf"
    for folder in (demo / "logs", packages, conf):
        folder.mkdir(parents=True)
    for file in ("job.py", "why.py"):
        shutil.copy(HERE / file, demo)
    # As installed by the wheel: the path of the jar is in the picture.
    shutil.copytree(ROOT / "python" / "pyspark_skewext", packages / "pyspark_skewext")
    shutil.copy(ROOT / "version.txt", packages / "pyspark_skewext")
    (conf / "spark-defaults.conf").write_text(DEFAULTS)
    (conf / "log4j2.properties").write_text(LOGGING)
    for name, columns in TABLES.items():
        rows = f"SELECT {columns} FROM range({ROWS_OF_TABLE}) t(i)"
        duckdb.execute(f"COPY ({rows}) TO '{demo}/{name}.parquet'")
    return {
        **{name: os.environ[name] for name in ("JAVA_HOME",) if name in os.environ},
        "HOME": str(HOME),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(packages),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_CONF_DIR": str(conf),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "LC_ALL": "C.UTF-8",
        "TERM": "dumb",
        "PS1": PROMPT,
        "PS2": "> ",
        "TIMEFORMAT": "%0lR in all",
    }


def record(environment: dict[str, str]) -> list[tuple[float, str]]:
    """What the terminal shows, and when, in seconds."""
    terminal, inside = pty.openpty()
    shell = subprocess.Popen(
        ["bash", "--norc", "--noprofile", "--noediting", "-i"],
        stdin=inside,
        stdout=inside,
        stderr=inside,
        cwd=HOME / "demo",
        env=environment,
        start_new_session=True,
    )
    os.close(inside)
    shown, start = [], time.monotonic()

    def read_until(prompt: str) -> None:
        text = ""
        while not text.endswith(prompt):
            select.select([terminal], [], [])
            part = os.read(terminal, 1 << 16).decode()
            shown.append((time.monotonic() - start, part))
            text = (text + part)[-1000:]

    # bash takes PS1 from the environment only where it is interactive, and says what it misses.
    read_until(PROMPT)
    shown[:] = [(0.0, PROMPT)]
    for command in COMMANDS:
        time.sleep(1)
        first, *others = command.split("\n")
        os.write(terminal, f"{first}\n".encode())
        for line in others:
            read_until("> ")
            os.write(terminal, f"{line}\n".encode())
        read_until(PROMPT)
    os.write(terminal, b"exit\n")
    shell.wait()
    return shown


def draw(shown: list[tuple[float, str]]) -> str:
    """The SVG: texts that appear at their time, in a group that scrolls."""
    texts: list[tuple[float, int, int, str]] = []
    scrolls: list[tuple[float, int]] = [(0.0, 0)]
    row = column = 0
    now = before = 0.0
    fresh = 0
    for at, part in shown:
        # After a long output there is more to read before the next command.
        wait = min(at - before, LONGEST_WAIT)
        if fresh > 5 and at - before > 0.9:
            wait = min(1 + fresh * 0.25, LAST_WAIT)
            fresh = 0
        now, before = now + wait, at
        for index, line in enumerate(part.replace("\r\n", "\n").split("\n")):
            if index:
                now += LINE_WAIT
                row, column, fresh = row + 1, 0, fresh + 1
            while line:
                if column == COLUMNS:
                    row, column = row + 1, 0
                piece, line = line[: COLUMNS - column], line[COLUMNS - column :]
                texts.append((now, row, column, piece))
                column += len(piece)
            if row - ROWS + 1 > scrolls[-1][1]:
                scrolls.append((now, row - ROWS + 1))
    return page(texts, scrolls, now + LAST_WAIT)


def page(
    texts: list[tuple[float, int, int, str]], scrolls: list[tuple[float, int]], length: float
) -> str:
    width, height = COLUMNS * WIDTH + 2 * MARGIN, ROWS * HEIGHT + 2 * MARGIN

    def percent(at: float) -> str:
        return f"{100 * at / length:.2f}%"

    steps = "".join(f"{percent(at)}{{transform:translateY({-n * HEIGHT}px)}}" for at, n in scrolls)
    rules, groups = [f"@keyframes s{{{steps}}}"], []
    for number, (at, parts) in enumerate(groupby(texts, key=lambda text: text[0])):
        rules.append(f"@keyframes t{number}{{0%{{opacity:0}}{percent(at)}{{opacity:1}}}}")
        drawn = "".join(
            f'<text x="{column * WIDTH}" y="{row * HEIGHT + 14}" textLength="{len(text) * WIDTH}"'
            f"{PROMPT_STYLE if text == PROMPT else ''}>{escape(text)}</text>\n"
            for _, row, column, text in parts
            if text.strip()
        )
        groups.append(f'<g style="animation-name:t{number}">\n{drawn}</g>\n')
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"
 width="{width}" role="img" xml:space="preserve">
<title>The first minutes with skewext in a terminal</title>
<style>
text{{font:13px 'DejaVu Sans Mono',Menlo,Consolas,monospace;fill:#e4e4e4;white-space:pre}}
.p{{fill:#7ec699}}
g{{animation:{length:.2f}s steps(1) infinite}}
@media (prefers-reduced-motion:reduce){{g{{animation:none}}}}
{chr(10).join(rules)}
</style>
<rect width="100%" height="100%" rx="8" fill="#1d2026" stroke="#666b75"/>
<svg x="{MARGIN}" y="{MARGIN}" width="{COLUMNS * WIDTH}" height="{ROWS * HEIGHT}">
<g style="animation-name:s">
{"".join(groups)}</g>
</svg>
</svg>
"""


if __name__ == "__main__":
    recording = HOME / "recording.json"
    if "--draw" not in sys.argv:
        recording.write_text(json.dumps(record(prepare())))
    PICTURE.write_text(draw(json.loads(recording.read_text())), encoding="utf-8")
