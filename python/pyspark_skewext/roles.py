"""What an input has to do with a key for that key to come out of a join."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Union

from pyspark_skewext._errors import type_error, value_error

__all__ = ["How", "Role"]


class Role(Enum):
    """The role of one input of a join.

    Attributes
    ----------
    OPTIONAL
        The key may be in the input or not; where it is not, the input's columns are null.
    REQUIRED
        Only keys that the input has come out.
    EXCLUDED
        Only keys that the input lacks come out; the input gives no columns.

    Examples
    --------
    >>> Role("required")
    <Role.REQUIRED: 'required'>
    """

    OPTIONAL = "optional"
    REQUIRED = "required"
    EXCLUDED = "excluded"


#: What `how` may be: a name for all inputs, or a role for each of them.
How = Union[str, Sequence[Union[Role, str]]]

# The spellings that DataFrame.join takes for these joins.
_NAMED = {
    "full": "full",
    "outer": "full",
    "fullouter": "full",
    "left": "left",
    "leftouter": "left",
    "inner": "inner",
}


def roles_of(how: How, inputs: int) -> list[Role]:
    """Turn what the user passed as `how` into a role for every input."""
    if isinstance(how, str):
        name = _NAMED.get(how.lower().replace("_", ""))
        if name == "full":
            return [Role.OPTIONAL] * inputs
        if name == "inner":
            return [Role.REQUIRED] * inputs
        if name == "left":
            return [Role.REQUIRED] + [Role.OPTIONAL] * (inputs - 1)
        raise value_error(
            f"Unknown how={how!r}: it must be 'full', 'left', 'inner', or a list with one of "
            f"'optional', 'required', 'excluded' per input."
        )
    if not isinstance(how, Sequence):
        raise type_error(
            f"how must be 'full', 'left', 'inner' or a list of roles, not {type(how).__name__}."
        )
    return [_role(role, position) for position, role in enumerate(how)]


def _role(role: object, position: int) -> Role:
    if isinstance(role, Role):
        return role
    if not isinstance(role, str):
        raise type_error(
            f"The role of input {position} (counting from 0) must be a Role or a string, not "
            f"{type(role).__name__}."
        )
    try:
        return Role(role.lower())
    except ValueError:
        raise value_error(
            f"Unknown role {role!r} for input {position} (counting from 0): it must be "
            f"'optional', 'required' or 'excluded'."
        ) from None
