-- What the queries of this folder read: every type that PostgreSQL's manual has a chapter of, keys and no keys.
CREATE TYPE mood AS ENUM ('sad', 'calm', 'glad');
CREATE TYPE place AS (street text, number int);
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
CREATE FUNCTION twice(x int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT x * 2';
CREATE FUNCTION larger(a int, b int DEFAULT 2) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT CASE WHEN a > b THEN a ELSE b END';
CREATE FUNCTION upto(n int) RETURNS SETOF int LANGUAGE sql IMMUTABLE AS 'SELECT generate_series(1, n)';
CREATE FUNCTION halves(n int, OUT small int, OUT large int) LANGUAGE sql IMMUTABLE AS 'SELECT n / 2, n - n / 2';
CREATE FUNCTION joined(VARIADIC words text[]) RETURNS text LANGUAGE sql IMMUTABLE AS $$SELECT array_to_string(words, '-')$$;
CREATE FUNCTION near(a int, b int) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT abs(a - b) <= 1';
CREATE OPERATOR <~> (LEFTARG = int, RIGHTARG = int, FUNCTION = near, COMMUTATOR = <~>);
CREATE AGGREGATE product(int) (SFUNC = int4mul, STYPE = int, INITCOND = '1');

CREATE TABLE dept (
    id int PRIMARY KEY, name varchar(12) NOT NULL, code char(3), budget numeric(12,2), parent int, mood mood
);
CREATE TABLE emp (
    id int PRIMARY KEY, dept int, boss int, name text NOT NULL, grade smallint, salary numeric(10,2), hired date,
    active boolean, nick varchar(8)
);
CREATE TABLE item (a int, b int, c int, d text);
CREATE TABLE wide (
    id int PRIMARY KEY, i2 int2, i8 int8, n numeric, f8 float8, f4 float4, t text, v varchar(6), c char(4), bits bit(4),
    vb varbit, ok boolean, day date, ts timestamp, tz timestamptz, tm time, span interval, u uuid, by bytea,
    ip inet, net cidr, mac macaddr, mood mood, home place, size positive, span4 int4range, days daterange,
    ints int[], words text[], doc jsonb, js json, money money, at point, vec tsvector
);
CREATE TABLE point_of (id int PRIMARY KEY, x int, y int, label text) ;
CREATE TABLE sale (id int PRIMARY KEY, shop int, product text, sold date, amount numeric(8,2), n int);
CREATE TABLE tree (id int PRIMARY KEY, parent int, name text);
CREATE TABLE a (i int, j int);
CREATE TABLE b (i int, k int);
CREATE TABLE c (i int, z int);
CREATE TABLE part (id int, region text, v int, PRIMARY KEY (id, region)) PARTITION BY LIST (region);
CREATE TABLE part_n PARTITION OF part FOR VALUES IN ('n');
CREATE TABLE part_rest PARTITION OF part DEFAULT;
CREATE TABLE base (id int, v int);
CREATE TABLE child (w int) INHERITS (base);
CREATE VIEW rich AS SELECT id, name, dept, salary FROM emp WHERE salary > 50;
CREATE VIEW rich_depts AS SELECT d.name, count(*) AS n FROM rich r JOIN dept d ON d.id = r.dept GROUP BY d.name;
