--- 1 | $1 = '0'
select id,v from t where id>=$1
