#!/bin/sh
# A Spark Connect server with the extension, in the foreground, at Spark's own ports: 15002, UI 4040.
exec spark-submit --master "${SPARK_MASTER:-local[*]}" \
  --class org.apache.spark.sql.connect.service.SparkConnectServer \
  --jars "$(python -m pyspark_skewext jar)" \
  --conf spark.sql.extensions=io.github.skewext.SkewExtensions \
  spark-internal
