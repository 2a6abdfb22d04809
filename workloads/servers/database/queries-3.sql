-- The sales of one class in one region, month by month: by the index, so in no order that the disk or a cache likes.
SELECT month, count(*), sum(units), max(cents)
  FROM product JOIN sale ON sale.product = product.id
       JOIN market ON market.id = sale.market JOIN day ON day.id = sale.day
  WHERE class = 'class 3' AND region < 3
  GROUP BY month ORDER BY month;
SELECT city, count(DISTINCT sale.product)
  FROM sale JOIN market ON market.id = sale.market WHERE units > 7 GROUP BY city ORDER BY city;
