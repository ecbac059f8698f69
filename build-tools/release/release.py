"""Make a release: `make release VERSION=0.3.0`; RELEASING.md says what comes before and after.

Everything goes to target/release. Commit and tag are made last of all: whatever fails before
leaves the tree as it was. Afterwards the version is the development version of the next release.
A dry run makes the files of the version that is there into target/release-dry-run, and changes
nothing.
"""

from __future__ import annotations

import datetime
import gzip
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path
from time import gmtime
from xml.etree import ElementTree

from bom import bill, sha256
from changelog import notes, released, supported
from release_options import parse
from versions import development_after, parsed, release_of

ROOT = Path(__file__).resolve().parents[2]
GROUP = Path("io/github/skewext")
_POM = "{http://maven.apache.org/POM/4.0.0}"


def run(*command: str, cwd: Path = ROOT) -> None:
    """Run a command, shown; an error if it fails."""
    print("$", " ".join(command), flush=True)
    subprocess.run(command, cwd=cwd, check=True)


def git(*arguments: str) -> str:
    """What git says."""
    done = subprocess.run(
        ["git", *arguments], cwd=ROOT, check=True, text=True, stdout=subprocess.PIPE
    )
    return done.stdout.strip()


def check_tree(version: str) -> None:
    """A release is of what is committed, and later than all before."""
    if git("status", "--porcelain"):
        sys.exit(
            "The tree is not clean: commit what belongs to the release, and put away the rest."
        )
    tags = [tag[1:] for tag in git("tag", "--list", "v*").splitlines()]
    later = [tag for tag in tags if parsed(tag) >= parsed(version)]
    if later:
        sys.exit(f"There is a release {max(later, key=parsed)} already.")


def check_bundle(folder: Path, version: str) -> Path:
    """What Maven Central asks of an artifact, and its jar."""
    base = f"{folder.parent.name}-{version}"
    for end in (".pom", ".jar", "-sources.jar", "-javadoc.jar"):
        if not (folder / f"{base}{end}").is_file():
            sys.exit(f"{folder.name} lacks {base}{end}")
    pom = ElementTree.parse(folder / f"{base}.pom").getroot()
    for name in ("name", "description", "url", "licenses", "developers", "scm"):
        if pom.find(f"{_POM}{name}") is None:
            sys.exit(f"{base}.pom has no <{name}>")
    jar = folder / f"{base}.jar"
    with zipfile.ZipFile(jar) as opened:
        names = opened.namelist()
    if not {"META-INF/LICENSE", "META-INF/NOTICE"} <= set(names):
        sys.exit(f"{jar.name} lacks LICENSE or NOTICE")
    return jar


def built_at() -> int:
    """The time of all files in what is built, which the Makefile sets."""
    return int(os.environ["SOURCE_DATE_EPOCH"])


def repacked(sdist: Path) -> None:
    """Pack the source distribution again, without times and owners, in the order of names."""
    with tarfile.open(sdist) as packed:
        members = sorted(packed.getmembers(), key=lambda member: member.name)
        contents = [packed.extractfile(member) if member.isfile() else None for member in members]
        files = [None if content is None else content.read() for content in contents]
    with (
        sdist.open("wb") as raw,
        gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w") as packing,
    ):
        for member, content in zip(members, files):
            entry = tarfile.TarInfo(member.name)
            entry.type, entry.size, entry.mtime = member.type, member.size, built_at()
            entry.mode = 0o755 if member.isdir() else 0o644
            packing.addfile(entry, None if content is None else io.BytesIO(content))


def check_sdist(sdist: Path, wheel: Path) -> None:
    """What `pip install` makes of the source distribution is the wheel, byte for byte."""
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "wheel", "-q", "--disable-pip-version-check"]
        run(*pip, "--no-deps", "--no-build-isolation", "-w", folder, str(sdist))
        if (Path(folder) / wheel.name).read_bytes() != wheel.read_bytes():
            sys.exit(f"{sdist.name} installs other files than {wheel.name}.")


