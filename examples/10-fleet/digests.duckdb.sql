-- SPDX-License-Identifier: LGPL-2.1-or-later
-- Reads the lines of `seep digest` of a fleet. DIGESTS is their files: a path or a
-- pattern. The columns are named, so that a file in which a column is null
-- everywhere is read as the others are.
create or replace table digests as
select *, coalesce(labels['version'], '') as version
from read_json(getvariable('DIGESTS'), format = 'newline_delimited', columns = {
    process: 'VARCHAR', program: 'VARCHAR', host: 'VARCHAR',
    labels: 'MAP(VARCHAR, VARCHAR)', started: 'TIMESTAMP',
    sample_bytes: 'DOUBLE', over_s: 'DOUBLE', units: 'DOUBLE', verdict: 'VARCHAR',
    hidden_bytes_per_s: 'DOUBLE',
    site: 'VARCHAR', function_id: 'VARCHAR', "where": 'VARCHAR',
    class: 'VARCHAR', suppressed: 'BOOLEAN',
    growth_bytes_per_s:
        'STRUCT(estimate DOUBLE, low DOUBLE, high DOUBLE, variance DOUBLE)',
    growth_bytes_per_unit:
        'STRUCT(estimate DOUBLE, low DOUBLE, high DOUBLE, variance DOUBLE)'
});
