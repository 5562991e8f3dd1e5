{{ config(materialized="materialized_view") }}
SELECT SUM(places) AS places FROM {{ ref("by_name") }}
