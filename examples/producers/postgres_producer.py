#!/usr/bin/python3
"""Places an order and announces it, with psycopg2.

    postgres_producer.py CONNINFO ITEM QUANTITY

The database has the tables of orders_postgres.sql beside those of `postrider migrate`.
"""

import json
import sys

import psycopg2


# [place-order]
def place_order(connection, item, quantity):
    """One transaction: the order, and the event that tells of it."""
    with connection, connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO orders (item, quantity, total_cents)"
            " SELECT item, %(quantity)s, price_cents * %(quantity)s"
            " FROM stock WHERE item = %(item)s RETURNING id, total_cents",
            {"item": item, "quantity": quantity},
        )
        order = cursor.fetchone()
        if order is None:
            raise LookupError(f"the shop does not sell this item: {item}")
        order_id, total_cents = order
        payload = {
            "orderId": order_id,
            "item": item,
            "quantity": quantity,
            "totalCents": total_cents,
        }
        cursor.execute(
            "INSERT INTO outbox_events (aggregate_type, aggregate_id, type, payload)"
            " VALUES ('order', %s, 'order.placed', %s)",
            (str(order_id), json.dumps(payload, ensure_ascii=False)),
        )
    return order_id
# [place-order]


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    connection = psycopg2.connect(sys.argv[1])
    print("order", place_order(connection, sys.argv[2], int(sys.argv[3])))
    connection.close()


if __name__ == "__main__":
    main()
