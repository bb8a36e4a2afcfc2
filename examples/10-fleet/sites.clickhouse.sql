-- SPDX-License-Identifier: LGPL-2.1-or-later
-- The same for ClickHouse: sites.duckdb.sql says what each step is for. The
-- lines come from files; of a table with these columns it is the same query.
with digests as (
    select *, labels['version'] as version
    from file({digests:String}, JSONEachRow, '
        process String, program String, host String,
        labels Map(String, String), started DateTime64(3),
        sample_bytes Float64, over_s Float64, units Nullable(Float64), verdict String,
        hidden_bytes_per_s Nullable(Float64),
        site Nullable(String), function_id Nullable(String),
        where Nullable(String), class Nullable(String), suppressed Bool,
        growth_bytes_per_s Tuple(estimate Nullable(Float64),
            low Nullable(Float64), high Nullable(Float64),
            variance Nullable(Float64)),
        growth_bytes_per_unit Tuple(estimate Nullable(Float64),
            low Nullable(Float64), high Nullable(Float64),
            variance Nullable(Float64))')
), workers as (
    select program, version, count(distinct process) as workers,
        min(started) as began
    from digests group by program, version
), measured as (
    select program, version, sample_bytes,
        assumeNotNull(function_id) as function_id,
        assumeNotNull(`where`) as line, assumeNotNull(class) as class,
        process, measure.1 as clock,
        assumeNotNull(measure.2) as estimate, assumeNotNull(measure.3) as variance,
        assumeNotNull(measure.4) as exposure
    from digests array join [
        ('s', growth_bytes_per_s.estimate, growth_bytes_per_s.variance,
            toNullable(over_s)),
        ('unit', growth_bytes_per_unit.estimate,
            growth_bytes_per_unit.variance, units)] as measure
    where site is not null and not suppressed and measure.3 > 0 and measure.4 > 0
), known as (
    select program, version, function_id, clock, process,
        argMax(line, estimate) as place, max(class = 'leak') as is_leak,
        sum(estimate) as rate, sum(variance) as own, max(exposure) as over,
        max(sample_bytes) as sampled
    from measured group by program, version, function_id, clock, process
), weighed as (
    select *, avg(own * over) over alike / over as v from known
    window alike as (partition by program, version, function_id, clock, sampled)
), fixed as (
    select *, sum(rate / v) over of_site / sum(1 / v) over of_site as common
    from weighed window of_site as
        (partition by program, version, function_id, clock)
), agreed as (
    select program, version, function_id, clock, count() as having_it,
        any(common) as pooled, sum(1 / v) as weight,
        sum((rate - common) * (rate - common) / v) as q,
        weight - sum(1 / v / v) / weight as scale,
        if(scale > 0, greatest(0, (q - having_it + 1) / scale), 0) as tau2
    from fixed group by program, version, function_id, clock
), spread as (
    select program, version, function_id, clock, any(place) as place,
        countIf(is_leak) as leaks,
        sum(rate / (v + tau2)) / sum(1 / (v + tau2)) as growth,
        1.96 / sqrt(sum(1 / (v + tau2))) as half
    from fixed join agreed using (program, version, function_id, clock)
    group by program, version, function_id, clock
)
select program, version, clock, place as `where`, function_id, having_it,
    workers, having_it / workers as share, leaks, pooled, q,
    if(q > 0 and having_it > 1, greatest(0, 1 - (having_it - 1) / q), null) as i2,
    growth, growth - half as low, growth + half as high,
    argMinIf(version, began, low > 0 and leaks > having_it / 2 and share >= 0.05)
        over (partition by program, function_id, clock) as first_version
from agreed join spread using (program, version, function_id, clock)
    join workers using (program, version)
order by clock, leaks = 0, `where`, version
settings date_time_input_format = 'best_effort', input_format_null_as_default = 1,
    input_format_skip_unknown_fields = 1;
