"""The Responses API through OpenAI's client; each object and event is checked by the types of Open Responses too."""

import asyncio
import json
from typing import Literal

import openai
from openai import AsyncOpenAI, BadRequestError, NotFoundError, OpenAI
from pydantic import BaseModel

from checks import FRANCE, URL, refused, run
from responses_types import check_response, check_stream, raw
from shapes import Drawing, Step

client = OpenAI(base_url=URL + "/v1", api_key="none", max_retries=0)
MODEL = client.models.list().data[0].id
ASKED = {"model": MODEL, "input": FRANCE, "temperature": 0}
CITY = {
    "type": "object",
    "properties": {"city": {"type": "string", "enum": ["Paris", "Rome"]}},
    "required": ["city"],
    "additionalProperties": False,
}
WEATHER = {"type": "function", "name": "weather", "description": "Tells the weather.", "parameters": CITY, "strict": True}
CALL = {
    **ASKED,
    "input": "What is the weather in Paris?",
    "tools": [WEATHER],
    "tool_choice": {"type": "function", "name": "weather"},
    "parallel_tool_calls": False,
    "max_output_tokens": 120,
}


def an_answer_has_all_its_parts():
    answer = client.responses.create(**ASKED, metadata={"a": "b"}, instructions="Be brief.")
    check_response(answer.to_dict(mode="json"))
    assert (answer.object, answer.status, answer.model) == ("response", "completed", MODEL), answer
    assert answer.metadata == {"a": "b"} and answer.instructions == "Be brief.", answer
    assert answer.output_text and answer.error is None and answer.incomplete_details is None, answer


def objects_and_events_are_as_open_responses_has_them():
    whole = raw(client, **ASKED)
    check_response(whole)
    events = raw(client, **ASKED, stream=True)
    check_stream(events)
    [item] = [item for item in whole["output"] if item["type"] == "message"]
    assert "Paris" in item["content"][0]["text"], whole
    last = events[-1]["response"]
    assert [one["content"] for one in last["output"] if one["type"] == "message"] == [item["content"]], last
    assert last["usage"]["output_tokens"] == whole["usage"]["output_tokens"], last
    call = raw(client, **CALL)
    check_response(call)
    check_stream(raw(client, **CALL, stream=True))
    cut = raw(client, **ASKED, max_output_tokens=2)
    check_response(cut)
    assert cut["status"] == "incomplete", cut
    assert cut["incomplete_details"] == {"reason": "max_output_tokens"}, cut
    shape = {"type": "json_schema", "name": "city", "schema": CITY, "strict": True}
    check_stream(raw(client, **ASKED, text={"format": shape}, stream=True))


def the_stream_helper_gathers_the_same():
    whole = client.responses.create(**ASKED)
    text = ""
    with client.responses.stream(**ASKED) as stream:
        for event in stream:
            if event.type == "response.output_text.delta":
                text += event.delta
                assert event.snapshot == text, (event, text)
            elif event.type == "response.output_text.done":
                assert event.text == text, (event, text)
        final = stream.get_final_response()
    assert text == final.output_text == whole.output_text, (text, final, whole)
    assert "Paris" in text, text


def plain_events_count_up():
    events = list(client.responses.create(**ASKED, stream=True))
    assert [event.sequence_number for event in events] == list(range(len(events))), events
    assert events[-1].type == "response.completed", events[-1]


def answers_are_parsed():
    parsed = client.responses.parse(**ASKED, text_format=Drawing)
    assert isinstance(parsed.output_parsed, Drawing), parsed
    done = []
    with client.responses.stream(**ASKED, text_format=Drawing) as stream:
        for event in stream:
            if event.type == "response.output_text.done":
                done.append(event.parsed)
        assert done == [stream.get_final_response().output_parsed], done
    assert isinstance(done[0], Drawing), done
    walk = '{"name":"walk","after":{"name":"stop","after":null}}'
    again = [
        {"role": "system", "content": "Repeat what the user says."},
        {"role": "user", "content": walk},
        {"role": "assistant", "content": walk},
        {"role": "user", "content": walk},
    ]
    steps = client.responses.parse(**{**ASKED, "input": again, "max_output_tokens": 200}, text_format=Step)
    assert isinstance(steps.output_parsed, Step), steps


