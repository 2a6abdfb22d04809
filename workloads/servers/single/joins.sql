-- Two tables in turn: a look-up of each for every row of a third, thousands of rows of the one before the other has its turn.
WITH RECURSIVE turn(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM turn WHERE i < :turns)
SELECT i, CASE i % 2
    WHEN 0 THEN (SELECT sum(units) FROM asked JOIN even ON even.id = asked.even WHERE i >= 0)
    ELSE (SELECT sum(units) FROM asked JOIN odd ON odd.id = asked.odd WHERE i >= 0) END
  FROM turn;
