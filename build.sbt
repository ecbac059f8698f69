val spark = SparkVersions.current

ThisBuild / organization := "io.github.skewext"
// The jar, the wheel and the check at run time read the version from this file.
ThisBuild / version := IO.read(file("version.txt")).trim
ThisBuild / scalaVersion := spark.scala
ThisBuild / licenses := Seq("Apache-2.0" -> url("https://www.apache.org/licenses/LICENSE-2.0"))
ThisBuild / description := "Joins of many tables in one pass, and skewed joins split, in Apache Spark"
ThisBuild / homepage := Some(url("https://github.com/skewext/skewext"))
ThisBuild / scmInfo := Some(
  ScmInfo(
    url("https://github.com/skewext/skewext"),
    "scm:git:https://github.com/skewext/skewext.git"))
ThisBuild / developers := List(
  Developer("skewext", "The maintainers of skewext", "", url("https://github.com/skewext")))
ThisBuild / versionScheme := Some("early-semver")
// scalafix checks the sources of the default line.
ThisBuild / semanticdbEnabled := spark.line == SparkVersions.all.head
ThisBuild / semanticdbVersion := spark.semanticdb

// Spark's launcher opens these modules for Java 17 (JavaModuleOptions). Forked tests need them, too.
val openedModules = Seq(
  "java.base/java.lang",
  "java.base/java.lang.invoke",
  "java.base/java.lang.reflect",
  "java.base/java.io",
  "java.base/java.net",
  "java.base/java.nio",
  "java.base/java.util",
  "java.base/java.util.concurrent",
  "java.base/java.util.concurrent.atomic",
  "java.base/jdk.internal.ref",
  "java.base/sun.nio.ch",
  "java.base/sun.nio.cs",
  "java.base/sun.security.action",
  "java.base/sun.util.calendar").map(module => s"--add-opens=$module=ALL-UNNAMED")

// JDK 8 itself does not know the flag, and needs none.
val hasReleaseFlag = sys.props("java.specification.version") != "1.8"

// Warnings that only 2.13 has: `given` as a name, the old converters of collections (the two versions share
// no others), and matches of types that are not sealed.
val onlyOn213 =
  if (spark.scalaBinary == "2.12") Nil
  else
    Seq(
      "-Wconf:msg=Wrap .given. in backticks:s",
      "-Wconf:msg=JavaConverters:s",
      "-Xlint:-strict-unsealed-patmat",
      "-Xnon-strict-patmat-analysis")

/** Spark, and the libraries of tests. */
val fromMaven: Seq[ModuleID] = Seq(
  "org.apache.spark" %% "spark-sql" % spark.spark % Provided,
  "org.apache.spark" %% "spark-core" % spark.spark % Test classifier "tests",
  "org.apache.spark" %% "spark-catalyst" % spark.spark % Test classifier "tests",
  "org.apache.spark" %% "spark-sql" % spark.spark % Test classifier "tests",
  "org.scalatest" %% "scalatest" % SparkVersions.scalatest % Test,
  "org.scalatestplus" %% "scalacheck-1-18" % SparkVersions.scalacheckPlus % Test)

def shims(part: String, base: File): Seq[File] =
  spark.shims.map(shim => base / "scala" / "src" / part / s"scala-spark-$shim")

// The Makefile sets how many JVMs run tests at a time.
val testJobs: Int = math.max(
  1,
  math.min(
    sys.env.get("TEST_JOBS").fold(2)(_.toInt),
    java.lang.Runtime.getRuntime.availableProcessors))

// Slow tests include Spark's own suites. `make test-all` adds all cases, and code generation in all queries.
val testsAll = sys.env.contains("SKEWEXT_TEST_ALL")
val testsSlow = testsAll || sys.env.contains("SKEWEXT_TEST_SLOW")

// A JVM needs time to warm up, so we start as few as keep the processors busy, and more if all queries are
// compiled. Spark's own suites run in JVMs of their own.
val jvmsOf = Map("ours" -> (if (testsAll) 2 * testJobs else testJobs), "spark" -> testJobs)

// Measured seconds of each suite, which build-tools/test_seconds.py writes. A new suite counts as three.
val secondsOf: Map[String, Int] = IO
  .readLines(file("build-tools/test_seconds.tsv"))
  .map(_.split('\t'))
  .map { case Array(name, seconds) => name -> seconds.toInt }
  .toMap

/**
 * Divides the suites into parts of about equal time, the longest suites first. All suites of MERGE share
 * a JVM, as most of their time goes into loading the classes of Delta and Iceberg.
 */
