"""What is no answer, through OpenAI's client: errors, retries, time-outs, hanging up."""

import asyncio

import openai
from openai import AsyncOpenAI, OpenAI

from checks import QUESTION, URL, refused, run

client = OpenAI(base_url=URL + "/v1", api_key="none", max_retries=0)
MODEL = client.models.list().data[0].id
ASKED = {"model": MODEL, "messages": QUESTION, "temperature": 0}
# An answer that takes longer than anybody wants to wait.
ENDLESS = {"model": MODEL, "messages": QUESTION, "max_tokens": 4000, "extra_body": {"ignore_eos": True}}


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
    refused(openai.BadRequestError, lambda: again.chat.completions.create(**ASKED | {"temperature": 9}))


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
        errors_become_the_clients_exceptions,
        errors_come_before_a_stream_begins,
        what_cannot_help_is_not_tried_again,
        a_client_that_gives_up_leaves_the_server_free,
        a_cancelled_task_leaves_the_server_free,
    )
