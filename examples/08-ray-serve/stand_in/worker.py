# SPDX-License-Identifier: LGPL-2.1-or-later
"""One replica, with requests of its own making, until it is killed."""
import asyncio
import sys

import serve_app

PAUSE_S = 0.01


class Handle:
    """Of a deployment in another process, which answers at once."""

    async def remote(self, request):
        return [0.0] * len(request['text'])


async def main(name):
    cls = getattr(serve_app, name).cls
    replica = cls(Handle()) if name == 'Router' else cls()
    number = 0
    while True:
        number += 1
        await replica({'user': 'someone', 'time': number, 'text': 'a text'})
        await asyncio.sleep(PAUSE_S)


if __name__ == '__main__':
    asyncio.run(main(sys.argv[1]))