def dealtOut(tests: Seq[TestDefinition], jvms: Int): Seq[Seq[TestDefinition]] = {
  def name(test: TestDefinition): String = test.name.split('.').last
  def seconds(together: Seq[TestDefinition]): Int =
    together.map(test => secondsOf.getOrElse(name(test), 3)).sum
  tests
    .groupBy(test => if (test.name.contains(".merge.")) "merge" else test.name)
    .toSeq
    .sortBy { case (of, together) => (-seconds(together), of) }
    .map(_._2)
    .foldLeft(Seq.fill(jvms)(Seq.empty[TestDefinition])) { (dealt, together) =>
      val least = dealt.indices.minBy(i => seconds(dealt(i)))
      dealt.updated(least, dealt(least) ++ together)
    }
    .filter(_.nonEmpty)
}

def groupOf(suite: String): String =
  if (suite.contains(".sparktests.") || suite.split('.').last.startsWith("Spark")) "spark"
  else "ours"

Global / concurrentRestrictions := Seq(
  Tags.limitAll(java.lang.Runtime.getRuntime.availableProcessors),
  Tags.limit(Tags.ForkedTestGroup, testJobs),
  Tags.exclusiveGroup(Tags.Clean))

// The command `scalafix` removes -Xfatal-warnings from the options, which compiles everything again. A task does not.
lazy val scalafixCheck =
  taskKey[Unit]("Checks all sources by scalafix, compiled as they always are")

lazy val bundleJar = taskKey[File]("Packages the jar and puts it into the Python package")

val ofLakehouse = Set("io.delta", "org.apache.iceberg")

// Not on the class path of our tests: it contains its own Arrow, Guava and others.
lazy val ConnectServer = config("connect-server").hide

lazy val testJars =
  taskKey[Unit]("Writes down where jars are for tests in Python: Delta, Iceberg, Spark Connect")

