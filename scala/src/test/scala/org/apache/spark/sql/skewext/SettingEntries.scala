package org.apache.spark.sql.skewext

import io.github.skewext.platform.SkewConf

import org.apache.spark.internal.config.ConfigEntry

/** The settings of skewext, by reflection. Lives here because the class is `private[spark]`. */
object SettingEntries {

  val all: Seq[ConfigEntry[_]] = SkewConf.getClass.getMethods.toSeq
    .filter(m =>
      m.getParameterCount == 0 && classOf[ConfigEntry[_]].isAssignableFrom(m.getReturnType))
    .map(_.invoke(SkewConf).asInstanceOf[ConfigEntry[_]])
}
