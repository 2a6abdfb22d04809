-- Two tables and a join: enough work that memory matters, small enough for a short demonstration.
CREATE TABLE customer(id INTEGER PRIMARY KEY, name TEXT, region INTEGER);
CREATE TABLE purchase(id INTEGER PRIMARY KEY, customer INTEGER, amount INTEGER);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4000)
  INSERT INTO customer SELECT i, 'customer ' || i, i % 7 FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
  INSERT INTO purchase SELECT i, (i * 7919) % 4000 + 1, i % 100 FROM n;
SELECT region, count(*), sum(amount) FROM purchase JOIN customer ON customer.id = purchase.customer
  GROUP BY region ORDER BY region;
