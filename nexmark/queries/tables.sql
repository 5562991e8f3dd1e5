-- The streams of the benchmark. Their rows are not stored; `nexmark/src/tables.rs` changes that if asked to. They are
-- inserted in three batches per epoch, as a program that embeds the engine would.

CREATE TABLE person (
    id BIGINT NOT NULL,
    name VARCHAR NOT NULL,
    email_address VARCHAR NOT NULL,
    credit_card VARCHAR NOT NULL,
    city VARCHAR NOT NULL,
    state VARCHAR NOT NULL,
    date_time TIMESTAMP NOT NULL,
    extra VARCHAR NOT NULL
) WITH ('append_only' = 'true', 'materialized' = 'false');

CREATE TABLE auction (
    id BIGINT NOT NULL,
    item_name VARCHAR NOT NULL,
    description VARCHAR NOT NULL,
    initial_bid BIGINT NOT NULL,
    reserve BIGINT NOT NULL,
    date_time TIMESTAMP NOT NULL,
    expires TIMESTAMP NOT NULL,
    seller BIGINT NOT NULL,
    category BIGINT NOT NULL,
    extra VARCHAR NOT NULL
) WITH ('append_only' = 'true', 'materialized' = 'false');

CREATE TABLE bid (
    auction BIGINT NOT NULL,
    bidder BIGINT NOT NULL,
    price BIGINT NOT NULL,
    channel VARCHAR NOT NULL,
    url VARCHAR NOT NULL,
    date_time TIMESTAMP NOT NULL,
    extra VARCHAR NOT NULL,
    -- The time at which the bid was inserted; only q12 reads it.
    p_time TIMESTAMP NOT NULL
) WITH ('append_only' = 'true', 'materialized' = 'false');

-- The side input of q13: keys 0 to 9999, filled before the first event.
CREATE TABLE side_input (
    "key" BIGINT NOT NULL PRIMARY KEY,
    value VARCHAR NOT NULL
);
