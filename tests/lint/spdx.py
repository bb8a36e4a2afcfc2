# SPDX-License-Identifier: LGPL-2.1-or-later
"""Every source file says its licence, once, in its first three lines."""
import tree

LINE = 'SPDX-License' + '-Identifier: LGPL-2.1-or-later'
ENDINGS = ('.c', '.h', '.S', '.def', '.cc', '.cpp', '.py', '.sh', '.in',
           'meson.build', 'meson_options.txt')


def check(root):
    faults = []
    for path in sorted(set(tree.files(root, *ENDINGS) + tree.scripts(root))):
        at = [number for number, line in enumerate(tree.lines(root, path), 1)
              if LINE in line]
        if len(at) != 1 or at[0] > 3:
            faults.append(f'{path}:1: spdx: needs one line "{LINE}" on top, '
                          f'has {len(at)}')
    return faults


if __name__ == '__main__':
    tree.main(check)
