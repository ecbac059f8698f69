"""Spark's Thrift server with the extension, and beeline as its client: SQL alone, no Python."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
import pytest
from servers import free_port, listening

import pyspark_skewext as skewext

BIN = Path(pyspark.__file__).parent / "bin"
SERVER = "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"

#: Null keys, keys of one table, and keys of all.
CHAIN = """SELECT * FROM (VALUES (1, 'a'), (2, 'b'), (NULL, 'c')) AS t(k, x)
FULL JOIN (VALUES (2, 'd'), (3, 'e')) AS u(k, y) USING (k)
FULL JOIN (VALUES (2, 'f'), (2, 'g'), (4, 'h')) AS v(k, z) USING (k)
ORDER BY k, x, y, z"""


@contextmanager
def server(folder: Path, *settings: str) -> Iterator[str]:
    """Start one, and give its address when it listens. Its metastore is in the folder."""
    port = free_port()
    command = [str(BIN / "spark-submit"), "--master", "local[2]", "--class", SERVER]
    command += [word for setting in settings for word in ("--conf", setting)]
    command += ["--jars", skewext.jar_path(), "spark-internal"]
    command += ["--hiveconf", f"hive.server2.thrift.port={port}"]
    command += ["--hiveconf", "hive.server2.thrift.bind.host=localhost"]
    with listening(command, port, folder, seconds=180):
        yield f"jdbc:hive2://localhost:{port}"


def ask(address: str, *statements: str) -> str:
    """What beeline prints for statements of one connection."""
    words = ["--silent=true", "--outputformat=tsv2", "-u", address]
    words += [word for statement in statements for word in ("-e", statement)]
    done = subprocess.run(
        [str(BIN / "beeline"), *words],
        env=dict(os.environ),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    return done.stdout


@pytest.mark.slow
def test_a_thrift_server_with_the_extension(tmp_path: Path) -> None:
    settings = (
        "spark.sql.extensions=io.github.skewext.SkewExtensions",
        "spark.sql.shuffle.partitions=2",
        "spark.sql.autoBroadcastJoinThreshold=-1",
        "spark.ui.enabled=false",
        f"spark.sql.warehouse.dir={tmp_path / 'warehouse'}",
        # Otherwise the optimizer computes tables of literal rows.
        "spark.sql.optimizer.excludedRules="
        "org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation",
    )
    with server(tmp_path, *settings) as address:
        plan, rows = ask(address, f"EXPLAIN {CHAIN}"), ask(address, CHAIN)
        off = "SET spark.skewext.enabled=false"
        assert "MultiFullJoin" in plan
        assert "MultiFullJoin" not in ask(address, off, f"EXPLAIN {CHAIN}")
        assert rows.count("\n") == 7 and ask(address, off, CHAIN).endswith(rows)
        assert '"name":"multi-way joins","active":true' in ask(
            address, "SELECT * FROM skewext_doctor()"
        )
    # A connection is a session of its own, made of the server's, and the log has one line.
    log = (tmp_path / "server.log").read_text()
    assert log.count(" parts are active") == 1, log[-5000:]
