from job import profiles
from pyspark.sql import SparkSession

import pyspark_skewext as skewext

spark = skewext.configure(SparkSession.builder).getOrCreate()
print(skewext.explain(profiles(spark)))
