# SPDX-License-Identifier: LGPL-2.1-or-later
"""Each lint finds the fault that it is for, and passes what is right."""
import json
import os
import shutil
import subprocess

import pytest

import atomics
import format as clang_format
import headers
import json_keys
import layers
import links
import namesakes
import sentences
import shell
import sizes
import spdx
import symbols
import tidy
import words

SPDX = 'SPDX-License' + '-Identifier: LGPL-2.1-or-later'
SOURCE = os.environ.get('SEEP_SOURCE',
                        os.path.join(os.path.dirname(__file__), '..', '..'))


def plant(root, path, text):
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


@pytest.mark.parametrize('path, line', [
    ('src/base/x.c', '#include "format/layout.h"'),
    ('src/format/x.c', '#include "record/ring.h"'),
    ('src/capture/native/x.c', '#include "seep/recording.h"'),
    ('src/capture/native/x.c', '#include "capture/python/merge.h"'),
    ('src/record/x.c', '#include "capture/native/unwind.h"'),
    ('src/record/x.c', '#include <stdio.h>'),
    ('src/reader/report/x.c', '#include "record/ring.h"'),
    ('src/reader/report/x.c', '#include "preload/real.h"'),
    ('src/reader/statistics/x.c', '#include "reader/judge/sites.h"'),
    ('src/reader/process/x.c', '#include "reader/report/build.h"'),
    ('src/reader/statistics/x.c', '#include "words/units.h"'),
    ('src/reader/judge/x.c', '#include <elfutils/libdw.h>'),
    ('src/held/x.c', '#include <libelf.h>'),
    ('src/reader/judge/x.c', '#include <jansson.h>'),
    ('src/capture/native/x.c', '#include <elfutils/libdw.h>'),
    ('src/cuda/x.c', '#include <cuda.h>'),
    ('tools/seep/read/x.c', '#include "record/ring.h"'),
    ('tools/seep/read/x.c', '#  include "preload/options.h"'),
    ('tools/seep/options/x.c', '#include "json/json.h"'),
    ('tools/seep/probe/x.c', '#include "reader/symbols/where.h"'),
    ('tools/seep/top/x.c', '#include <libxml/xmlwriter.h>'),
    ('include/seep/x.h', '#include "base/hash.h"'),
    ('src/base/x.c', '#include "absent.h"'),
    ('src/other/x.c', ''),
    ('src/reader/x.c', ''),
])
def test_an_include_against_the_layers_is_a_fault(tmp_path, path, line):
    plant(tmp_path, path, '\n' + line + '\n')

    faults = layers.check(str(tmp_path))

    assert len(faults) == 1
    assert faults[0].startswith(path)


def test_includes_along_the_layers_are_no_fault(tmp_path):
    plant(tmp_path, 'src/reader/symbols/x.c',
          '#include <elfutils/libdw.h>\n#include "format/layout.h"\n'
          '#include "seep/recording.h"\n#include "reader/report/report.h"\n')
    plant(tmp_path, 'tools/seep/json/x.c', '#include <jansson.h>\n'
          '#include "reader/report/report.h"\n#include "json/json.h"\n'
          '#include "words/words.h"\n')
    plant(tmp_path, 'tools/seep/options/x.c', '#include "text/page.h"\n'
          '#include "words/units.h"\n')
    plant(tmp_path, 'tools/seep/cmd_x.c', '#include "verbs.h"\n'
          '#include "json/json.h"\n')
    plant(tmp_path, 'src/capture/native/x.c', '#include "seep/stack.h"\n'
          '#include "base/hash.h"\n#include <libunwind.h>\n')

    assert layers.check(str(tmp_path)) == []


def test_a_cycle_in_the_layer_table_is_a_fault(tmp_path, monkeypatch):
    monkeypatch.setitem(layers.ROOMS, 'src/base', {'src/format'})

    faults = layers.check(str(tmp_path))

    assert len(faults) == 1 and 'a cycle' in faults[0]


def test_a_step_against_the_layers_that_is_left_is_told_once_it_is_gone(
        tmp_path, monkeypatch):
    monkeypatch.setattr(layers, 'LEFT', [('src/base', 'src/cuda'),
                                         ('src/base', 'src/record')])
    plant(tmp_path, 'src/base/x.c', '#include "record/ring.h"\n')

    faults = layers.check(str(tmp_path), whole=True)

    assert len(faults) == 1 and 'src/cuda any more' in faults[0]


