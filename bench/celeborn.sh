#!/usr/bin/env bash
# Benchmarks on Celeborn's shuffle, by a server on this machine:
#   bench/celeborn.sh HOME CLIENT.jar [arguments of bench/run.py]
# HOME is an unpacked release of Celeborn, CLIENT.jar its shaded client for Spark 3.
set -euo pipefail
CELEBORN_HOME=$(realpath "$1") client=$(realpath "$2")
shift 2
work=$(mktemp -d)
export CELEBORN_HOME CELEBORN_CONF_DIR=$work CELEBORN_LOG_DIR=$work/logs CELEBORN_PID_DIR=$work/pids
cat > "$work/celeborn-defaults.conf" << CONF
celeborn.master.host 127.0.0.1
celeborn.master.endpoints 127.0.0.1:9097
celeborn.worker.storage.dirs $work/data
CONF
stop() {
  "$CELEBORN_HOME/sbin/stop-worker.sh" || true
  "$CELEBORN_HOME/sbin/stop-master.sh" || true
  rm -rf "$work"
}
trap stop EXIT
"$CELEBORN_HOME/sbin/start-master.sh" --host 127.0.0.1 --port 9097
"$CELEBORN_HOME/sbin/start-worker.sh" --host 127.0.0.1 celeborn://127.0.0.1:9097
cd "$(dirname "$0")/.."
.venv/bin/python bench/run.py --no-comet \
  --conf spark.shuffle.manager=org.apache.spark.shuffle.celeborn.SparkShuffleManager \
  --conf spark.celeborn.master.endpoints=127.0.0.1:9097 \
  --conf spark.celeborn.client.spark.shuffle.fallback.policy=NEVER \
  --conf spark.serializer=org.apache.spark.serializer.KryoSerializer \
  --conf spark.driver.extraClassPath="$client" "$@"
