-- Which brands brought most: a scan, a join, a sort.
SELECT brand, class, count(*), sum(cents) AS total
  FROM sale JOIN product ON product.id = sale.product
  GROUP BY brand, class ORDER BY total DESC, brand, class LIMIT 20;
