"""What the classes of a jar call, and a release of Spark does not have.

    build-tools/linkage.py skewext.jar .cache/matrix/pyspark-3.5.1/pyspark/jars

The jar is compiled against one release of its line. In another one a method may have other
parameters or be missing, which shows only when it is called: a test may never call it.
"""

import struct
import sys
import zipfile
from pathlib import Path

UTF8, CLASS, FIELD, METHOD, INTERFACE_METHOD = 1, 7, 9, 10, 11
#: Bytes of the other constants, after their tag.
SIZES = {3: 4, 4: 4, 5: 8, 6: 8, 8: 2, 12: 4, 15: 3, 16: 2, 17: 4, 18: 4, 19: 2, 20: 2}
#: Those that take two numbers.
LONG = (5, 6)
OURS_AND_SPARKS = ("io/github/skewext/", "org/apache/spark/")
#: Interfaces have them as well.
OF_OBJECT = {
    ("getClass", "()Ljava/lang/Class;"),
    ("hashCode", "()I"),
    ("equals", "(Ljava/lang/Object;)Z"),
    ("toString", "()Ljava/lang/String;"),
}
COALESCED = "org/apache/spark/sql/catalyst/plans/physical/CoalescedHashPartitioning"
#: What the jar does not call where it is missing: see `KeyTypes`, `ExtensionPoints`,
#: `CoalescedPartitions`. A class has no member here.
CAUGHT = {
    ("org/apache/spark/sql/catalyst/util/CharVarcharUtils$", "addPaddingInStringComparison"),
    ("org/apache/spark/sql/SparkSessionExtensions", "injectQueryPostPlannerStrategyRule"),
    (COALESCED, None),
    (COALESCED, "copy"),
    (COALESCED, "copy$default$2"),
    (COALESCED, "from"),
}


class ClassFile:
    """The part of a class file that says what it has and what it calls."""

    def __init__(self, data):
        self._data, self._constants = data, {}
        count, place = self._u2(8), 10
        number = 1
        while number < count:
            tag = data[place]
            self._constants[number] = (tag, place + 1)
            number += 2 if tag in LONG else 1
            if tag == UTF8:
                place += 3 + self._u2(place + 1)
            elif tag in (CLASS, FIELD, METHOD, INTERFACE_METHOD):
                place += 3 if tag == CLASS else 5
            else:
                place += 1 + SIZES[tag]
        self._end = place

    def _u2(self, place):
        return struct.unpack_from(">H", self._data, place)[0]

    def _text(self, number):
        place = self._constants[number][1]
        return self._data[place + 2 : place + 2 + self._u2(place)].decode("utf-8", "replace")

    def _class(self, number):
        return self._text(self._u2(self._constants[number][1])) if number else None

    def calls(self):
        """Classes, and members of them with their descriptors."""
        for tag, place in self._constants.values():
            if tag == CLASS:
                yield self._text(self._u2(place)), None
            elif tag in (FIELD, METHOD, INTERFACE_METHOD):
                member = self._constants[self._u2(place + 2)][1]
                name, descriptor = (self._text(self._u2(member + i)) for i in (0, 2))
                yield self._class(self._u2(place)), (name, descriptor)

    def has(self):
        """Its superclass and interfaces, and its members."""
        place = self._end
        parents = [self._class(self._u2(place + 4))]
        count = self._u2(place + 6)
        place += 8
        parents += [self._class(self._u2(place + 2 * i)) for i in range(count)]
        place += 2 * count
        members = set()
        for _ in ("fields", "methods"):
            count = self._u2(place)
            place += 2
            for _ in range(count):
                members.add((self._text(self._u2(place + 2)), self._text(self._u2(place + 4))))
                attributes = self._u2(place + 6)
                place += 8
                for _ in range(attributes):
                    place += 6 + struct.unpack_from(">I", self._data, place + 2)[0]
        return parents, members


class Classes:
    """The classes of several jars."""

    def __init__(self, jars):
        self._where, self._known = {}, {}
        for jar in jars:
            archive = zipfile.ZipFile(jar)
            for name in archive.namelist():
                if name.endswith(".class"):
                    self._where.setdefault(name[: -len(".class")], (archive, name))

    def has(self, owner, member):
        """Whether it is there, in a parent, too; None if some parent is not in these jars."""
        if owner not in self._where:
            return False if owner.startswith(OURS_AND_SPARKS) else None
        if member is None:
            return True
        if owner not in self._known:
            archive, name = self._where[owner]
            self._known[owner] = ClassFile(archive.read(name)).has()
        parents, members = self._known[owner]
        if member in members:
            return True
        found = [self.has(p, member) for p in parents if p not in (None, "java/lang/Object")]
        return True if True in found else None if None in found else False


def missing(jar, folder):
    """What the jar calls of Spark and the jars of the folder lack, with a class that calls it."""
    classes = Classes([jar, *sorted(Path(folder).glob("*.jar"))])
    archive, lacking = zipfile.ZipFile(jar), {}
    for name in archive.namelist():
        calls = ClassFile(archive.read(name)).calls() if name.endswith(".class") else ()
        for owner, member in calls:
            known = member in OF_OBJECT or (owner, member and member[0]) in CAUGHT
            if known or not owner.startswith(OURS_AND_SPARKS):
                continue
            if classes.has(owner, member) is False:
                lacking[owner, member] = name
    found = sorted((owner, *(member or ()), by) for (owner, member), by in lacking.items())
    return [f"{' '.join(what)}, called by {by}" for *what, by in found]


if __name__ == "__main__":
    found = [line for folder in sys.argv[2:] for line in missing(sys.argv[1], folder)]
    print("\n".join(found) or "Nothing is missing.")
    sys.exit(1 if found else 0)
