"""Tools of the server's, which it calls itself, through OpenAI's client (tools of type `mcp`)."""

import json

from openai import BadRequestError, OpenAI

from checks import URL, refused, run
from responses_types import check_response, check_stream, raw

client = OpenAI(base_url=URL + "/v1", api_key="none", max_retries=0)
MODEL = "small"
NALA = {"type": "mcp", "server_label": "nala", "require_approval": "never"}
TWO = {**NALA, "allowed_tools": ["calculate", "current_time"]}
# A small model has to be shown the way.
EXPRESSION = {"type": "string", "pattern": "^[0-9]{1,3} [-+*/] [0-9]{1,3}$"}
FIRST = [
    {"tool": "calculate", "arguments": {"type": "object", "properties": {"expression": EXPRESSION}, "required": ["expression"]}},
    {"tool": "current_time", "arguments": {"type": "object", "properties": {}}},
]
ASKED = {
    "model": MODEL,
    "input": "what is 37 × 43 and what time is it?",
    "tools": [TWO],
    "temperature": 0,
    # Of the answer itself a beginning does.
    "max_output_tokens": 90,
}
BOTH = {**ASKED, "extra_body": {"call_first": FIRST}}
CITY = {"type": "object", "properties": {"city": {"type": "string", "enum": ["Paris"]}}, "required": ["city"]}
WEATHER = {"type": "function", "name": "weather", "parameters": CITY}


def kinds(answer):
    return [item.type for item in answer.output]


def both_tools_are_called():
    answer = client.responses.create(**BOTH | {"max_output_tokens": 300})
    assert kinds(answer) == ["mcp_list_tools", "mcp_call", "mcp_call", "message"], answer
    tools, product, time, _ = answer.output
    assert [tool.name for tool in tools.tools] == ["current_time", "calculate"] and tools.server_label == "nala", tools
    assert all(tool.input_schema["type"] == "object" and tool.description for tool in tools.tools), tools
    assert json.loads(product.arguments) == {"expression": "37 * 43"} and "1591" in product.output, product
    assert (product.name, product.server_label, product.status, product.error) == ("calculate", "nala", "completed", None)
    assert time.name == "current_time" and '"timezone":"UTC"' in time.output, time
    assert answer.status == "completed" and answer.output_text, answer


def objects_and_events_have_the_clients_types():
    check_response(raw(client, **BOTH))
    check_stream(raw(client, **BOTH, stream=True))


def a_stream_tells_each_call():
    events = list(client.responses.create(**BOTH, stream=True))
    assert [event.sequence_number for event in events] == list(range(len(events))), events
    text = {}
    for event in events:
        if event.type == "response.mcp_call_arguments.delta":
            text[event.item_id] = text.get(event.item_id, "") + event.delta
        elif event.type == "response.mcp_call_arguments.done":
            assert text[event.item_id] == event.arguments, event
    named = [event.type.removeprefix("response.") for event in events]
    assert named.count("mcp_call.in_progress") == named.count("mcp_call.completed") == 2, named
    assert "mcp_list_tools.completed" in named and "mcp_call.failed" not in named, named
    final = events[-1].response
    assert {item.id: item.arguments for item in final.output if item.type == "mcp_call"} == text, final
    # The client wants it whole.
    with client.responses.stream(**BOTH | {"max_output_tokens": 300}) as stream:
        for _ in stream:
            pass
        again = stream.get_final_response()
    assert kinds(again) == kinds(final), again


def a_call_can_be_asked_for():
    for choice in ["required", {"type": "mcp", "server_label": "nala", "name": "current_time"}]:
        answer = client.responses.create(**ASKED | {"tool_choice": choice})
        calls = [item for item in answer.output if item.type == "mcp_call"]
        assert calls and calls[0].name in ("calculate", "current_time"), answer
        assert isinstance(choice, str) or calls[0].name == "current_time", answer
    assert "mcp_call" not in kinds(client.responses.create(**ASKED | {"tool_choice": "none"}))
    once = client.responses.create(**BOTH | {"max_tool_calls": 1})
    assert kinds(once).count("mcp_call") == 1 and once.max_tool_calls == 1, once
    cut = client.responses.create(**BOTH | {"max_output_tokens": 30})
    assert cut.status == "incomplete" and cut.usage.output_tokens <= 30, cut


def functions_stand_beside_them():
    both = {**ASKED, "tools": [TWO, WEATHER]}
    first = client.responses.create(**both | {"tool_choice": {"type": "function", "name": "weather"}})
    assert kinds(first)[-1] == "function_call", first
    result = {"type": "function_call_output", "call_id": first.output[-1].call_id, "output": "sunny"}
    items = [{"role": "user", "content": ASKED["input"]}, *first.output, result]
    next_one = client.responses.create(**both | {"input": items, "extra_body": {"call_first": FIRST[1:]}})
    # The tools are listed once.
    assert kinds(next_one)[0] == "mcp_call" and next_one.output[0].name == "current_time", next_one
    # All of it goes back.
    items = [*items, *next_one.output, {"role": "user", "content": "Thank you."}]
    assert client.responses.create(**both | {"input": items, "tool_choice": "none"}).output_text


def answers_are_of_a_form():
    shape = {"type": "json_schema", "name": "answer", "strict": True, "schema": {
        "type": "object", "properties": {"product": {"type": "integer"}}, "required": ["product"], "additionalProperties": False}}
    answer = client.responses.create(**ASKED, text={"format": shape}, extra_body={"call_first": FIRST[:1]})
    assert kinds(answer)[:2] == ["mcp_list_tools", "mcp_call"], answer
    if kinds(answer)[-1] == "message" and answer.status == "completed":
        assert isinstance(json.loads(answer.output_text)["product"], int), answer


def tools_are_filtered():
    def listed(allowed):
        answer = client.responses.create(**ASKED | {"tools": [{**NALA, "allowed_tools": allowed}], "max_output_tokens": 1})
        return [tool.name for tool in answer.output[0].tools]

    assert listed(["calculate"]) == ["calculate"]
    assert listed({"tool_names": ["current_time"]}) == ["current_time"]
    assert listed({"read_only": True}) == ["current_time", "calculate"]
    assert "echo" in listed({"read_only": False})


def what_cannot_be_done_is_refused():
    def ask(**more):
        return lambda: client.responses.create(**{**ASKED, "tools": [{**TWO, **more}]})

    at = "tools[0]."
    refused(BadRequestError, ask(server_url="https://mcp.example/"), param=at + "server_url", code="unsupported_parameter")
    refused(BadRequestError, ask(connector_id="connector_gmail"), param=at + "connector_id")
    refused(BadRequestError, ask(authorization="x"), param=at + "authorization")
    refused(BadRequestError, ask(require_approval="always"), param=at + "require_approval")
    refused(BadRequestError, ask(require_approval={"never": {"tool_names": ["calculate"]}}), param=at + "require_approval")
    refused(BadRequestError, ask(allowed_tools=["nothing"]), param=at + "allowed_tools[0]")
    refused(BadRequestError, ask(server_label="a b"), param=at + "server_label")
    other = {"type": "mcp", "server_label": "other"}
    error = refused(BadRequestError, lambda: client.responses.create(**ASKED | {"tool_choice": other}))
    assert "there are nala" in str(error), error


if __name__ == "__main__":
    run(
        both_tools_are_called,
        objects_and_events_have_the_clients_types,
        a_stream_tells_each_call,
        a_call_can_be_asked_for,
        functions_stand_beside_them,
        answers_are_of_a_form,
        tools_are_filtered,
        what_cannot_be_done_is_refused,
    )