@pytest.mark.parametrize('code', [
    'atomic_store(&x, 1);',
    'x = atomic_fetch_add (&x, 1);',
    '__sync_synchronize();',
    'atomic_store_explicit(&x, 1, memory_order_release);',
    'atomic_thread_fence(memory_order_acquire);',
    '/* Release: for the reader. */\nx = memory_order_acq_rel;',
    '/* It pairs with nothing near. */' + '\n' * 8 + 'memory_order_release;',
])
def test_an_atomic_without_order_or_partner_is_a_fault(tmp_path, code):
    plant(tmp_path, 'src/record/x.c', code + '\n')

    assert len(atomics.check(str(tmp_path))) == 1


@pytest.mark.parametrize('code', [
    'atomic_store_explicit(&x, 1, memory_order_relaxed);',
    'atomic_init(&x, 1);',
    '/* atomic_store(&x) would be too strong, memory_order_release not. */',
    '/*\n * Release: pairs\n * with the load in a.c.\n */\n'
    'atomic_store_explicit(&x, 1, memory_order_release);',
    'memory_order_acquire; /* pairs with the store in a.c */',
    '/* atomic exception: a builtin, the field is plain. */\n'
    '__atomic_load_n(&x, __ATOMIC_RELAXED);',
])
def test_an_atomic_with_order_and_partner_is_no_fault(tmp_path, code):
    plant(tmp_path, 'src/record/x.c', code + '\n')

    assert atomics.check(str(tmp_path)) == []


@pytest.mark.parametrize('text', [
    '', '\n\n\n/* ' + SPDX + ' */\n', '/* SPDX: MIT */\n',
    '/* ' + SPDX + ' */\n/* ' + SPDX + ' */\n'])
def test_a_file_without_one_licence_line_on_top_is_a_fault(tmp_path, text):
    plant(tmp_path, 'src/x.c', text)
    plant(tmp_path, 'src/right.c', '/* ' + SPDX + ' */\n')

    assert len(spdx.check(str(tmp_path))) == 1


def test_what_is_too_long_is_a_fault(tmp_path):
    body = '    x++;\n'
    plant(tmp_path, 'src/file.c', 'int x;\n' * 901)
    plant(tmp_path, 'src/function.c',
          'int x;\n' * 40 + 'void f(void)\n{\n' + body * 61 + '}\n')
    plant(tmp_path, 'src/right.c',
          ('void f(void)\n{\n' + body * 60 + '}\n') * 9)
    plant(tmp_path, 'src/x.py', '#' * 81 + '\n')

    faults = sizes.check(str(tmp_path))

    assert [fault.split(':')[0] for fault in faults] == [
        'src/file.c', 'src/function.c', 'src/x.py']


def test_a_source_that_is_too_short_is_a_fault(tmp_path):
    excused = next(iter(sizes.SHORT))
    plant(tmp_path, 'src/base/x.c', 'int x;\n' * 99)
    for path in 'src/right.c', 'src/x.h', 'tests/x.c', excused:
        plant(tmp_path, path,
              'int x;\n' * (100 if path == 'src/right.c' else 5))

    assert sizes.check(str(tmp_path)) == [
        'src/base/x.c:1: sizes: 99 lines, the least is 100: join it to the '
        'file that it serves']


def test_an_excuse_of_the_lint_of_sizes_that_nobody_needs_is_a_fault(tmp_path):
    for path in sizes.SHORT:
        plant(tmp_path, path, 'int x;\n')
    assert sizes.check(str(tmp_path), whole=True) == []
    for path in sizes.SHORT:
        plant(tmp_path, path, 'int x;\n' * 100)

    assert len(sizes.check(str(tmp_path), whole=True)) == len(sizes.SHORT)


@pytest.mark.parametrize('text', [
    'see /ro' 'ot/x', 'in /wo' 'rk/x', 'from py' 'pi.org', 'TO' 'DO later',
    '@au' 'thor me'])
def test_a_word_of_one_machine_is_a_fault(tmp_path, text):
    plant(tmp_path, 'README.md', text + '\n')
    plant(tmp_path, 'right.md', 'the workers of /usr/work\n')

    assert len(words.check(str(tmp_path))) == 1