def build(out: Path, version: str, lines: list[str]) -> None:
    """Make all files of the release but the notes."""
    shutil.rmtree(out, ignore_errors=True)
    maven = out / "maven"
    maven.mkdir(parents=True)
    jars = {}
    for line in lines:
        sbt = ["build-tools/sbt", f"-Dspark.line={line}", f"-Drelease.maven={maven}"]
        run(*sbt, "bundleJar", "publish")
        (folder,) = (maven / GROUP).glob(f"skewext-spark{line}_*/{version}")
        jars[line] = check_bundle(folder, version)
    run("make", "--no-print-directory", "wheel-of-jars")
    wheel = ROOT / "python/dist" / f"pyspark_skewext-{version}-py3-none-any.whl"
    shutil.copy(wheel, out)
    run(
        *(sys.executable, "-m", "build", "--sdist", "--no-isolation", "--outdir", str(out)),
        str(ROOT / "target/wheel"),
    )
    sdist = out / f"pyspark_skewext-{version}.tar.gz"
    repacked(sdist)
    check_sdist(sdist, wheel)
    run(sys.executable, "-m", "twine", "check", "--strict", str(out / wheel.name), str(sdist))
    bundle = out / f"skewext-{version}-maven.zip"
    with zipfile.ZipFile(bundle, "w", zipfile.ZIP_DEFLATED) as zipped:
        for file in sorted(maven.rglob("*")):
            if file.is_file() and not file.name.startswith("maven-metadata"):
                entry = zipfile.ZipInfo(str(file.relative_to(maven)), gmtime(built_at())[:6])
                zipped.writestr(entry, file.read_bytes(), zipfile.ZIP_DEFLATED)
    for jar in jars.values():
        shutil.copy(jar, out)
    (out / f"skewext-{version}.cdx.json").write_text(bill(version, jars, wheel), encoding="utf-8")


def describe(out: Path, version: str, changelog: str) -> None:
    """Write checksums and notes."""
    digests = {file.name: sha256(file) for file in sorted(out.iterdir()) if file.is_file()}
    sums = "".join(f"{digest}  {name}\n" for name, digest in digests.items())
    (out / "SHA256SUMS").write_text(sums, encoding="utf-8")
    (out / "NOTES.md").write_text(notes(changelog, version, digests), encoding="utf-8")


def dry_run(lines: list[str]) -> None:
    """Make the files of the version that is there, and leave everything else alone."""
    version = (ROOT / "version.txt").read_text("utf-8").strip()
    coming = release_of(version)
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    out = ROOT / "target" / "release-dry-run"
    if f"## [{coming}]" not in changelog:
        changelog = released(changelog, coming, "1970-01-01")
    build(out, version, lines)
    describe(out, coming, changelog)
    print(f"A dry run: {out.relative_to(ROOT)} has what a release of {version} would be made of.")


def release(version: str, lines: list[str], tests: bool) -> None:
    """Make the files, the commit and the tag; then begin the development of the next release."""
    check_tree(version)
    names = ("version.txt", "CHANGELOG.md", "SECURITY.md")
    texts = {name: (ROOT / name).read_text("utf-8") for name in names}
    changelog = released(texts["CHANGELOG.md"], version, datetime.date.today().isoformat())
    security = supported(texts["SECURITY.md"], version)
    try:
        (ROOT / "version.txt").write_text(f"{version}\n", "utf-8")
        (ROOT / "CHANGELOG.md").write_text(changelog, "utf-8")
        (ROOT / "SECURITY.md").write_text(security, "utf-8")
        if tests:
            run("make", "check", "test-ci")
        out = ROOT / "target" / "release"
        build(out, version, lines)
        describe(out, version, changelog)
        git("commit", "--quiet", "-m", f"Release {version}", *texts)
        git("tag", "-a", f"v{version}", "-m", f"skewext {version}")
    except BaseException:
        for name, text in texts.items():
            (ROOT / name).write_text(text, "utf-8")
        raise
    following = development_after(version)
    (ROOT / "version.txt").write_text(f"{following}\n", "utf-8")
    git("commit", "--quiet", "-m", f"Begin {following}", "version.txt")
    print(f"Release {version} is committed and tagged v{version}; its files are in target/release.")
    print(f"What is built from now on has the version {following}.")
    print("Nothing has left this machine: RELEASING.md says how to publish.")


def main() -> None:
    """See the module."""
    options = parse(sys.argv[1:], __doc__)
    # The modules that are built must not be those of this environment.
    os.environ.pop("PYTHONPATH", None)
    if options.dry_run:
        dry_run(options.lines)
    elif options.version is None:
        sys.exit("make release VERSION=x.y.z")
    else:
        parsed(options.version)
        release(options.version, options.lines, not options.skip_tests)


if __name__ == "__main__":
    main()
