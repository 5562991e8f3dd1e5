--- 1
BEGIN
--- 1 | $1 = '0'
select id,v from t where id>=$1
--- 1
select * from orders
--- 1
DECLARE "srv" CURSOR FOR select * from t
--- 1
FETCH FORWARD 1 FROM "srv"
--- 1
CLOSE "srv"
--- 1
copy t to stdout
--- 1
copy t (id,v) from stdin
--- 1
ROLLBACK