lazy val skewext = (project in file("."))
  .settings(
    name := s"skewext-spark${spark.line}",
    // skewext-spark3.5_2.12-<version>.jar
    moduleName := s"skewext-spark${spark.line}",
    crossPaths := true,
    sourceDirectory := baseDirectory.value / "scala" / "src",
    // Each line has its own folder, so changing the line compiles nothing again.
    target := baseDirectory.value / "target" / s"spark-${spark.line}",
    Compile / sourceGenerators += Def.task {
      val file = (Compile / sourceManaged).value / "BuildInfo.scala"
      IO.write(
        file,
        // Python also reads the version of older jars, so the name must not change.
        s"""package io.github.skewext.internal
           |
           |/** What this jar is: written by the build. */
           |object BuildInfo {
           |  val version = "${version.value}"
           |  val sparkLine = "${spark.line}"
           |}
           |""".stripMargin)
      Seq(file)
    },
    Compile / unmanagedSourceDirectories ++= shims("main", baseDirectory.value),
    Test / unmanagedSourceDirectories ++= shims("test", baseDirectory.value),
    Test / sourceGenerators += Def.task {
      PageSources.write(baseDirectory.value / "docs" / "scala.md", (Test / sourceManaged).value)
    },
    scalacOptions ++= (if (hasReleaseFlag) Seq("-release", spark.java) else Nil),
    scalacOptions ++= Seq("-encoding", "utf8", "-deprecation", "-feature", "-unchecked"),
    scalacOptions ++= Seq("-Xlint:_,-missing-interpolator", "-Ywarn-unused", "-Xfatal-warnings"),
    scalacOptions ++= onlyOn213,
    // Tests pass arrays where 2.13 expects sequences, which is only a warning.
    Test / scalacOptions --= (if (spark.scalaBinary == "2.12") Nil else Seq("-Xfatal-warnings")),
    // The Makefile installs the package.
    Compile / unmanagedJars ++= {
      val packages =
        baseDirectory.value / s".venv-${spark.line}" / "lib" * "python*" / "site-packages"
      if (spark.fromPySpark) (packages / "pyspark" / "jars" * "*.jar").classpath else Nil
    },
    Test / sources := (if (spark.fromPySpark) Nil else (Test / sources).value),
    libraryDependencies ++= (if (spark.fromPySpark) Nil else fromMaven),
    ivyConfigurations += ConnectServer,
    libraryDependencies ++= Seq(spark.connect)
      .filter(_.nonEmpty)
      .map(of => ("org.apache.spark" %% "spark-connect" % of % ConnectServer).intransitive()),
    libraryDependencies ++= Seq(spark.iceberg)
      .filter(_.nonEmpty)
      .map("org.apache.iceberg" %% s"iceberg-spark-runtime-${spark.line}" % _ % Test),
    libraryDependencies ++= Seq(spark.delta)
      .filter(_.nonEmpty)
      .map("io.delta" %% "delta-spark" % _ % Test),
    Compile / packageBin / mappings ++=
      Seq("LICENSE", "NOTICE").map(name => baseDirectory.value / name -> s"META-INF/$name"),
    // `publish` writes the bundle of a release: jar, pom, sources and scaladoc.
    publishMavenStyle := true,
    pomIncludeRepository := { _ => false },
    publishTo := Some(
      MavenCache("release", file(sys.props.getOrElse("release.maven", "target/release/maven")))),
    // Only what users call has reference pages.
    Compile / doc / sources := (Compile / sources).value.filter(file =>
      Set("AsOf", "Explanation", "JoinInput", "Skewext", "SkewExtensions", "Technique", "implicits")
        .contains(file.base)),
    Compile / doc / dependencyClasspath := (Compile / fullClasspath).value,
    // With the compiler's other options scaladoc 2.12 fails. Links to Spark's classes have no target, as its
    // scaladoc is not here.
    Compile / doc / scalacOptions := Seq("-encoding", "utf8", "-no-link-warnings"),
    Test / fork := true,
    // Groups run in parallel, the suites of a group in sequence.
    Test / parallelExecution := true,
    Test / testForkedParallel := false,
    Test / testGrouping := (for {
      (group, tests) <- (Test / definedTests).value.groupBy(test => groupOf(test.name)).toSeq
      (part, i) <- dealtOut(tests, jvmsOf(group)).zipWithIndex
    } yield {
      val name = s"$group-${i + 1}"
      // Each has a folder of its own, as Spark keeps tables in the working directory.
      val folder = target.value / "tests" / name
      IO.createDirectory(folder)
      val options = (Test / forkOptions).value.withWorkingDirectory(folder)
      Tests.Group(name, part, Tests.SubProcess(options))
    }),
    // Tests run most code only a few times, so the first compiler suffices. Spark's suites need the heap that
    // Spark's build gives them.
    Test / javaOptions ++= openedModules ++
      Seq("-Xms1g", "-Xmx2g", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC") ++
      // The default with the first compiler alone is an eighth of the usual, too little for so many suites.
      Seq("-XX:ReservedCodeCacheSize=256m"),
    Test / javaOptions ++= Seq(
      "-XX:+IgnoreUnrecognizedVMOptions",
      s"-Dskewext.root=${baseDirectory.value}"),
    Test / run / outputStrategy := Some(OutputStrategy.StdoutOutput),
    // build-tools/count_tests.py reads the file.
    Test / testOptions += {
      val report = target.value / "scalatest.txt"
      Tests.Argument(TestFrameworks.ScalaTest, "-oDF", "-fDW", report.getPath)
    },
    // Slow tests include Spark's own suites, except the longest, which `make test-spark` runs.
    Test / test / testOptions += {
      Tests.Filter(suite =>
        if (testsSlow) !suite.contains(".sparktests.full.") else groupOf(suite) != "spark")
    },
    testJars := {
      val lakehouse = (Test / externalDependencyClasspath).value
        .filter(_.get(moduleID.key).exists(m => ofLakehouse.contains(m.organization)))
        .map(_.data)
      val connect = update.value.select(configurationFilter(ConnectServer.name))
      for ((name, jars) <- Seq("lakehouse" -> lakehouse, "connect" -> connect)) {
        val file = target.value / s"$name-jars.txt"
        IO.delete(file)
        if (jars.nonEmpty) IO.write(file, jars.map(_.getPath).mkString(","))
      }
    },
    scalafixCheck := scalafixAll.toTask(" --check").value,
    bundleJar := {
      val jar = (Compile / packageBin).value
      val folder = baseDirectory.value / "python" / "pyspark_skewext" / "jars"
      // The wheel packs every jar in the folder, so jars of other versions must go.
      IO.delete((folder * "*.jar").get.filterNot { other =>
        other.getName.endsWith(s"-${version.value}.jar") &&
        !other.getName.startsWith(s"skewext-spark${spark.line}_")
      })
      val bundled = folder / jar.getName
      // A session of the Python tests may have the jar open.
      if (!bundled.exists || !Hash(bundled).sameElements(Hash(jar))) IO.copyFile(jar, bundled)
      // The Makefile's stamp: the jar is up to date.
      IO.touch(folder / s".stamp-${spark.line}")
      bundled
    })
