"""Checks answers of the Responses API by the types of the official client and of
Open Responses, and drives the official client through them.

    responses_types.py FILE...    .json: one answer, .sse: a stream, .jsonl: an event a line
    NALA_URL=... responses_types.py    asks a server itself
    NALA_URL=... NALA_TOOLS=1 ...      the same, with calls that the server is to force
"""

import http.server
import json
import os
import pathlib
import sys
import threading
import typing

import openresponses_types.types as open_types
from openai import OpenAI
from openai.types.responses import Response, ResponseStreamEvent
from openai.types.responses.response_output_item import McpCall
from pydantic import BaseModel

LAST = {"response.completed": "completed", "response.incomplete": "incomplete", "response.failed": "failed"}
# One name at OpenAI, another in Open Responses.
OPEN_NAMES = {
    "response.reasoning_text.delta": "response.reasoning.delta",
    "response.reasoning_text.done": "response.reasoning.done",
}


def kinds(models):
    """The models by the value of their field `type`."""
    found = {}
    for model in models:
        annotation = model.model_fields["type"].annotation
        for value in typing.get_args(annotation) or [one.value for one in annotation]:
            found[value] = model
    return found


OFFICIAL = kinds(typing.get_args(typing.get_args(ResponseStreamEvent)[0]))
OPEN = kinds(
    model
    for name, model in vars(open_types).items()
    if name.endswith("StreamingEvent") and isinstance(model, type) and issubclass(model, BaseModel)
)


# The client before the newest has errors of calls as texts.
ERRORS_ARE_TEXTS = McpCall.model_fields["error"].annotation == typing.Optional[str]


def is_mcp(item):
    return str(item.get("type")).startswith("mcp")


def as_official(value):
    """The same as the installed client has it."""
    if ERRORS_ARE_TEXTS and isinstance(value, dict):
        value = {key: as_official(one) for key, one in value.items()}
        if is_mcp(value) and value.get("error"):
            value["error"] = json.dumps(value["error"])
        return value
    if isinstance(value, list):
        return [as_official(one) for one in value]
    return value


def without_mcp(answer):
    """The same without tools of the server's, which Open Responses does not know."""
    answer = json.loads(json.dumps(answer))
    answer["output"] = [item for item in answer["output"] if not is_mcp(item)]
    answer["tools"] = [tool for tool in answer["tools"] if not is_mcp(tool)]
    if isinstance(answer["tool_choice"], dict) and answer["tool_choice"]["type"] == "mcp":
        answer["tool_choice"] = "auto"
    return answer


def check_response(answer):
    Response.model_validate(as_official(answer), strict=True)
    answer = without_mcp(answer)
    # That model knows no schema but null.
    if answer["text"]["format"]["type"] == "json_schema":
        answer["text"]["format"]["schema"] = None
    open_types.ResponseResource.model_validate(answer)
    for item in answer["output"]:
        assert item["status"] in ("completed", "incomplete"), item
        if item["type"] == "function_call" and item["status"] == "completed":
            assert isinstance(json.loads(item["arguments"]), dict), item


def check_stream(events):
    for number, event in enumerate(events):
        assert event["sequence_number"] == number, event
        OFFICIAL[event["type"]].model_validate(as_official(event), strict=True)
        if event["type"].startswith("response.mcp") or is_mcp(event.get("item", {})):
            continue
        other = OPEN_NAMES.get(event["type"], event["type"])
        event = json.loads(json.dumps({**event, "type": other}))
        if "response" in event:
            event["response"] = without_mcp(event["response"])
        if "response" in event and event["response"]["text"]["format"]["type"] == "json_schema":
            event["response"]["text"]["format"]["schema"] = None
        OPEN[other].model_validate(event)
    assert [event["type"] for event in events[:2]] == ["response.created", "response.in_progress"], events[:2]
    last = events[-1]
    assert last["response"]["status"] == LAST[last["type"]], last
    assert not any(event["type"] in LAST for event in events[:-1]), "two last events"
    check_response(last["response"])
    check_items(events)


def check_items(events):
    """Each item is added, grows and is done, and adds up to what it ends as."""
    done, grown = {}, {}
    # Calls that the server makes are done later, so that others come before that.
    awaited = set()
    for event in events:
        index, kind = event.get("output_index"), event["type"]
        if kind == "response.output_item.added":
            assert index == len(grown) and len(done) + len(awaited) == index, event
            grown[index] = ""
        elif kind.endswith(".delta"):
            assert index not in done, event
            grown[index] += event["delta"]
        elif kind == "response.mcp_call_arguments.done":
            awaited.add(index)
        elif kind == "response.output_item.done":
            awaited.discard(index)
            done[index] = event["item"]
    last = events[-1]
    if last["type"] != "response.failed":
        assert [done[index] for index in sorted(done)] == last["response"]["output"], last
    for index, item in done.items():
        if item["type"] in ("function_call", "mcp_call"):
            text = item["arguments"]
        else:
            text = "".join(part["text"] for part in item.get("content", []))
        assert text == grown[index], (item, grown[index])


