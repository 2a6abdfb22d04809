-- Days that sold more than the mean of their quarter: the sum of each day, joined with itself.
WITH daily AS (SELECT sale.day, quarter, sum(cents) AS total FROM sale JOIN day ON day.id = sale.day GROUP BY sale.day, quarter),
     mean AS (SELECT quarter, avg(total) AS usual FROM daily GROUP BY quarter)
  SELECT daily.quarter, count(*) FROM daily JOIN mean ON mean.quarter = daily.quarter
  WHERE total > usual GROUP BY daily.quarter ORDER BY daily.quarter;
