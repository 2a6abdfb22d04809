-- Two tables of as many rows, and in which order rows are asked for. From arithmetic, so that it is the same each time.
PRAGMA page_size = 4096;
BEGIN;
CREATE TABLE even(id INTEGER PRIMARY KEY, units INTEGER, text TEXT);
CREATE TABLE odd(id INTEGER PRIMARY KEY, units INTEGER, text TEXT);
CREATE TABLE asked(even INTEGER, odd INTEGER);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :rows)
  INSERT INTO even SELECT i, i * 7919 % 1000, printf('%0160d', i) FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :rows)
  INSERT INTO odd SELECT i, i * 104729 % 1000, printf('%0160d', i) FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :asked)
  INSERT INTO asked SELECT i * 7919 % :rows + 1, i * 104729 % :rows + 1 FROM n;
COMMIT;
