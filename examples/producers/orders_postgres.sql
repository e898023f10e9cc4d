-- The tables of a shop, for the producers on PostgreSQL.
CREATE TABLE stock (
  item text PRIMARY KEY,
  price_cents bigint NOT NULL
);
CREATE TABLE orders (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  item text NOT NULL REFERENCES stock (item),
  quantity integer NOT NULL CHECK (quantity > 0),
  total_cents bigint NOT NULL
);
