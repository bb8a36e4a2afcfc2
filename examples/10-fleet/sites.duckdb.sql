-- SPDX-License-Identifier: LGPL-2.1-or-later
-- A row a version, call site and clock (a second, a unit of work): how much it
-- grows by all workers together, how sure that is, and whether they agree.
create or replace view sites as
with workers as (
    select program, version, count(distinct process) as workers
    from digests group by program, version
), measured as (
    select program, version, function_id, "where", class, process, 's' as clock,
        sample_bytes, growth_bytes_per_s as growth, over_s as exposure
    from digests where site is not null and not suppressed
    union all
    select program, version, function_id, "where", class, process, 'unit',
        sample_bytes, growth_bytes_per_unit, units
    from digests where site is not null and not suppressed
), known as (
    -- One line of a version may be two sites: they add up.
    select program, version, function_id, clock, process,
        max_by("where", growth.estimate) as "where",
        bool_or(class = 'leak') as is_leak,
        sum(growth.estimate) as rate, sum(growth.variance) as variance,
        max(exposure) as exposure, max(sample_bytes) as sample_bytes
    from measured where growth.variance > 0 and exposure > 0
    group by program, version, function_id, clock, process
), weighed as (
    -- Who by chance kept less has the smaller variance, too, and would weigh more:
    -- each variance is that of all who sample alike, over its own time or work.
    select *, avg(variance * exposure) over alike / exposure as v
    from known window alike as
        (partition by program, version, function_id, clock, sample_bytes)
), fixed as (
    select *, sum(rate / v) over of_site / sum(1 / v) over of_site as pooled
    from weighed window of_site as
        (partition by program, version, function_id, clock)
), agreed as (
    -- Cochran 1954: Q. DerSimonian and Laird 1986: what they differ by, tau2.
    select program, version, function_id, clock, count(*) as having_it,
        any_value(pooled) as pooled, sum(1 / v) as weight,
        sum((rate - pooled) * (rate - pooled) / v) as q,
        greatest(0, (q - having_it + 1)
            / nullif(weight - sum(1 / v / v) / weight, 0)) as tau2
    from fixed group by program, version, function_id, clock
), spread as (
    select program, version, function_id, clock, any_value("where") as "where",
        count(*) filter (is_leak) as leaks,
        sum(rate / (v + coalesce(tau2, 0))) / sum(1 / (v + coalesce(tau2, 0)))
            as growth,
        1.96 / sqrt(sum(1 / (v + coalesce(tau2, 0)))) as half
    from fixed join agreed using (program, version, function_id, clock)
    group by program, version, function_id, clock
)
select program, version, clock, "where", function_id, having_it, workers,
    having_it / workers as share, leaks,
    pooled, pooled - 1.96 / sqrt(weight) as pooled_low,
    pooled + 1.96 / sqrt(weight) as pooled_high,
    q, having_it - 1 as freedom,
    -- Higgins and Thompson 2002: of what the rates differ by, not by chance.
    case when freedom > 0 then greatest(0, 1 - freedom / nullif(q, 0)) end as i2,
    growth, growth - half as low, growth + half as high
from agreed join spread using (program, version, function_id, clock)
    join workers using (program, version);

-- The first version that has it: by when its first worker began; has it means
-- that it surely grows, as a leak in most of those that see it grow, and in
-- one worker of twenty and more.
create or replace view first_versions as
with versions as (
    select program, version, min(started) as began
    from digests group by program, version
)
select program, arg_min("where", began) as "where", function_id,
    arg_min(version, began) as first_version, min(began) as since,
    count(*) as versions
from sites join versions using (program, version)
where clock = 's' and low > 0 and leaks > having_it / 2 and share >= 0.05
group by program, function_id;
