#!/bin/sh
# Places an order and announces it, with nothing but the sqlite3 shell.
#
#   sqlite_producer.sh DATABASE ITEM QUANTITY
#
# The database is that of the example shop.
set -eu

usage() {
  echo "usage: sqlite_producer.sh DATABASE ITEM QUANTITY" >&2
  exit 64
}
[ $# -eq 3 ] || usage
database=$1
quantity=$3
case $quantity in '' | *[!0-9]*) usage ;; esac
# The shell has no parameters: a text becomes a literal, with its quotes doubled.
item=$(printf '%s' "$2" | sed "s/'/''/g")

# [place-order]
order=$(sqlite3 -bail -batch -cmd '.timeout 5000' "$database" <<SQL
BEGIN IMMEDIATE;
INSERT INTO orders (item, quantity, total_cents, status)
SELECT item, $quantity, price_cents * $quantity, 'placed'
FROM stock
WHERE item = '$item';

INSERT INTO outbox_events (aggregate_type, aggregate_id, type, payload)
SELECT 'order', id, 'order.placed',
  json_object('orderId', id, 'item', item, 'quantity', quantity, 'totalCents', total_cents)
FROM orders
WHERE id = last_insert_rowid()
RETURNING aggregate_id;
COMMIT;
SQL
)
# [place-order]

if [ -z "$order" ]; then
  echo "the shop does not sell this item: $2" >&2
  exit 1
fi
echo "order $order"
