# SPDX-License-Identifier: LGPL-2.1-or-later
"""Puts the page together: embed.py D3 OUTPUT FOLDER FILE...

The page is FOLDER/page.html, in which a line {{NAME}} stands for the file of
that name, {{d3}} for the library and {{data}} for what the program puts there.
The output is a C file with all before and all behind the data.

Invariant: nothing runs in the page but what its Content-Security-Policy has
the hash of.
"""
import base64
import hashlib
import os
import re
import sys


def read(path):
    with open(path, encoding='utf-8') as file:
        return file.read()


def hash_of(text):
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def code_of(path):
    """What an element of the page is filled with."""
    text = read(path)
    text = re.sub(r'\A(/\*.*?SPDX.*?\*/|// SPDX.*?)\n', '', text)
    for end in ('</script', '</style', '<!--'):
        if end in text.lower():
            sys.exit(f'{path}: holds {end}')
    return text.strip() + '\n'


def hashes(page, element):
    found = re.findall(rf'<{element}>(.*?)</{element}>', page, re.S)
    return ' '.join(hash_of(text) for text in found)


def array(name, text):
    data = text.encode()
    lines = [','.join(map(str, data[i:i + 64]))
             for i in range(0, len(data), 64)]
    return (f'extern const unsigned char {name}[];\n'
            f'extern const size_t {name}_bytes;\n'
            f'const unsigned char {name}[] = {{\n' + ',\n'.join(lines) +
            f'}};\nconst size_t {name}_bytes = sizeof({name});\n')


def main():
    d3, output, folder = sys.argv[1:4]
    page = read(os.path.join(folder, 'page.html'))
    page = re.sub(r'\A<!-- SPDX.*?-->\n', '', page)
    page = page.replace('{{license}}',
                        read(os.path.join(folder, 'd3-license.txt')).strip())

    def fill(match):
        name = match.group(1)
        return code_of(d3 if name == 'd3' else os.path.join(folder, name))

    page = re.sub(r'^\{\{([\w.-]+\.(?:js|css)|d3)\}\}\n', fill, page,
                  flags=re.M)
    policy = ("default-src 'none'; "
              f"script-src {hashes(page, 'script')}; "
              f"style-src {hashes(page, 'style')}; "
              "img-src data:; base-uri 'none'; form-action 'none'")
    page = page.replace('{{policy}}', policy)
    head, tail = page.split('{{data}}\n')
    with open(output, 'w', encoding='ascii') as file:
        file.write('#include <stddef.h>\n\n' + array('seep_html_head', head) +
                   array('seep_html_tail', tail))


if __name__ == '__main__':
    main()
