"""Tool calls through OpenAI's client. They are asked for by `tool_choice`, for the model is a small one."""

import json
from enum import Enum

import openai
from openai import BadRequestError, OpenAI
from pydantic import BaseModel, Field

from checks import URL, refused, run

client = OpenAI(base_url=URL + "/v1", api_key="none", max_retries=0)
MODEL = client.models.list().data[0].id
ASKED = {
    "model": MODEL,
    "messages": [{"role": "user", "content": "What is the weather in Paris?"}],
    "temperature": 0,
    "max_tokens": 120,
}
# A small model may go on calling.
ONE_CALL = {**ASKED, "parallel_tool_calls": False}


class Unit(str, Enum):
    celsius = "celsius"
    fahrenheit = "fahrenheit"


class Place(BaseModel):
    city: str = Field(max_length=16)
    country: str = Field(max_length=16)


class GetWeather(BaseModel):
    """Tells the weather of a place."""

    place: Place
    unit: Unit
    days: int = Field(ge=1, le=7)


class GetTime(BaseModel):
    """Tells the time of a city."""

    city: str = Field(max_length=16)


WEATHER, TIME = openai.pydantic_function_tool(GetWeather), openai.pydantic_function_tool(GetTime)
TOOLS = [WEATHER, TIME]


# The model has nothing to decide about it, so each run says the same; only white space is its own.
MADE = {"city": "Paris", "days": 3}
FIXED = {
    "type": "function",
    "function": {
        "name": "forecast",
        "strict": True,
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string", "enum": ["Paris"]}, "days": {"type": "integer", "enum": [3]}},
            "required": ["city", "days"],
            "additionalProperties": False,
        },
    },
}


def named(name):
    return {"type": "function", "function": {"name": name}}


def function(name, parameters, **more):
    return {"type": "function", "function": {"name": name, "parameters": parameters, **more}}


def calls_of(completion):
    """The calls of an answer that consists of calls."""
    [choice] = completion.choices
    assert choice.finish_reason == "tool_calls", choice
    calls = choice.message.tool_calls
    assert calls and all(call.type == "function" and call.id for call in calls), choice
    assert len({call.id for call in calls}) == len(calls), f"two calls with one id: {calls}"
    return calls


def a_call_can_be_required():
    [call] = calls_of(client.chat.completions.create(**ONE_CALL, tools=TOOLS, tool_choice="required"))
    form = {"GetWeather": GetWeather, "GetTime": GetTime}[call.function.name]
    form.model_validate_json(call.function.arguments)


def several_calls_come_apart():
    """How many is the model's choice; all but one that is cut off are whole."""
    schema = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 0, "maximum": 9}}, "required": ["n"]}
    asked = {**ASKED, "tools": [function("roll", schema, strict=True)], "tool_choice": "required"}
    names, arguments = {}, {}
    for chunk in client.chat.completions.create(**asked, stream=True):
        for part in chunk.choices[0].delta.tool_calls or []:
            if part.id:
                assert part.index == len(names), (part, names)
                names[part.index], arguments[part.index] = part.id, ""
            arguments[part.index] += part.function.arguments or ""
        reason = chunk.choices[0].finish_reason or None
    assert names and len(set(names.values())) == len(names), names
    if reason == "length":
        arguments.popitem()
    else:
        assert reason == "tool_calls", reason
    assert all(0 <= json.loads(text)["n"] <= 9 for text in arguments.values()), arguments


def a_function_can_be_named():
    for name, form in [("GetWeather", GetWeather), ("GetTime", GetTime)]:
        asked = {**ONE_CALL, "tools": TOOLS, "tool_choice": named(name)}
        completion = client.chat.completions.create(**asked)
        [call] = calls_of(completion)
        assert call.function.name == name, call
        form.model_validate_json(call.function.arguments)
        assert not completion.choices[0].message.content, completion


def only_what_is_allowed_is_called():
    allowed = {"mode": "required", "tools": [named("GetTime")]}
    choice = {"type": "allowed_tools", "allowed_tools": allowed}
    calls = calls_of(client.chat.completions.create(**ONE_CALL, tools=TOOLS, tool_choice=choice))
    assert {call.function.name for call in calls} == {"GetTime"}, calls


def arguments_are_json_whatever_is_in_them():
    words = ['quo"te', "back\\slash", "line\nbreak", "</tool_call>", "Zürich 🏔️"]
    schema = {
        "type": "object",
        "properties": {f"w{index}": {"type": "string", "enum": [word]} for index, word in enumerate(words)},
        "required": [f"w{index}" for index in range(len(words))],
        "additionalProperties": False,
    }
    tools = [function("say", schema, strict=True)]
    asked = {**ONE_CALL, "tools": tools, "tool_choice": "required"}
    [call] = calls_of(client.chat.completions.create(**asked))
    assert list(json.loads(call.function.arguments).values()) == words, call


def functions_may_have_no_parameters():
    for parameters in [{"type": "object", "properties": {}}, None]:
        tools = [function("now", parameters)]
        asked = {**ONE_CALL, "tools": tools, "tool_choice": named("now")}
        [call] = calls_of(client.chat.completions.create(**asked))
        assert isinstance(json.loads(call.function.arguments), dict), call


