# SPDX-License-Identifier: LGPL-2.1-or-later
"""Ray Serve: three replicas behind a router, and one of the three leaks.

Ray itself is not recorded: what seep set is taken out of the environment and
given to the deployments alone, by their runtime_env.
"""
import argparse
import os
import pathlib
import re
import shutil
import tempfile

OURS = {name: os.environ.pop(name) for name in list(os.environ)
        if name == "LD_PRELOAD" or name.startswith("SEEP_")}
os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled"}

import ray  # noqa: E402
from ray import serve  # noqa: E402

import serving  # noqa: E402

parser = argparse.ArgumentParser()
parser.add_argument("--seconds", type=float, default=75)
parser.add_argument("--rate", type=float, default=20)
arguments = parser.parse_args()
ANSWER_BYTES = 256 << 10
RECORDED = {"runtime_env": {"env_vars": OURS}, "num_cpus": 0}


def is_first(folder):
    """Of those that ask: the replica that leaks."""
    try:
        os.close(os.open(folder / "first", os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


@serve.deployment(num_replicas=3, ray_actor_options=RECORDED)
class Embedder:
    """Makes an answer; one of them keeps it."""

    def __init__(self, folder):
        self.leaks = is_first(folder)
        self.kept = []

    def remember(self, answer):
        """What is not given back."""
        self.kept.append(bytes(answer))

    def __call__(self, text):
        answer = bytearray(ANSWER_BYTES)
        if self.leaks:
            self.remember(answer)
        return {"pid": os.getpid(), "kept_bytes": len(self.kept) * len(answer),
                "text": text}


@serve.deployment(ray_actor_options=RECORDED)
class Router:
    """Passes a request on."""

    def __init__(self, embedder):
        self.embedder = embedder

    async def __call__(self, request):
        return await self.embedder.remote(str(request.url))


def start_ray(folder, tries=5):
    """It gives its servers 30 s to start, whatever else the machine does."""
    try:
        ray.init(address="local", num_cpus=4, include_dashboard=False,
                 object_store_memory=80 << 20, _temp_dir=str(folder / "ray"),
                 log_to_driver=False)
    except Exception as error:  # of this class
        ray.shutdown()
        if tries == 1 or "timed out" not in str(error):
            raise
        start_ray(folder, tries - 1)


def serve_it(folder):
    """For a while. @return what is known of it"""
    port = serving.free_port()
    kept = {}
    start_ray(folder)
    try:
        serve.start(http_options={"host": "127.0.0.1", "port": port})
        serve.run(Router.bind(Embedder.bind(folder)))
        serving.wait_for(port)
        load = serving.Load(port, take=lambda answer: kept.update(
            {answer["pid"]: max(answer["kept_bytes"],
                                kept.get(answer["pid"], 0))}))
        work = load.run(arguments.seconds, arguments.rate)
    finally:
        serve.shutdown()
        ray.shutdown()
    # its own log goes elsewhere; this is what Python and the loader print
    logs = folder.glob("ray/session_2*/logs/worker*.err")
    complaints = {line for path in logs
                  for line in path.read_text("utf-8", "replace").splitlines()
                  if re.search("rror|warn|preload|seep", line)}
    return load, work, kept, sorted(complaints)


def main():
    """All of it, in a folder that goes with it."""
    # A socket's name has 107 bytes.
    folder = pathlib.Path(tempfile.mkdtemp(prefix="r", dir="/tmp"))
    try:
        load, work, kept, complaints = serve_it(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    work.tell(max(kept.values()), answered=load.answered,
              failed=load.failed, pid=max(kept, key=kept.get),
              complaints=complaints)


main()
