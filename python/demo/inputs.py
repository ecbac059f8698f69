"""The six inputs of the demo, described once: which TPC-DS table, which column is the customer.

Everything else (the SQL that makes them, the join, the picture's labels) is derived from here.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

KEY = "customer_sk"
"""Name of the join key in every input and in the result."""

INDICATOR = "sources"
"""Column of the result with the positions of the inputs that know the customer."""


@dataclass(frozen=True)
class Input:
    """One TPC-DS fact table and the columns of it that the demo uses.

    Attributes
    ----------
    table
        TPC-DS name, e.g. ``store_sales``.
    label
        What people would call it; used in the picture.
    prefix
        Start of every output column, which keeps names unique across the six inputs.
    key, order, item, day
        Source columns: customer, order (or ticket), item and date.
    amount
        The money column that ranks purchases.
    measures
        Output name (without prefix) to source column, summed per customer.
    """

    table: str
    label: str
    prefix: str
    key: str
    order: str
    item: str
    day: str
    amount: str
    measures: dict[str, str]

    @property
    def always_set(self) -> str:
        """A column that is never null in this input: null in the result means "not here"."""
        return f"{self.prefix}_lines"


def _sales(channel: str, start: str, customer: str, order: str) -> Input:
    return Input(
        table=f"{channel}_sales",
        label=f"{channel} sales",
        prefix=channel,
        key=f"{start}_{customer}",
        order=f"{start}_{order}",
        item=f"{start}_item_sk",
        day=f"{start}_sold_date_sk",
        amount=f"{start}_net_paid",
        measures={
            "paid": f"{start}_net_paid",
            "tax": f"{start}_ext_tax",
            "discount": f"{start}_ext_discount_amt",
            "list_price": f"{start}_ext_list_price",
            "profit": f"{start}_net_profit",
        },
    )


def _returns(channel: str, start: str, customer: str, order: str, amount: str) -> Input:
    return Input(
        table=f"{channel}_returns",
        label=f"{channel} returns",
        prefix=f"{channel}_return",
        key=f"{start}_{customer}",
        order=f"{start}_{order}",
        item=f"{start}_item_sk",
        day=f"{start}_returned_date_sk",
        amount=f"{start}_{amount}",
        measures={
            "amount": f"{start}_{amount}",
            "tax": f"{start}_return_tax",
            "fee": f"{start}_fee",
            "refund": f"{start}_refunded_cash",
            "loss": f"{start}_net_loss",
        },
    )


INPUTS: tuple[Input, ...] = (
    _sales("store", "ss", "customer_sk", "ticket_number"),
    _sales("catalog", "cs", "bill_customer_sk", "order_number"),
    _sales("web", "ws", "bill_customer_sk", "order_number"),
    _returns("store", "sr", "customer_sk", "ticket_number", "return_amt"),
    _returns("catalog", "cr", "returning_customer_sk", "order_number", "return_amount"),
    _returns("web", "wr", "returning_customer_sk", "order_number", "return_amt"),
)


@dataclass(frozen=True)
class Variant:
    """One way of preparing the six inputs."""

    name: str
    title: str
    short: str


CUSTOMER = Variant("customer", "One row per customer in every input", "one row\nper customer")
DUPLICATES = Variant(
    "duplicates",
    "Several rows per customer, and every row without a customer",
    "several rows\nper customer",
)
VARIANTS: tuple[Variant, ...] = (CUSTOMER, DUPLICATES)


def input_file(data: Path, variant: Variant, source: Input) -> Path:
    """Where one prepared input lies below the data directory."""
    return data / variant.name / f"{source.table}.parquet"
