# SPDX-License-Identifier: LGPL-2.1-or-later
"""A sentence embedder of random weights, made without a network."""
import pathlib
import random
import tempfile

import torch
from sentence_transformers import SentenceTransformer, models
from transformers import BertConfig, BertModel, BertTokenizerFast

WORDS = [f"w{i}" for i in range(2000)]
WIDTH = 384


def save(folder):
    """Configuration, weights and tokenizer, as from_pretrained() reads them."""
    vocabulary = folder / "vocab.txt"
    vocabulary.write_text("\n".join(
        ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + WORDS), "ascii")
    tokenizer = BertTokenizerFast(vocab_file=str(vocabulary),
                                  model_max_length=512)
    tokenizer.save_pretrained(folder)
    BertModel(BertConfig(
        vocab_size=len(WORDS) + 5, hidden_size=WIDTH, num_hidden_layers=2,
        num_attention_heads=12, intermediate_size=4 * WIDTH,
        max_position_embeddings=512)).save_pretrained(folder)


def load(dtype):
    """The model, on the CPU."""
    with tempfile.TemporaryDirectory() as name:
        save(pathlib.Path(name))
        model = SentenceTransformer(modules=[
            models.Transformer(name, max_seq_length=512),
            models.Pooling(WIDTH)], device="cpu")
    return model.to(getattr(torch, dtype))


def sentences(count, longest=500):
    """Of any length, as users write them."""
    return [" ".join(random.choices(WORDS, k=random.randint(3, longest)))
            for _ in range(count)]
