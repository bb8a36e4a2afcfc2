# SPDX-License-Identifier: LGPL-2.1-or-later
"""A FastAPI application: a model that keeps each prompt that it was asked."""
import os

from fastapi import FastAPI
from pydantic import BaseModel

PROMPT_BYTES = 128 << 10
prompts = []
app = FastAPI()


class Question(BaseModel):
    """What a client sends."""
    text: str


def remember(text):
    """What is not given back."""
    prompts.append(text.encode().ljust(PROMPT_BYTES))


@app.get("/ready")
async def ready():
    """For the load, which begins then."""
    return {}


@app.post("/generate")
def generate(question: Question):
    """In a thread of the pool, as all that is no coroutine."""
    remember(question.text)
    return {"pid": os.getpid(), "text": question.text[::-1]}