@pytest.mark.parametrize('path, is_read', [
    ('.git', False), ('build-asan.log', False), ('build/config.h', False),
    ('src/build/x.c', False), ('src/build.h', True), ('.ci/run', True)])
def test_what_is_made_is_no_part_of_the_tree(tmp_path, path, is_read):
    plant(tmp_path, path, 'see /ro' + 'ot/x\n')

    assert bool(words.check(str(tmp_path))) == is_read


def use(root, header, *users):
    for user in users:
        plant(root, user, f'#include "{header}"\n')


def test_a_header_that_needs_another_is_a_fault(tmp_path):
    plant(tmp_path, 'src/base/wrong.h', 'uint32_t seep_x(void);\n')
    plant(tmp_path, 'src/base/right.h',
          '#include <stdint.h>\nuint32_t seep_x(void);\n')
    for name in ('wrong', 'right'):
        use(tmp_path, f'base/{name}.h', f'src/base/{name}_a.c',
            f'src/base/{name}_b.c')

    faults = headers.check(str(tmp_path))

    assert len(faults) == 1
    assert 'wrong.h' in faults[0] and 'uint32_t' in faults[0]


def test_a_header_that_lies_beside_one_of_the_system_is_no_fault(tmp_path):
    plant(tmp_path, 'src/base/elf.h', '/* No Elf64_Ehdr. */\n')
    plant(tmp_path, 'src/base/x.h', '#include <elf.h>\n'
          'void seep_x(Elf64_Ehdr *header);\n')
    for name in ('elf', 'x'):
        use(tmp_path, f'base/{name}.h', f'src/base/{name}_a.c',
            f'tools/seep/{name}_b.c')

    assert headers.check(str(tmp_path)) == []


def test_a_header_of_one_file_is_a_fault(tmp_path):
    plant(tmp_path, 'include/seep/x.h', '')
    plant(tmp_path, 'src/base/one.h', '')
    use(tmp_path, 'base/one.h', 'src/base/one.c')
    plant(tmp_path, 'tools/seep/text/two.h', '')
    use(tmp_path, 'text/two.h', 'tools/seep/text/two.c', 'tools/seep/a.c')

    faults = headers.check(str(tmp_path))

    assert len(faults) == 1
    assert faults[0].startswith('src/base/one.h') and 'one.c' in faults[0]


@pytest.mark.parametrize('one, other', [
    ('#define SEEP_X 1', '#define SEEP_X 2'),
    ('void seep_x(void);', 'int seep_x(void);'),
    ('struct seep_x { int a; };', 'enum seep_x { SEEP_A };'),
])
def test_two_headers_with_one_name_are_a_fault(tmp_path, one, other):
    plant(tmp_path, 'src/capture/native/x.h', one + '\n')
    plant(tmp_path, 'src/reader/report/x.h', other + '\n')

    faults = namesakes.check(str(tmp_path))

    assert faults and faults[0].startswith('src/reader/report/x.h:1:')


def test_a_header_of_the_tool_may_include_one_of_src(tmp_path):
    plant(tmp_path, 'src/base/x.h', '#ifndef X\n#define X\n'
          'struct seep_x { int a; };\n#endif\n')
    for name in ('a', 'b'):
        plant(tmp_path, f'tools/seep/{name}.h', '#include "base/x.h"\n'
              f'void seep_{name}(struct seep_x *x);\n')

    assert namesakes.check(str(tmp_path)) == []


def compiled(root, name, code):
    source = plant(root, f'{name}.c', code)
    built = root / f'{name}.o'
    subprocess.run(['cc', '-c', str(source), '-o', str(built)], check=True)
    return str(built)


def archived(root, name, code):
    archive = root / f'{name}.a'
    subprocess.run(['ar', 'rcs', str(archive), compiled(root, name, code)],
                   check=True)
    return str(archive)


def test_a_symbol_of_two_libraries_is_a_fault(tmp_path):
    module = tmp_path / 'libseep.so.p'
    module.mkdir()
    one = archived(tmp_path, 'one', 'int seep_x; static int seep_y;')
    other = archived(tmp_path, 'other', 'int seep_z; static int seep_y;')
    compiled(module, 'x', 'void seep_z(void) {} void seep_x(void);'
             'void seep_w(void) { seep_x(); }')

    faults = namesakes.check(str(tmp_path), one, other,
                             str(tmp_path / 'libseep.so'))

    assert len(faults) == 1
    assert 'seep_z' in faults[0] and 'x.o' in faults[0]


