#!/usr/bin/python3
"""Ships an order: a handler of jobs for `postrider worker --exec`.

    ship_order.py DATABASE

The event comes on standard input, the ids in the environment, and the exit code is the answer.
"""

# [handler]
import json
import os
import sqlite3
import sys

DONE, RETRY = 0, 75  # every other exit code is final


def ship(database, event):
    """A job may come twice. The key of its effect makes the second time harmless."""
    order = json.loads(event["payload"])
    with sqlite3.connect(database) as connection:
        connection.execute(
            "INSERT INTO shipments (event_id, order_id, item) VALUES (?, ?, ?)"
            " ON CONFLICT (event_id) DO NOTHING",
            (event["id"], order["orderId"], order["item"]),
        )


def main():
    event = json.load(sys.stdin)
    try:
        ship(sys.argv[1], event)
    except sqlite3.OperationalError:  # locked, or not there yet: later it may work
        return RETRY
    except KeyError as missing:  # will never work; a code of our own says why
        tell({"outcome": "fail", "code": "bad_order", "detail": f"no {missing} in the order"})
    return DONE


def tell(result):
    """Optional: says more than an exit code can."""
    os.write(int(os.environ["POSTRIDER_RESULT_FD"]), json.dumps(result).encode())


if __name__ == "__main__":
    sys.exit(main())
# [handler]
