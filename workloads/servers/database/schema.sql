-- Sales of products in markets by day: one large table of facts, three small ones that say what its numbers mean. :rows is how
-- many sales there are. Everything comes from arithmetic, so the database is the same each time.
-- SQLite and PostgreSQL both read this.
BEGIN;
CREATE TABLE product(id INTEGER PRIMARY KEY, name TEXT, brand INTEGER, class TEXT);
CREATE TABLE market(id INTEGER PRIMARY KEY, city TEXT, region INTEGER);
CREATE TABLE day(id INTEGER PRIMARY KEY, month INTEGER, quarter INTEGER);
CREATE TABLE sale(product INTEGER, market INTEGER, day INTEGER, units INTEGER, cents INTEGER);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
  INSERT INTO product SELECT i, 'product ' || i, i % 40, 'class ' || (i % 8) FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60)
  INSERT INTO market SELECT i, 'city ' || i, i % 6 FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 360)
  INSERT INTO day SELECT i, (i - 1) / 30 + 1, (i - 1) / 90 + 1 FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :rows)
  INSERT INTO sale SELECT i * 7919 % 500 + 1, i % 5000 * 104729 % 60 + 1, i * 359 / 7 % 360 + 1, i % 9 + 1, i * 31 % 4000 + 99 FROM n;
CREATE INDEX sale_product ON sale(product);
COMMIT;
ANALYZE;