def a_tool_loop_ends_with_an_answer():
    first = client.responses.create(**CALL)
    [call] = [item for item in first.output if item.type == "function_call"]
    assert call.name == "weather" and json.loads(call.arguments)["city"] in ("Paris", "Rome"), call
    result = {"type": "function_call_output", "call_id": call.call_id, "output": '{"sky": "sunny"}'}
    items = [{"role": "user", "content": CALL["input"]}, *first.output, result]
    last = client.responses.create(**CALL | {"input": items, "tool_choice": "none", "max_output_tokens": 40})
    assert last.output_text and all(item.type != "function_call" for item in last.output), last


def calls_are_streamed_and_parsed():
    class Weather(BaseModel):
        city: Literal["Paris", "Rome"]

    tool = openai.pydantic_function_tool(Weather, name="weather")["function"]
    asked = {**CALL, "tools": [{"type": "function", **tool}]}
    text = ""
    with client.responses.stream(**asked) as stream:
        for event in stream:
            if event.type == "response.function_call_arguments.delta":
                text += event.delta
                assert event.snapshot == text, (event, text)
            elif event.type == "response.function_call_arguments.done":
                assert event.arguments == text, (event, text)
        final = stream.get_final_response()
    [call] = [item for item in final.output if item.type == "function_call"]
    assert call.arguments == text and Weather.model_validate(call.parsed_arguments), call


def the_async_client_does_the_same():
    async def ask():
        async with AsyncOpenAI(base_url=URL + "/v1", api_key="none", max_retries=0) as many:
            whole = await many.responses.create(**ASKED)
            async with many.responses.stream(**ASKED) as stream:
                async for _ in stream:
                    pass
                final = await stream.get_final_response()
            return whole, final

    whole, final = asyncio.run(ask())
    assert "Paris" in whole.output_text and whole.output_text == final.output_text, (whole, final)


def raw_responses_have_their_headers():
    with client.responses.with_streaming_response.create(**ASKED, stream=True) as response:
        assert response.headers["content-type"].startswith("text/event-stream"), response.headers
        lines = [line for line in response.iter_lines() if line]
    assert [line.split(":")[0] for line in lines] == ["event", "data"] * (len(lines) // 2), lines


def what_cannot_be_done_is_refused():
    def ask(**more):
        return lambda: client.responses.create(**ASKED | more)

    refused(NotFoundError, ask(model="no-such-model"), param="model", code="model_not_found")
    refused(BadRequestError, ask(previous_response_id="resp_1"), param="previous_response_id")
    refused(BadRequestError, ask(background=True), param="background")
    refused(BadRequestError, ask(tools=[{"type": "web_search"}]), param="tools[0].type")
    granted_none = {"type": "mcp", "server_label": "nala", "require_approval": "never"}
    refused(BadRequestError, ask(tools=[granted_none]), param="tools[0]", code="unsupported_parameter")
    refused(BadRequestError, ask(input=[]), param="input")
    refused(BadRequestError, ask(temperature=9, stream=True), param="temperature")
    lost = [{"type": "function_call_output", "call_id": "call_lost", "output": "1"}]
    refused(BadRequestError, ask(input=lost))
    image = {"type": "input_image", "image_url": "data:image/png;base64,aGk=", "detail": "auto"}
    refused(BadRequestError, ask(input=[{"role": "user", "content": [image]}]))


if __name__ == "__main__":
    run(
        an_answer_has_all_its_parts,
        objects_and_events_are_as_open_responses_has_them,
        the_stream_helper_gathers_the_same,
        plain_events_count_up,
        answers_are_parsed,
        a_tool_loop_ends_with_an_answer,
        calls_are_streamed_and_parsed,
        the_async_client_does_the_same,
        raw_responses_have_their_headers,
        what_cannot_be_done_is_refused,
    )
