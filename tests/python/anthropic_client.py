"""Asks through Anthropic's official client: whole, streamed, with tools, counted, and wrongly."""

import os

from typing import Literal

import anthropic

from pydantic import BaseModel

client = anthropic.Anthropic(base_url=os.environ["NALA_URL"], api_key="none", max_retries=0)
QUESTION = [{"role": "user", "content": "What is the capital of France? Answer with one word."}]
# The client has no parameter for it any more.
GREEDY = {"temperature": 0}
WEATHER = {
    "name": "get_weather",
    "description": "Get the current weather in a city",
    "input_schema": {
        "type": "object",
        "properties": {"city": {"type": "string", "enum": ["Paris", "Rome"]}},
        "required": ["city"],
        "additionalProperties": False,
    },
}

models = [model.id for model in client.models.list()]
assert models, "no models"


def ask(**more):
    request = {"model": models[0], "max_tokens": 64, "messages": QUESTION, "extra_body": GREEDY}
    return client.messages.create(**(request | more))


def said(message):
    return "".join(block.text for block in message.content if block.type == "text")


def refused(kind, *names, **more):
    try:
        ask(**more)
    except kind as error:
        assert error.body["type"] == "error", error.body
        for name in names:
            assert name in error.body["error"]["message"], error.body
        return error.body["error"]["type"]
    raise AssertionError(f"accepted: {more}")


# Whole.
answer = ask()
assert "Paris" in said(answer), answer
assert (answer.type, answer.role, answer.stop_reason) == ("message", "assistant", "end_turn"), answer
assert answer.id.startswith("msg_") and answer.model == models[0], answer
assert answer.usage.output_tokens > 0, answer

# Counted: as many as the answer was charged for, from the cache or not.
system = "You answer briefly."
counted = client.messages.count_tokens(model=models[0], messages=QUESTION).input_tokens
assert counted == answer.usage.input_tokens + answer.usage.cache_read_input_tokens, (counted, answer)
assert client.messages.count_tokens(model=models[0], messages=QUESTION, system=system).input_tokens != counted

# Streamed, by the client's own accumulator and as it comes.
stream = {"model": models[0], "max_tokens": 64, "messages": QUESTION, "extra_body": GREEDY}
with client.messages.stream(**stream) as helper:
    text = "".join(helper.text_stream)
    final = helper.get_final_message()
assert text == said(answer) == said(final), text
assert final.stop_reason == "end_turn", final
assert final.usage.output_tokens == answer.usage.output_tokens, final
kinds = [event.type for event in ask(stream=True)]
assert kinds[:2] == ["message_start", "content_block_start"], kinds
assert kinds[-3:] == ["content_block_stop", "message_delta", "message_stop"], kinds
assert set(kinds[2:-3]) == {"content_block_delta"}, kinds

# Each way to end.
assert ask(max_tokens=1).stop_reason == "max_tokens"
stopped = ask(stop_sequences=["aris"])
assert (stopped.stop_reason, stopped.stop_sequence) == ("stop_sequence", "aris"), stopped
assert "aris" not in said(stopped), stopped

# An answer that the client has begun is gone on from and not said again.
begun = ask(messages=[*QUESTION, {"role": "assistant", "content": "The capital of France is"}])
assert "Paris" in said(begun) and "capital of France is" not in said(begun), begun

# A system prompt, blocks and consecutive messages.
assert said(ask(system=[{"type": "text", "text": system, "cache_control": {"type": "ephemeral"}}]))
assert said(ask(messages=[{"role": "user", "content": [{"type": "text", "text": "Hello."}]}, *QUESTION]))

# A call that is forced, whole and streamed, and its result.
named = {"type": "tool", "name": "get_weather", "disable_parallel_tool_use": True}
forced = {"tools": [WEATHER], "tool_choice": named, "max_tokens": 100}
weather = [{"role": "user", "content": "What is the weather in Paris?"}]
called = ask(messages=weather, **forced)
assert called.stop_reason == "tool_use", called
[call] = [block for block in called.content if block.type == "tool_use"]
assert call.name == "get_weather" and call.input["city"] in ("Paris", "Rome"), call
with client.messages.stream(**(stream | forced | {"messages": weather})) as helper:
    streamed = helper.get_final_message()
[again] = [block for block in streamed.content if block.type == "tool_use"]
assert (again.name, again.input) == (call.name, call.input), again
assert again.id != call.id, again
result = {"type": "tool_result", "tool_use_id": call.id, "content": "Sunny, 25°C"}
told = ask(messages=[*weather, called.to_param(), {"role": "user", "content": [result]}], tools=[WEATHER])
assert told.content, told


# An answer that has to be JSON.
class Place(BaseModel):
    country: Literal["France", "Italy"]
    capital: Literal["Paris", "Rome"]


parsed = client.messages.parse(**stream, output_format=Place)
assert isinstance(parsed.parsed_output, Place), parsed

# Errors, each with what was wrong.
image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
wrong = refused(anthropic.NotFoundError, models[0], model="no-such-model")
assert wrong == "not_found_error", wrong
wrong = refused(anthropic.BadRequestError, "messages[0].content[0].type", messages=[{"role": "user", "content": [image]}])
assert wrong == "invalid_request_error", wrong
refused(anthropic.BadRequestError, "max_tokens", max_tokens=0)
refused(anthropic.BadRequestError, "messages", messages=[])
refused(anthropic.BadRequestError, "tempreature", extra_body={"tempreature": 1})
refused(anthropic.BadRequestError, "messages[1]", messages=[*QUESTION, {"role": "assistant", "content": "The "}])
refused(anthropic.BadRequestError, "messages", messages=[{"role": "user", "content": "Paris " * 100_000}])

print("ok")
