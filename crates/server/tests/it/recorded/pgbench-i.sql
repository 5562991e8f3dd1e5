--- 1
drop table if exists pgbench_accounts, pgbench_branches, pgbench_history, pgbench_tellers
--- 1
create table pgbench_history(tid int,bid int,aid    int,delta int,mtime timestamp,filler char(22))
--- 1
create table pgbench_tellers(tid int not null,bid int,tbalance int,filler char(84)) with (fillfactor=100)
--- 1
create table pgbench_accounts(aid    int not null,bid int,abalance int,filler char(84)) with (fillfactor=100)
--- 1
create table pgbench_branches(bid int not null,bbalance int,filler char(88)) with (fillfactor=100)
--- 1
begin
--- 1
truncate table pgbench_accounts, pgbench_branches, pgbench_history, pgbench_tellers
--- 1
insert into pgbench_branches(bid,bbalance) values(1,0)
--- 1
insert into pgbench_tellers(tid,bid,tbalance) values (1,1,0)
--- 1
insert into pgbench_tellers(tid,bid,tbalance) values (2,1,0)
--- 1
insert into pgbench_tellers(tid,bid,tbalance) values (3,1,0)
--- 1
insert into pgbench_tellers(tid,bid,tbalance) values (4,1,0)
--- 1
insert into pgbench_tellers(tid,bid,tbalance) values (5,1,0)
--- 1
insert into pgbench_tellers(tid,bid,tbalance) values (6,1,0)
--- 1
insert into pgbench_tellers(tid,bid,tbalance) values (7,1,0)
--- 1
insert into pgbench_tellers(tid,bid,tbalance) values (8,1,0)
--- 1
insert into pgbench_tellers(tid,bid,tbalance) values (9,1,0)
--- 1
insert into pgbench_tellers(tid,bid,tbalance) values (10,1,0)
--- 1
copy pgbench_accounts from stdin with (freeze on)
--- 1
commit
--- 1
vacuum analyze pgbench_branches
--- 1
vacuum analyze pgbench_tellers
--- 1
vacuum analyze pgbench_accounts
--- 1
vacuum analyze pgbench_history
--- 1
alter table pgbench_branches add primary key (bid)
--- 1
alter table pgbench_tellers add primary key (tid)
--- 1
alter table pgbench_accounts add primary key (aid)
