{{ config(materialized="materialized_view") }}
SELECT name, COUNT(*) AS places FROM public.place GROUP BY name
