"""Chances that come round: every card of a deck is dealt before the first one comes again."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random


class Deck:
    """Names with weights, dealt in an order that the seed decides on."""

    def __init__(self, seed: object, weights: Mapping[str, int]) -> None:
        self._seed = seed
        self._cards = [name for name, weight in weights.items() for _ in range(weight)]

    def card(self, number: int) -> str:
        """The card with that number, whatever was dealt before."""
        round_, place = divmod(number, len(self._cards))
        cards = list(self._cards)
        Random(f"{self._seed} {round_}").shuffle(cards)
        return cards[place]