def chunks_make_a_call():
    asked = {**ONE_CALL, "tools": [FIXED], "tool_choice": named("forecast")}
    [whole] = calls_of(client.chat.completions.create(**asked))
    assert json.loads(whole.function.arguments) == MADE, whole
    begun, arguments, reasons = [], "", []
    for chunk in client.chat.completions.create(**asked, stream=True):
        [choice] = chunk.choices
        reasons += [choice.finish_reason] if choice.finish_reason else []
        for part in choice.delta.tool_calls or []:
            assert part.index == 0, part
            if part.id or part.function.name:
                begun.append((part.id, part.type, part.function.name))
            arguments += part.function.arguments or ""
    # Clients join what comes more than once.
    assert len(begun) == 1 and all(begun[0]), begun
    assert begun[0][1:] == ("function", "forecast"), begun
    assert json.loads(arguments) == MADE, arguments
    assert reasons == ["tool_calls"], reasons


def the_helpers_parse_calls():
    asked = {**ONE_CALL, "tools": TOOLS, "tool_choice": named("GetWeather")}
    [call] = calls_of(client.chat.completions.parse(**asked))
    assert isinstance(call.function.parsed_arguments, GetWeather), call
    text, done = "", []
    with client.chat.completions.stream(**asked) as stream:
        for event in stream:
            if event.type == "tool_calls.function.arguments.delta":
                text += event.arguments_delta
                assert (event.name, event.index, event.arguments) == ("GetWeather", 0, text), (event, text)
            elif event.type == "tool_calls.function.arguments.done":
                done.append(event)
        [final] = calls_of(stream.get_final_completion())
    assert [event.arguments for event in done] == [text] == [final.function.arguments], (done, text, final)
    assert isinstance(done[0].parsed_arguments, GetWeather), done
    assert final.function.parsed_arguments == done[0].parsed_arguments, (done, final)


def a_tool_loop_ends_with_an_answer():
    messages = [{"role": "user", "content": "What is the weather in Paris? Answer in one sentence."}]
    asked = {"model": MODEL, "temperature": 0, "max_tokens": 60, "tools": TOOLS}
    first = client.chat.completions.create(
        **asked, messages=messages, tool_choice=named("GetTime"), parallel_tool_calls=False
    )
    [call] = calls_of(first)
    # The message goes back as it came, and the result beside it.
    messages.append(first.choices[0].message)
    messages.append({"role": "tool", "tool_call_id": call.id, "content": json.dumps({"time": "12:30"})})
    last = client.chat.completions.create(**asked, messages=messages, tool_choice="none").choices[0]
    assert last.finish_reason in ("stop", "length"), last
    assert last.message.content and not last.message.tool_calls, last


def calls_of_a_turn_are_answered_together():
    calls = [
        {"id": "call_1", "type": "function", "function": {"name": "GetTime", "arguments": '{"city": "Paris"}'}},
        {"id": "call_2", "type": "function", "function": {"name": "GetTime", "arguments": '{"city": "Rome"}'}},
    ]
    messages = [
        *ASKED["messages"],
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": "call_2", "content": "1"},
        {"role": "tool", "tool_call_id": "call_1", "content": [{"type": "text", "text": "2"}]},
    ]
    answer = client.chat.completions.create(**ASKED | {"messages": messages, "max_tokens": 8, "tools": TOOLS})
    assert answer.choices[0].finish_reason in ("stop", "length", "tool_calls"), answer


def without_a_choice_the_answer_is_well_formed():
    answer = client.chat.completions.create(**ASKED, tools=TOOLS).choices[0]
    if answer.finish_reason == "tool_calls":
        assert all(json.loads(call.function.arguments) is not None for call in answer.message.tool_calls), answer
    else:
        assert answer.message.content and not answer.message.tool_calls, answer


def what_makes_no_sense_is_refused():
    def ask(**more):
        return lambda: client.chat.completions.create(**ONE_CALL | more)

    unknown = refused(BadRequestError, ask(tools=TOOLS, tool_choice=named("Nothing")), param="tool_choice.function.name")
    assert "GetTime" in str(unknown), unknown
    refused(BadRequestError, ask(tool_choice="required"))
    refused(BadRequestError, ask(tools=[{"type": "web_search"}]), param="tools[0].type")
    wrong = function("f", {"type": "object", "properties": {"a": {"type": "nothing"}}}, strict=True)
    error = refused(BadRequestError, ask(tools=[wrong], tool_choice="required"))
    assert "nothing" in str(error), error


if __name__ == "__main__":
    run(
        a_call_can_be_required,
        several_calls_come_apart,
        a_function_can_be_named,
        only_what_is_allowed_is_called,
        arguments_are_json_whatever_is_in_them,
        functions_may_have_no_parameters,
        chunks_make_a_call,
        the_helpers_parse_calls,
        a_tool_loop_ends_with_an_answer,
        calls_of_a_turn_are_answered_together,
        without_a_choice_the_answer_is_well_formed,
        what_makes_no_sense_is_refused,
    )
