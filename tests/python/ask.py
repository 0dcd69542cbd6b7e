"""Asks the question through the official client, streaming and not."""

import os

from typing import Literal

from openai import OpenAI
from pydantic import BaseModel, Field

client = OpenAI(base_url=os.environ["NALA_URL"] + "/v1", api_key="none", max_retries=0)
QUESTION = [{"role": "user", "content": "What is the capital of France? Answer with one word."}]

models = [model.id for model in client.models.list()]
assert models, "no models"

answer = client.chat.completions.create(model=models[0], messages=QUESTION, temperature=0)
assert "Paris" in answer.choices[0].message.content, answer
assert answer.choices[0].finish_reason == "stop", answer
assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens, answer

text, usage = "", None
stream = client.chat.completions.create(
    model=models[0], messages=QUESTION, temperature=0, stream=True, stream_options={"include_usage": True}
)
for chunk in stream:
    if chunk.choices:
        text += chunk.choices[0].delta.content or ""
    usage = chunk.usage or usage
assert text == answer.choices[0].message.content, text
assert usage.completion_tokens == answer.usage.completion_tokens, usage

with client.chat.completions.stream(model=models[0], messages=QUESTION, temperature=0) as helper:
    final = helper.get_final_completion()
assert final.choices[0].message.content == text, final

class Place(BaseModel):
    country: Literal["France"]
    capital: str = Field(max_length=20)
    bridges: list[int] = Field(max_length=3)


parsed = client.chat.completions.parse(model=models[0], messages=QUESTION, temperature=0, response_format=Place)
assert isinstance(parsed.choices[0].message.parsed, Place), parsed

three = client.chat.completions.create(model=models[0], messages=QUESTION, n=3, seed=1, max_tokens=8)
assert [choice.index for choice in three.choices] == [0, 1, 2], three

try:
    client.chat.completions.create(model="no-such-model", messages=QUESTION)
except Exception as error:
    assert type(error).__name__ == "NotFoundError", repr(error)
    assert models[0] in str(error), error
else:
    raise AssertionError("an unknown model was accepted")

print("ok")
