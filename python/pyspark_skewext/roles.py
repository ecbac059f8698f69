"""The role of each input of a join."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Union

from pyspark_skewext._errors import analysis_error, value_error
from pyspark_skewext._validate import check_type


class Role(Enum):
    """The role of one input of a join.

    Attributes
    ----------
    OPTIONAL
        The result may have keys that the input lacks; the input's columns are null there.
    REQUIRED
        The result has only keys of the input.
    EXCLUDED
        The result has only keys that the input lacks, and no columns of the input.

    Examples
    --------
    >>> Role("required")
    <Role.REQUIRED: 'required'>
    """

    OPTIONAL = "optional"
    REQUIRED = "required"
    EXCLUDED = "excluded"


#: The types of `how`: a name for all inputs, or a role for each of them.
How = Union[str, Sequence[Union[Role, str]]]

# For the names of DataFrame.join: the role of the first input, and of the others.
_NAMED = {
    **dict.fromkeys(("full", "outer", "fullouter"), (Role.OPTIONAL, Role.OPTIONAL)),
    **dict.fromkeys(("left", "leftouter"), (Role.REQUIRED, Role.OPTIONAL)),
    "inner": (Role.REQUIRED, Role.REQUIRED),
}


def roles_of(how: How, inputs: int) -> list[Role]:
    """The role of every input for the argument `how`."""
    if isinstance(how, str):
        roles = _NAMED.get(how.lower().replace("_", ""))
        if roles is not None:
            return [roles[0], *[roles[1]] * (inputs - 1)]
        raise value_error(
            f"Unknown how={how!r}: it must be 'full', 'left', 'inner', or a list with one of "
            f"'optional', 'required', 'excluded' per input."
        )
    check_type(how, Sequence, "how must be 'full', 'left', 'inner' or a list of roles")
    if len(how) != inputs:
        raise analysis_error(f"how must have {inputs} entries, one for each input, not {len(how)}.")
    return [_role(role, position) for position, role in enumerate(how)]


def _role(role: object, position: int) -> Role:
    if isinstance(role, Role):
        return role
    which = f"input {position} (counting from 0)"
    check_type(role, str, f"The role of {which} must be a Role or a string")
    try:
        return Role(str(role).lower())
    except ValueError:
        raise value_error(
            f"Unknown role {role!r} for {which}: it must be 'optional', 'required' or 'excluded'."
        ) from None
