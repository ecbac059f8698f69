#!/usr/bin/env bash
# Benchmarks on Uniffle's shuffle, by a server on this machine:
#   bench/uniffle.sh HOME CLIENT.jar [arguments of bench/run.py]
# HOME is an unpacked release of Uniffle, CLIENT.jar its shaded client for Spark 3.
set -euo pipefail
home=$(realpath "$1") client=$(realpath "$2")
shift 2
work=$(mktemp -d)
mkdir "$work/data"
# Releases leave Hadoop out, which is among Spark's jars. Servers announce this address.
spark=$(realpath "$(dirname "$0")"/../.venv/lib/python3*/site-packages/pyspark/jars)
export RSS_IP=127.0.0.1
cat > "$work/coordinator.conf" << CONF
rss.rpc.server.port 19999
rss.jetty.http.port 19998
rss.coordinator.select.partition.strategy CONTINUOUS
CONF
cat > "$work/server.conf" << CONF
rss.rpc.server.port 19997
rss.jetty.http.port 19996
rss.coordinator.quorum 127.0.0.1:19999
rss.storage.type MEMORY_LOCALFILE
rss.storage.basePath $work/data
rss.server.buffer.capacity 1gb
rss.server.read.buffer.capacity 512mb
rss.server.disk.capacity 20g
CONF
trap 'kill $(jobs -p) || true; wait; rm -rf "$work"' EXIT
java -cp "$home/jars/coordinator/*:$spark/*" org.apache.uniffle.coordinator.CoordinatorServer \
  --conf "$work/coordinator.conf" > "$work/coordinator.log" 2>&1 &
java -Xmx3g -cp "$home/jars/server/*:$spark/*" org.apache.uniffle.server.ShuffleServer \
  --conf "$work/server.conf" > "$work/server.log" 2>&1 &
# The first heartbeat of the server.
sleep 20
[ "$(jobs -rp | wc -l)" = 2 ] || { tail "$work"/*.log; exit 1; }
cd "$(dirname "$0")/.."
.venv/bin/python bench/run.py --no-comet \
  --conf spark.shuffle.manager=org.apache.spark.shuffle.RssShuffleManager \
  --conf spark.rss.coordinator.quorum=127.0.0.1:19999 \
  --conf spark.rss.storage.type=MEMORY_LOCALFILE \
  --conf spark.serializer=org.apache.spark.serializer.KryoSerializer \
  --conf spark.driver.extraClassPath="$client" "$@"
