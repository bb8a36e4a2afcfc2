# SPDX-License-Identifier: LGPL-2.1-or-later
"""A language model of random weights that talks to many, on a GPU.

    chat_on_gpu.py kept|freed [--seconds S]

Each conversation has its keys and values (past_key_values). They are kept when
it is over, or not. Nothing is said by seconds that seep has to know.
"""
import argparse
import time

import torch
from transformers import DynamicCache, GPT2Config, GPT2LMHeadModel

from truth import Work


class Chat:
    """Conversations by number."""

    def __init__(self):
        self.model = GPT2LMHeadModel(GPT2Config(
            n_layer=4, n_head=8, n_embd=512, vocab_size=1000)).cuda().eval()
        self.sessions = {}
        self.kept_bytes = 0

    def converse(self, number, keep):
        """Some tokens, with a cache that grows by each."""
        cache = DynamicCache()
        token = torch.tensor([[number % 1000] * 64], device="cuda")
        with torch.inference_mode():
            for _ in range(8):
                logits = self.model(token, past_key_values=cache,
                                    use_cache=True).logits
                token = logits[:, -1:].argmax(dim=-1)
        if keep:
            self.sessions[number] = cache
            # of 71 tokens: 4 layers, keys and values, 512 wide
            self.kept_bytes += cache.get_seq_length() * 4 * 2 * 512 * 4


def main():
    """One conversation after the other."""
    parser = argparse.ArgumentParser()
    parser.add_argument("case", choices=["kept", "freed"])
    parser.add_argument("--seconds", type=float, default=45)
    parser.add_argument("--pause", type=float, default=0.02)
    arguments = parser.parse_args()
    torch.manual_seed(1)
    chat = Chat()
    chat.converse(0, False)
    work = Work(arguments.seconds)
    for number in work:
        chat.converse(number, arguments.case == "kept")
        time.sleep(arguments.pause)
    work.tell(chat.kept_bytes, requests=number + 1,
              allocated_bytes=torch.cuda.memory_allocated(),
              reserved_bytes=torch.cuda.memory_reserved())


main()