def parse_sse(text):
    events = []
    for block in text.removesuffix("\n\n").split("\n\n"):
        kind, data = block.split("\n")
        event = json.loads(data.removeprefix("data: "))
        assert kind == "event: " + event["type"], block
        events.append(event)
    return events


def replay(body, kind):
    """A server that answers with what it is given."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    return server, OpenAI(base_url=f"http://127.0.0.1:{server.server_port}/v1", api_key="none", max_retries=0)


def check_file(path):
    body = path.read_bytes()
    if path.suffix == ".json":
        check_response(json.loads(body))
        server, client = replay(body, "application/json")
        answer = client.responses.create(model="any", input="any")
        assert answer.to_dict() == json.loads(body), answer
    else:
        events = parse_sse(body.decode()) if path.suffix == ".sse" else [json.loads(line) for line in body.splitlines()]
        check_stream(events)
        if path.suffix != ".sse":
            return
        server, client = replay(body, "text/event-stream")
        with client.responses.stream(model="any", input="any") as stream:
            read = [event.type for event in stream]
        assert read == [event["type"] for event in events], read
        if events[-1]["type"] == "response.completed":
            final = stream.get_final_response()
            assert [item.id for item in final.output] == [item["id"] for item in events[-1]["response"]["output"]]
    server.shutdown()


def check_files(paths):
    for path in paths:
        try:
            check_file(path)
        except Exception as error:
            error.add_note(f"in {path}")
            raise
    print(f"ok: {len(paths)} files")


def raw(client, **request):
    """An answer as the server wrote it."""
    response = client.responses.with_raw_response.create(**request)
    text = response.http_response.read().decode()
    return parse_sse(text) if request.get("stream") else json.loads(text)


def check_server(url):
    client = OpenAI(base_url=url + "/v1", api_key="none", max_retries=0)
    model = next(iter(client.models.list())).id
    question = {"model": model, "input": "What is the capital of France? Answer with one word.", "temperature": 0}

    whole = raw(client, **question)
    check_response(whole)
    assert whole["status"] == "completed" and whole["id"].startswith("resp_"), whole
    usage = whole["usage"]
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"], usage
    events = raw(client, **question, stream=True)
    check_stream(events)
    texts = [item["content"] for item in whole["output"] if item["type"] == "message"]
    assert [item["content"] for item in events[-1]["response"]["output"] if item["type"] == "message"] == texts, events[-1]

    with client.responses.stream(**question) as stream:
        text = "".join(event.delta for event in stream if event.type == "response.output_text.delta")
    final = stream.get_final_response()
    assert text == final.output_text and "Paris" in text, final

    # What was answered comes back as it stood there.
    items = [{"role": "user", "content": question["input"]}, *whole["output"], {"role": "user", "content": "And of Italy?"}]
    check_response(raw(client, **{**question, "input": items}, instructions="Answer with one word."))

    cut = raw(client, **question, max_output_tokens=1, stream=True)
    check_stream(cut)
    assert cut[-1]["response"]["incomplete_details"] == {"reason": "max_output_tokens"}, cut[-1]

    probable = raw(client, **question, include=["message.output_text.logprobs"], top_logprobs=2)
    check_response(probable)
    logprobs = next(item for item in probable["output"] if item["type"] == "message")["content"][0]["logprobs"]
    assert logprobs and all(len(entry["top_logprobs"]) == 2 for entry in logprobs), logprobs

    class Place(BaseModel):
        capital: str

    parsed = client.responses.parse(**question, text_format=Place)
    assert isinstance(parsed.output_parsed, Place), parsed

    for wrong, status in [
        ({"previous_response_id": "resp_1"}, 400),
        ({"background": True}, 400),
        ({"tools": [{"type": "web_search"}]}, 400),
        ({"model": "no-such-model"}, 404),
    ]:
        try:
            client.responses.create(**{**question, **wrong})
        except Exception as error:
            assert getattr(error, "status_code", None) == status, repr(error)
        else:
            raise AssertionError(f"{wrong} was accepted")

    if os.environ.get("NALA_TOOLS"):
        check_tools(client, question)
    print("ok")


def check_tools(client, question):
    city = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": False}
    tools = [{"type": "function", "name": "weather", "description": "The weather of a city", "parameters": city, "strict": True}]
    request = {**question, "input": "What is the weather in Paris?", "tools": tools, "tool_choice": "required"}
    events = raw(client, **request, stream=True)
    check_stream(events)
    calls = [item for item in events[-1]["response"]["output"] if item["type"] == "function_call"]
    assert calls and calls[0]["name"] == "weather" and "city" in json.loads(calls[0]["arguments"]), events[-1]
    outputs = [{"type": "function_call_output", "call_id": call["call_id"], "output": "sunny"} for call in calls]
    items = [{"role": "user", "content": request["input"]}, *events[-1]["response"]["output"], *outputs]
    check_response(raw(client, **{**request, "input": items, "tool_choice": "none"}))


if __name__ == "__main__":
    if sys.argv[1:]:
        check_files([pathlib.Path(path) for path in sys.argv[1:]])
    else:
        check_server(os.environ["NALA_URL"])
