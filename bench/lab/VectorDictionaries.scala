package org.apache.spark.sql.execution.vectorized

/** Lives here because the dictionary of a vector is for its subclasses and its package. */
object VectorDictionaries {
  def of(vector: WritableColumnVector): Dictionary = vector.dictionary
}
