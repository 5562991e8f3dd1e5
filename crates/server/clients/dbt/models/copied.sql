{{ config(materialized="table") }}
SELECT id, name FROM public.sample
