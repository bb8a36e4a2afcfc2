# SPDX-License-Identifier: LGPL-2.1-or-later
"""A Ray Serve application whose replicas record themselves.

    serve run serve_app:app

The embedder keeps what it has answered, under a key that never comes again.
"""
from ray import serve


def recorded(**labels):
    """A runtime_env: what `seep env -o /traces/` prints, and who it is for."""
    return {'env_vars': {
        'LD_PRELOAD': '/opt/seep/lib/seep/libseep.so:${LD_PRELOAD}',
        'SEEP_OUT': '/traces/seep.%e.%p.%t.seep',
        'SEEP_PYTHON': 'objects',
        'SEEP_CUDA': 'tensors',
        'SEEP_LABELS': ','.join(f'{key}={value}'
                                for key, value in labels.items()),
    }}


@serve.deployment(num_replicas=2, ray_actor_options={
    'runtime_env': recorded(model='embedder', version='13')})
class Embedder:
    def __init__(self):
        self.weights = [float(number) for number in range(2048)]
        self.known = {}

    def embed(self, text):
        return [weight * len(text) for weight in self.weights]

    async def __call__(self, request):
        key = (request['user'], request['time'])
        if key not in self.known:
            self.known[key] = self.embed(request['text'])  # the leak
        return self.known[key]


@serve.deployment(ray_actor_options={
    'runtime_env': recorded(model='router', version='2')})
class Router:
    def __init__(self, embedder):
        self.embedder = embedder

    async def __call__(self, request):
        return await self.embedder.remote(request)


app = Router.bind(Embedder.bind())