def test_other_formatting_is_a_fault(tmp_path):
    shutil.copy(os.path.join(SOURCE, '.clang-format'), tmp_path)
    plant(tmp_path, 'src/wrong.c', 'int x ( void ) { return 1; }\n')
    plant(tmp_path, 'src/right.c', 'int x(void)\n{\n    return 1;\n}\n')

    faults = clang_format.check(str(tmp_path))

    assert len(faults) == 1
    assert 'src/wrong.c' in faults[0]


def test_what_tidy_finds_is_a_fault(tmp_path):
    shutil.copy(os.path.join(SOURCE, '.clang-tidy'), tmp_path)
    source = plant(tmp_path, 'src/x.c',
                   'int x(int a);\nint x(int a)\n{\n    if (a)\n'
                   '        return 1;\n    return 0;\n}\n')
    plant(tmp_path, 'build/compile_commands.json', json.dumps([{
        'directory': str(tmp_path), 'file': str(source),
        'command': f'cc -Wnot-of-clang -c {source}'}]))

    faults = tidy.check(str(tmp_path), str(tmp_path / 'build'))

    assert len(faults) == 1
    assert 'src/x.c:4' in faults[0] and 'braces' in faults[0]


def test_what_shellcheck_finds_is_a_fault(tmp_path):
    plant(tmp_path, 'tools/wrong', '#!/bin/sh\nrm $1\n')
    plant(tmp_path, 'tools/right', '#!/bin/sh\nrm "$1"\n')

    faults = shell.check(str(tmp_path))

    assert faults and all('tools/wrong' in fault for fault in faults)


RIGHT_TLS = ('static __thread long count '
             '__attribute__((tls_model("initial-exec")));\n')
RIGHT = '''
#include <stddef.h>
__attribute__((visibility("default"))) void *malloc(size_t size);
''' + RIGHT_TLS + '''
void *malloc(size_t size) { count += (long)size; return NULL; }
'''
FLAGS = ['-shared', '-fPIC', '-O1', '-fvisibility=hidden', '-w',
         '-Wl,-z,now', '-Wl,-z,defs']


def library(tmp_path, code, *flags):
    plant(tmp_path, 'src/preload/hooks.def',
          '/* X(name, result, arguments) */\nSEEP_HOOK(malloc, x)\n')
    source = plant(tmp_path, 'lib.c', code)
    built = tmp_path / 'libseep.so'
    subprocess.run(['cc', *FLAGS, str(source), '-o', str(built), *flags],
                   check=True)
    return symbols.check(str(tmp_path), str(built))


def test_a_right_preload_has_no_fault(tmp_path):
    assert library(tmp_path, RIGHT) == []


EXPORT = '__attribute__((visibility("default"))) '


@pytest.mark.parametrize('code, flags, what', [
    (RIGHT + EXPORT + 'int extra;', [], 'exports extra'),
    (RIGHT.replace('malloc', 'other'), [], 'does not export malloc'),
    (RIGHT, ['-Wl,--no-as-needed', '-lm'], 'needs libm.so.6'),
    (RIGHT, ['-Wl,-z,lazy'], 'bound lazily'),
    (RIGHT + RIGHT_TLS.replace('count', 'more[9]') + EXPORT
     + 'long x(int i) { return more[i]++; }', [], 'static TLS'),
    (RIGHT.replace(' __attribute__((tls_model("initial-exec")))', ''), [],
     'by a call'),
    (RIGHT + 'void abort(void);' + EXPORT + 'int x(void) { abort(); }', [],
     'refers to abort'),
    (RIGHT + '#include <stdio.h>\n' + EXPORT
     + 'int x(int i) { printf("%d", i); }', [], 'refers to printf'),
    # Of the C library under which this was written, first in 2.35.
    (RIGHT + 'void *_dl_find_object();' + EXPORT
     + 'void *x(void *a) { return _dl_find_object(a, a); }', [],
     'needs GLIBC_2.35'),
])
def test_what_would_harm_a_worker_is_a_fault(tmp_path, code, flags, what):
    faults = library(tmp_path, code, *flags)

    assert any(what in fault for fault in faults), faults


