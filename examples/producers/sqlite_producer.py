#!/usr/bin/python3
"""Places an order and announces it, with nothing but Python's own sqlite3.

    sqlite_producer.py DATABASE ITEM QUANTITY

The database is that of the example shop. Any program that can write a row can be a producer: a relay
carries the event on as soon as the transaction has committed.
"""

import json
import sqlite3
import sys


# [place-order]
def place_order(connection, item, quantity):
    """One transaction: the order, and the event that tells of it."""
    with connection:  # commits, or rolls back when something is raised
        connection.execute("BEGIN IMMEDIATE")
        order = connection.execute(
            "INSERT INTO orders (item, quantity, total_cents, status)"
            " SELECT item, :quantity, price_cents * :quantity, 'placed'"
            " FROM stock WHERE item = :item RETURNING id, total_cents",
            {"item": item, "quantity": quantity},
        ).fetchone()
        if order is None:
            raise LookupError(f"the shop does not sell this item: {item}")
        order_id, total_cents = order
        payload = {
            "orderId": order_id,
            "item": item,
            "quantity": quantity,
            "totalCents": total_cents,
        }
        connection.execute(
            "INSERT INTO outbox_events (aggregate_type, aggregate_id, type, payload)"
            " VALUES ('order', ?, 'order.placed', ?)",
            (str(order_id), json.dumps(payload, ensure_ascii=False)),
        )
    return order_id
# [place-order]


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    # None: transactions begin where the code says so.
    connection = sqlite3.connect(sys.argv[1], isolation_level=None)
    print("order", place_order(connection, sys.argv[2], int(sys.argv[3])))
    connection.close()


if __name__ == "__main__":
    main()
