# SPDX-License-Identifier: LGPL-2.1-or-later
"""seep(1) from its text and from the table of options of each command.

    make.py SEEP seep.1.in seep.1

The names of options and of their values come from `seep COMMAND --help`,
which prints the table that the command line is parsed by:

    @synopsis [a|b ...]     all options of the command that .Cm named before,
                            but for those that the synopsis has by hand;
                            those with a bar as alternatives
    @option NAME... [MDOC]  the head of an item, in the part of a command

Invariant: an option that has no item, or an item that is of no option, fails
the build.
"""
import re
import subprocess
import sys

OPTION = re.compile(r'^  (?:-(\w), )?--([a-z-]+)(?: ([A-Z][A-Z=]*))?(?: |$)',
                    re.M)
# Where help is short of room, or means two things.
VALUES = {'F': 'file', 'W': 'what', 'DIR': 'folder', 'OLD': 'recording'}


def table(seep, command):
    """{name: (letter, what its value is called)} in the order of help."""
    text = subprocess.run([seep, command, '--help'], check=True, text=True,
                          stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE).stdout
    return {name: (letter, value) for letter, name, value
            in OPTION.findall(text) if name != 'help'}


def argument(value):
    """' Ar site Ns = Ns Ar size' of SITE=SIZE."""
    words = [VALUES.get(word, word.lower()) for word in value.split('=')]
    return ' Ar ' + ' Ns = Ns Ar '.join(words) if value else ''


def synopsis(options, groups, by_hand):
    """An .Op for each that is not by hand, or for alternatives together."""
    lines, done = [], set(by_hand)
    for name, (letter, value) in options.items():
        group = next((g for g in groups if name in g), [name])
        if name not in done:
            lines.append('.Op ' + ' | '.join(
                (f'Fl {letter}' if letter else f'Fl Fl {other}')
                + argument(options[other][1]) for other in group))
        done.update(group)
    return lines


def head(options, names, rest):
    """The .It of options."""
    items = []
    for name in names:
        letter, value = options[name]
        items += [f'Fl {letter}{argument(value)}'] if letter else []
        items.append(f'Fl Fl {name}{argument(value)}')
    return '.It ' + ' , '.join(items) + rest


def make(seep, lines):
    """The lines of the page."""
    out, options, told = [], {}, set()
    for number, line in enumerate(lines):
        command = re.fullmatch(r'\.(?:Cm|Ss seep) ([a-z]+)', line)
        if line.startswith(('.Ss', '.Sh')) and told != set(options):
            sys.exit('make.py: no item, or one of no option: '
                     + ', '.join(sorted(told ^ set(options))))
        if line.startswith(('.Ss', '.Sh')):
            options, told = {}, set()
        if line.startswith('.Ss') and command:
            options = table(seep, command[1])
        if line.startswith('@synopsis'):
            around = ('\n'.join(lines[:number]).rsplit('\n.Nm\n', 1)[1]
                      + '\n'.join(lines[number:]).split('\n.Nm', 1)[0])
            out += synopsis(table(seep, re.search(r'\.Cm (\w+)', around)[1]),
                            [g.split('|') for g in line.split()[1:]],
                            re.findall(r'Fl Fl ([a-z-]+)', around))
        elif line.startswith('@option'):
            names, rest = re.fullmatch(r'@option((?: [a-z-]+)+)(.*)',
                                       line).groups()
            told |= set(names.split())
            out.append(head(options, names.split(), rest))
        else:
            out.append(line)
    return out


if __name__ == '__main__':
    with open(sys.argv[2], encoding='utf-8') as source:
        PAGE = make(sys.argv[1], source.read().split('\n'))
    with open(sys.argv[3], 'w', encoding='utf-8') as page:
        page.write('\n'.join(PAGE))