def test_an_archive_that_refers_to_free_is_a_fault(tmp_path):
    library(tmp_path, RIGHT)
    source = plant(tmp_path, 'a.c', 'void free(void *); int own(void);'
                   'void f(void *x) { free(x); own(); }')
    other = plant(tmp_path, 'b.c', 'int own(void) { return 1; }')
    for file in (source, other):
        subprocess.run(['cc', '-c', str(file), '-o', f'{file}.o'], check=True)
    subprocess.run(['ar', 'rcs', str(tmp_path / 'x.a'), f'{source}.o',
                    f'{other}.o'], check=True)

    faults = symbols.check(str(tmp_path), str(tmp_path / 'libseep.so'),
                           str(tmp_path / 'x.a'))

    assert faults == ['x.a: symbols: refers to free']


TOLD = 'fputs("; it is surely no leak", file);'


@pytest.mark.parametrize('source, claims', [
    (TOLD, ''),
    (TOLD, 'holds("it is surely no leak");'),
    (TOLD, 'fails("it is surely no leak");'),
    (TOLD, 'says("it is surely no leak"); fails("it is surely no leak");'),
    (TOLD, '/* holds("it is surely no leak"); '
     'fails("it is surely no leak"); */'),
    ('fprintf(file, "%s grows and "\n"grows for %zu s", a, b);',
     'holds("it grows and grows for 2 h"); fails("it grows and");'),
])
def test_a_sentence_without_both_tests_is_a_fault(tmp_path, source, claims):
    plant(tmp_path, 'tools/seep/words/verdict_x.c', '\n' + source + '\n')
    plant(tmp_path, 'tests/unit/test_claims_x.c', claims)

    faults = sentences.check(str(tmp_path))

    assert len(faults) == 1
    assert faults[0].startswith('tools/seep/words/verdict_x.c:2: ')


def test_a_sentence_with_both_tests_is_none(tmp_path):
    plant(tmp_path, 'tools/seep/words/reasons.c',
          TOLD + '/* no "text at all" */\n'
          '#include "some file.h"\nfputs(" (", file);')
    plant(tmp_path, 'tests/unit/test_claims.c',
          'holds("and it is surely "\n"no leak"); '
          'fails("it is surely no leak of 2 MiB");')

    assert not sentences.check(str(tmp_path))


@pytest.mark.parametrize('source', [
    'seep_json_put(object, "new_key", 1);',
    'seep_json_put_text_or_null(object,\n    "new_key", text);',
    'SEEP_JSON_COPY(object, &site->kept, known_key,\n    new_key);',
    'json_pack("{s:o,s:o}", "known_key", a(b), "new_key", c);',
    'print_member(&out, ",", "new_key", value);',
])
def test_a_key_of_the_json_stands_on_its_page(tmp_path, source):
    plant(tmp_path, 'tools/seep/json/x.c', source)
    plant(tmp_path, 'docs/json.md', '`known_key`, and new_key\n')

    assert json_keys.check(str(tmp_path)) == [
        'tools/seep/json/x.c: json: `new_key` is not in docs/json.md']

    plant(tmp_path, 'docs/json.md', '`known_key`, `new_key` (why)\n')
    assert not json_keys.check(str(tmp_path))


@pytest.mark.parametrize('text, count', [
    ('[a](there.md), `src/base/x.c`, `src/{base,other}/*`', 0),
    ('[a](https://example.com/absent), `src/base/cmd_VERB.c`', 0),
    ('[a](absent.md)', 1),
    ('see `src/base/absent.c`', 1),
    ('see `src/{base,absent}/`', 1),
    ('A new file `src/base/new.c`:', 0),
    ('`tests/test_x.py::test_a`, `tests/test_x.c::a_sentence`', 0),
    ('`tests/test_x.py::test_b`, `tests/absent.py::test_a`', 2),
])
def test_what_a_page_points_to_is_there(tmp_path, text, count):
    plant(tmp_path, 'there.md', '')
    plant(tmp_path, 'src/base/x.c', '')
    plant(tmp_path, 'src/other/x.c', '')
    plant(tmp_path, 'tests/test_x.py', 'def test_a():\n    test_b()\n')
    plant(tmp_path, 'tests/test_x.c', 'static void a_sentence(void **state)\n')
    plant(tmp_path, 'page.md', text + '\n')

    assert len(links.check(str(tmp_path))) == count
