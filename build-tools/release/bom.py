"""The software bill of materials of a release, as CycloneDX: its files, and what they need."""

from __future__ import annotations

import hashlib
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

from cyclonedx.factory.license import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

APACHE = LicenseFactory().make_from_string("Apache-2.0")


def sha256(file: Path) -> str:
    """The checksum of a file, in hexadecimal digits."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def bill(version: str, jars: dict[str, Path], wheel: Path) -> str:
    """The bill, checked against CycloneDX's schema.

    Nothing is inside the files but our own classes and modules. Spark is what they run in: it is
    named by the line that a jar is for, and out of scope.

    Parameters
    ----------
    version
        Of the release.
    jars
        By line of Spark, such as "3.5".
    wheel
        Which has the jars inside.
    """
    # Neither a number at random nor the time: two builds have the same bytes.
    bom = Bom(serial_number=uuid5(NAMESPACE_URL, f"pkg:pypi/pyspark-skewext@{version}"))
    bom.metadata.timestamp = None
    root = Component(name="skewext", version=version, type=ComponentType.LIBRARY, licenses=[APACHE])
    root.bom_ref.value = f"skewext@{version}"
    bom.metadata.component = root
    package = _component(
        wheel, "pyspark-skewext", version, PackageURL("pypi", None, "pyspark-skewext", version)
    )
    bom.components.add(package)
    parts = []
    for line, jar in sorted(jars.items()):
        artifact = jar.name[: -len(f"-{version}.jar")]
        group = "io.github.skewext"
        url = PackageURL("maven", group, artifact, version)
        ours = _component(jar, artifact, version, url, group)
        scala = artifact.rsplit("_", 1)[1]
        spark = Component(
            name=f"spark-sql_{scala}",
            group="org.apache.spark",
            version=line,
            type=ComponentType.FRAMEWORK,
            scope=ComponentScope.EXCLUDED,
            licenses=[APACHE],
        )
        spark.bom_ref.value = f"spark-sql_{scala}@{line}"
        bom.components.update([ours, spark])
        bom.register_dependency(ours, [spark])
        parts.append(ours)
    bom.register_dependency(package, parts)
    bom.register_dependency(root, [package, *parts])
    text = JsonV1Dot6(bom).output_as_string(indent=2)
    wrong = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    if wrong is not None:
        raise ValueError(f"the bill of materials is not valid: {wrong}")
    return text + "\n"


def _component(
    file: Path, name: str, version: str, url: PackageURL, group: str | None = None
) -> Component:
    component = Component(
        name=name,
        group=group,
        version=version,
        type=ComponentType.LIBRARY,
        purl=url,
        licenses=[APACHE],
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=sha256(file))],
    )
    component.bom_ref.value = url.to_string()
    return component
