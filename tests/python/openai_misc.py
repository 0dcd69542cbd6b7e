"""What is around answers: completions of plain texts, embeddings, errors, time-outs, hanging up."""

import asyncio
import time

import openai
from openai import AsyncOpenAI, OpenAI

from checks import QUESTION, URL, refused, run

client = OpenAI(base_url=URL + "/v1", api_key="none", max_retries=0)
MODEL = client.models.list().data[0].id
ASKED = {"model": MODEL, "messages": QUESTION, "temperature": 0}
# An answer that takes longer than anybody wants to wait.
ENDLESS = {"model": MODEL, "messages": QUESTION, "max_tokens": 4000, "extra_body": {"ignore_eos": True}}


def plain_texts_are_gone_on_from():
    asked = {"model": MODEL, "prompt": "The capital of France is", "temperature": 0, "max_tokens": 8}
    whole = client.completions.create(**asked)
    assert whole.object == "text_completion", whole
    assert "Paris" in whole.choices[0].text, whole
    assert whole.choices[0].finish_reason in ("stop", "length"), whole
    assert whole.usage.total_tokens == whole.usage.prompt_tokens + whole.usage.completion_tokens, whole
    chunks = list(client.completions.create(**asked, stream=True, stream_options={"include_usage": True}))
    assert "".join(chunk.choices[0].text for chunk in chunks if chunk.choices) == whole.choices[0].text, chunks
    assert chunks[-1].choices == [] and chunks[-1].usage.total_tokens == whole.usage.total_tokens, chunks
    echoed = client.completions.create(**asked, echo=True)
    assert echoed.choices[0].text == asked["prompt"] + whole.choices[0].text, echoed


def texts_become_vectors():
    texts = ["A cat sits on the mat.", "Interest rates rose.", "A cat sits on the mat."]
    # The client asks for base64 and decodes it, unless told otherwise.
    packed = client.embeddings.create(model=MODEL, input=texts)
    plain = client.embeddings.create(model=MODEL, input=texts, encoding_format="float")
    assert [one.index for one in packed.data] == [0, 1, 2], packed.data
    for one, other in zip(packed.data, plain.data, strict=True):
        assert len(one.embedding) == len(other.embedding) > 0
        assert all(abs(a - b) < 1e-4 for a, b in zip(one.embedding, other.embedding)), "base64 and floats differ"
    first, second, third = (one.embedding for one in plain.data)
    product = lambda a, b: sum(x * y for x, y in zip(a, b))
    assert abs(product(first, first) - 1) < 1e-2, "a vector is not of length 1"
    assert product(first, third) > 0.999 > product(first, second), (product(first, third), product(first, second))
    assert packed.usage.prompt_tokens == packed.usage.total_tokens > 0, packed.usage


def errors_become_the_clients_exceptions():
    def ask(**more):
        return lambda: client.chat.completions.create(**ASKED | more)

    lost = refused(openai.NotFoundError, ask(model="no-such-model"), param="model", code="model_not_found")
    assert MODEL in str(lost), lost
    refused(openai.NotFoundError, lambda: client.models.retrieve("no-such-model"), code="model_not_found")
    refused(openai.NotFoundError, lambda: client.get("/nothing", cast_to=object), code="unknown_url")
    kind = {"type": "invalid_request_error"}
    refused(openai.BadRequestError, ask(temperature=-1), param="temperature", **kind)
    refused(openai.BadRequestError, ask(extra_body={"no_such_thing": 1}), param="no_such_thing", **kind)
    refused(openai.BadRequestError, ask(messages=[]), param="messages", **kind)
    refused(openai.BadRequestError, ask(messages=[{"role": "user", "content": "Paris " * 30_000}]), param="messages", **kind)
    refused(openai.APIStatusError, lambda: client.post("/models", cast_to=object, body={}), status_code=405)


def errors_come_before_a_stream_begins():
    ask = lambda: client.chat.completions.create(**ASKED | {"temperature": 9}, stream=True)
    refused(openai.BadRequestError, ask, param="temperature")


def what_cannot_help_is_not_tried_again():
    again = client.with_options(max_retries=2)
    raw = again.chat.completions.with_raw_response.create(**ASKED, max_tokens=1)
    assert raw.retries_taken == 0, raw.retries_taken
    began = time.monotonic()
    refused(openai.BadRequestError, lambda: again.chat.completions.create(**ASKED | {"temperature": 9}))
    assert time.monotonic() - began < 30, "a wrong request was tried again"


def a_client_that_gives_up_leaves_the_server_free():
    hasty = client.with_options(timeout=1)
    refused(openai.APITimeoutError, lambda: hasty.chat.completions.create(**ENDLESS))
    stream = client.chat.completions.create(**ENDLESS, stream=True)
    for _, chunk in zip(range(4), stream):
        assert chunk.choices, chunk
    stream.close()
    # Were the two still being answered, they would go on for thousands of tokens.
    answer = client.chat.completions.create(**ASKED)
    assert "Paris" in answer.choices[0].message.content, answer


def a_cancelled_task_leaves_the_server_free():
    async def ask():
        async with AsyncOpenAI(base_url=URL + "/v1", api_key="none", max_retries=0) as many:
            task = asyncio.create_task(many.chat.completions.create(**ENDLESS))
            await asyncio.sleep(0.5)
            task.cancel()
            answer = await many.chat.completions.create(**ASKED)
            assert task.cancelled() or task.done(), task
            return answer

    assert "Paris" in asyncio.run(ask()).choices[0].message.content


if __name__ == "__main__":
    run(
        plain_texts_are_gone_on_from,
        texts_become_vectors,
        errors_become_the_clients_exceptions,
        errors_come_before_a_stream_begins,
        what_cannot_help_is_not_tried_again,
        a_client_that_gives_up_leaves_the_server_free,
        a_cancelled_task_leaves_the_server_free,
    )
