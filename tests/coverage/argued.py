# SPDX-License-Identifier: LGPL-2.1-or-later
"""argued.py TABLE: which branches no test takes and no comment explains.

TABLE is what gcovr writes with --json; files are looked for from where this is
run. A branch is explained by a comment that has "Not tested:" and the reason:
on the line of its statement, in the comment above that statement, or in the
one above its function.

Exit 1 if there are any that nothing explains.
"""
import json
import pathlib
import sys

MARK = 'Not tested:'
ENDS = (';', '{', '}', ':', '*/')


def comment_above(lines, index):
    """The text of the comment that ends right above lines[index]."""
    found = []
    at = index - 1
    if at < 0 or not lines[at].rstrip().endswith('*/'):
        return ''
    while at >= 0:
        found.append(lines[at].strip(' */'))
        if '/*' in lines[at]:
            break
        at -= 1
    return ' '.join(reversed(found))


def first_of_statement(lines, index):
    """Where the statement begins that lines[index] belongs to."""
    while index > 0:
        above = lines[index - 1].rstrip()
        if not above or above.endswith(ENDS) or above.startswith('#'):
            break
        index -= 1
    return index


def is_argued(lines, line, function_line):
    """Line numbers begin at 1; @function_line is that of its name, or 0."""
    first = first_of_statement(lines, line - 1)
    texts = [comment_above(lines, first)] + lines[first:line]
    if function_line:
        texts.append(comment_above(
            lines, first_of_statement(lines, function_line - 1)))
    return any(MARK in text for text in texts)


def functions_of(file):
    return sorted((function['lineno'] for function in file['functions']))


def missing_in(file, lines):
    """@return (how many are untaken, [(line, count) that nothing explains])"""
    starts = functions_of(file)
    untaken = 0
    left = []
    for line in file['lines']:
        count = sum(branch['count'] == 0 for branch in line['branches'])
        if count == 0 or line.get('gcovr/noncode'):
            continue
        untaken += count
        number = line['line_number']
        function = max((at for at in starts if at <= number), default=0)
        if not is_argued(lines, number, function):
            left.append((number, count))
    return untaken, left


def main():
    table = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding='utf-8'))
    untaken = unexplained = 0
    for file in table['files']:
        lines = pathlib.Path(file['file']).read_text(
            encoding='utf-8').splitlines()
        count, left = missing_in(file, lines)
        untaken += count
        for number, of_line in left:
            unexplained += of_line
            print(f'{file["file"]}:{number}: {of_line} untaken: '
                  f'{lines[number - 1].strip()}')
    print(f'{untaken} branches are taken by no test, '
          f'{unexplained} of them are not explained')
    return 1 if unexplained else 0


if __name__ == '__main__':
    sys.exit(main())
