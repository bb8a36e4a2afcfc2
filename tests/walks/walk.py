# SPDX-License-Identifier: LGPL-2.1-or-later
"""Does one of the changes that CONTRIBUTING.md walks through, as written.

walk.py SOURCE FOLDER TITLE: copies SOURCE to FOLDER, applies the edits of the
section TITLE and runs its commands. The edits of tests alone come first: with
them the tests must fail, and with all of them they must pass.

Invariant: what is done is what stands in CONTRIBUTING.md; nothing of a change
is known here.
"""
import fcntl
import glob
import os
import re
import shutil
import subprocess
import sys

COPIED = ('include', 'share', 'src', 'tools', 'tests', 'examples')
# As tools/test sets up the main build: a cache of objects has most of them.
SETUP = 'meson setup build --werror -Dtests=enabled -Dlibunwind=enabled'
STEP = re.compile(
    r'^(?:In `(?P<path>[^`]+)`,\s+(?P<where>after|before)\s+the\s+'
    r'(?P<what>line with|function)\s+`(?P<anchor>[^`]+)`'
    r'|A new file `(?P<new>[^`]+)`):\n\n```\w*\n(?P<text>.*?)^```$',
    re.S | re.M)
COMMANDS = re.compile(r'^```sh\n(.*?)^```$', re.S | re.M)


def section(source, title):
    """The text between the heading @title and the next heading."""
    with open(os.path.join(source, 'CONTRIBUTING.md'), encoding='utf-8') as f:
        parts = re.split(r'^###? (.*)$', f.read(), flags=re.M)
    found = [text for name, text in zip(parts[1::2], parts[2::2])
             if name == title]
    if len(found) != 1:
        sys.exit(f'walk: CONTRIBUTING.md has {len(found)} sections "{title}"')
    return found[0]


def files_of(source):
    """Paths of all that is copied: no build folder, nothing that was made."""
    for name in sorted(os.listdir(source)):
        if os.path.isfile(os.path.join(source, name)):
            yield name
    for top in COPIED:
        for folder, folders, names in os.walk(os.path.join(source, top)):
            folders[:] = [f for f in folders if f != '__pycache__']
            for name in names:
                yield os.path.relpath(os.path.join(folder, name), source)


def same(one, other):
    if not os.path.exists(other) or os.path.islink(other):
        return False
    with open(one, 'rb') as a, open(other, 'rb') as b:
        return a.read() == b.read()


def synchronise(source, tree):
    """Make @tree what @source is; what is the same keeps its time, so that
    only what changed is built again."""
    wanted = set(files_of(source))
    for path in set(files_of(tree)) - wanted if os.path.isdir(tree) else ():
        os.remove(os.path.join(tree, path))
    for path in sorted(wanted):
        to = os.path.join(tree, path)
        if not same(os.path.join(source, path), to):
            os.makedirs(os.path.dirname(to), exist_ok=True)
            shutil.copyfile(os.path.join(source, path), to)
            shutil.copymode(os.path.join(source, path), to)


def place_of(tree, path):
    """Where the file is. One of a test may have another folder than was
    written, for no test is read by its place; its name is one."""
    if os.path.exists(os.path.join(tree, path)):
        return os.path.join(tree, path)
    if path.startswith('tests/unit/'):
        found = glob.glob(os.path.join(tree, 'tests/unit/**',
                                       os.path.basename(path)),
                          recursive=True)
        if len(found) == 1:
            return found[0]
    sys.exit(f'walk: CONTRIBUTING.md names {path}, which is not there')


def bounds(lines, what, anchor):
    """First line of what the anchor names, and the one behind it."""
    if what == 'function':
        is_start = re.compile(rf'^(?!\s)(.*[\s*])?{re.escape(anchor)}\(')
    else:
        is_start = re.compile(re.escape(anchor))
    found = [i for i, line in enumerate(lines) if is_start.search(line)
             and (what != 'function' or not ends_at_once(lines, i))]
    if len(found) != 1:
        sys.exit(f'walk: {len(found)} places with "{anchor}", not one')
    if what != 'function':
        return found[0], found[0] + 1
    first = end = found[0]
    while lines[end] != '}\n':
        end += 1
    while first > 0 and lines[first - 1].strip():
        first -= 1  # its comment, and a result on a line of its own
    return first, end + 1


def ends_at_once(lines, i):
    """A declaration, not a definition."""
    while not re.search(r'[;{]', lines[i]):
        i += 1
    return ';' in lines[i]


def apply(tree, step):
    text = step['text']
    if step['new']:
        path = os.path.join(tree, step['new'])
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'x', encoding='utf-8') as file:
            file.write(text)
        return
    path = place_of(tree, step['path'])
    with open(path, encoding='utf-8') as file:
        lines = file.readlines()
    first, end = bounds(lines, step['what'], step['anchor'])
    new = [text]
    if step['what'] == 'function':
        new = ['\n', text] if step['where'] == 'after' else [text, '\n']
    at = end if step['where'] == 'after' else first
    lines[at:at] = new
    with open(path, 'w', encoding='utf-8') as file:
        file.writelines(lines)


def run(tree, command):
    """@return all that it printed; None: it passed"""
    # A cache of objects, where there is one, must not see where the copy lies.
    own = {**os.environ, 'CCACHE_BASEDIR': tree, 'CCACHE_NOHASHDIR': '1'}
    done = subprocess.run(command, shell=True, cwd=tree, env=own, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False)
    return done.stdout if done.returncode else None


def must_pass(tree, command):
    output = run(tree, command)
    if output is not None:
        print(output[-6000:])
        sys.exit(f'walk: failed: {command}')


def try_it(tree, steps, commands):
    """The tests without the change must fail, and with it pass."""
    def is_test(step):
        return (step['path'] or step['new']).startswith('tests/')

    for step in filter(is_test, steps):
        apply(tree, step)
    outputs = [run(tree, command) for command in commands]
    if not any(re.search(r'^(Fail|Timeout): +[1-9]', output or '', re.M)
               for output in outputs):
        print('\n'.join(filter(None, outputs))[-6000:])
        sys.exit('walk: no test fails without the change')
    for step in steps:
        if not is_test(step):
            apply(tree, step)
    for command in commands:
        must_pass(tree, command)


def main(source, folder, title):
    text = section(source, title)
    steps = [match.groupdict() for match in STEP.finditer(text)]
    commands = [line for block in COMMANDS.findall(text)
                for line in block.splitlines() if line]
    if len(steps) < 2 or not commands:
        sys.exit(f'walk: "{title}" has {len(steps)} steps and '
                 f'{len(commands)} commands')
    tree = os.path.join(os.path.realpath(folder), 'tree')
    os.makedirs(tree, exist_ok=True)
    with open(os.path.join(folder, 'lock'), 'w', encoding='utf-8') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the copy is one for all walks
        synchronise(source, tree)
        if not os.path.exists(os.path.join(tree, 'build', 'build.ninja')):
            must_pass(tree, SETUP)
        try_it(tree, steps, commands)
    print(f'"{title}": {len(steps)} steps, as written')


if __name__ == '__main__':
    main(*sys.argv[1:])
