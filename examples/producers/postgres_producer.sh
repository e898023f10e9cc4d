#!/bin/sh
# Places an order and announces it, with nothing but psql.
#
#   postgres_producer.sh CONNINFO ITEM QUANTITY
#
# The database has the tables of orders_postgres.sql beside those of `postrider migrate`.
set -eu

if [ $# -ne 3 ]; then
  echo "usage: postgres_producer.sh CONNINFO ITEM QUANTITY" >&2
  exit 64
fi

# [place-order]
order=$(psql --no-psqlrc --quiet --tuples-only --no-align --set ON_ERROR_STOP=1 \
  --set item="$2" --set quantity="$3" "$1" <<'SQL'
WITH placed AS (
  INSERT INTO orders (item, quantity, total_cents)
  SELECT item, :'quantity'::integer, price_cents * :'quantity'::integer
  FROM stock
  WHERE item = :'item'
  RETURNING id, item, quantity, total_cents
)
INSERT INTO outbox_events (aggregate_type, aggregate_id, type, payload)
SELECT 'order', id::text, 'order.placed',
  json_build_object('orderId', id, 'item', item, 'quantity', quantity, 'totalCents', total_cents)::text
FROM placed
RETURNING aggregate_id;
SQL
)
# [place-order]

if [ -z "$order" ]; then
  echo "the shop does not sell this item: $2" >&2
  exit 1
fi
echo "order $order"
