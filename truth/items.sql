-- A table of 200,000 items, and the same items asked for in the table's order and in a mixed one.
create table item (id integer primary key, price integer, pad text);
with recursive n (i) as (select 0 union all select i + 1 from n where i < 199999)
insert into item select i, i * 7 % 1000, printf('%0100d', i) from n;
create table sorted (id integer);
insert into sorted select id from item;
create table mixed (id integer);
insert into mixed select id * 77773 % 200000 from item;
