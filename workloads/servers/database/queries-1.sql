-- Which regions sold how much in each quarter: a scan of all sales, two joins.
SELECT region, quarter, sum(units), sum(cents)
  FROM sale JOIN market ON market.id = sale.market JOIN day ON day.id = sale.day
  GROUP BY region, quarter ORDER BY region, quarter;
