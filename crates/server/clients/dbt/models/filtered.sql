{{ config(materialized="view") }}
SELECT id, name FROM {{ ref("copied") }} WHERE name <> ''
