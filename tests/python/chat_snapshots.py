"""Feeds the streams in components/openai/src/chat/snapshots to the official client.

A server on this machine replays each stream, and the client's own accumulator has to
come to what the whole answer beside it says.
"""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import openai

FOLDER = Path(__file__).resolve().parents[2] / "components/openai/src/chat/snapshots"


class Replay(BaseHTTPRequestHandler):
    """Answers with the snapshot that the request names as its model."""

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        kind, content_type = ("sse", "text/event-stream") if request.get("stream") else ("json", "application/json")
        body = (FOLDER / f"{request['model']}.{kind}").read_bytes()
        self.send_response(200)
        self.send_header("content-type", content_type)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def plain(value):
    """As plain data, without what is only there to be filled: nulls and empty lists."""
    if hasattr(value, "model_dump"):
        value = value.model_dump()
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items() if inner is not None and inner != []}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    return value


def choices(completion):
    """What an answer says, in the form in which both ways to ask can be compared."""
    found = []
    for choice in plain(completion)["choices"]:
        message = choice["message"]
        # The accumulator has an index and what was parsed beside a call's own fields.
        for call in message.get("tool_calls", []):
            call.pop("index", None)
            call["function"].pop("parsed_arguments", None)
        # A whole answer that is a call alone has no content, a stream an empty one.
        if message.get("tool_calls") and not message.get("content"):
            message.pop("content", None)
        message.pop("parsed", None)
        found.append(choice)
    return sorted(found, key=lambda choice: choice["index"])


def finished(stream):
    """What was accumulated. The helper raises it where the length ended an answer."""
    try:
        return stream.get_final_completion()
    except openai.LengthFinishReasonError as error:
        return error.completion


def main():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Replay)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    client = openai.OpenAI(base_url=f"http://127.0.0.1:{server.server_port}/v1", api_key="none", max_retries=0)
    messages = [{"role": "user", "content": "Hi"}]
    names = sorted(path.stem for path in FOLDER.glob("*.sse") if path.stem != "error")
    assert names, FOLDER
    for name in names:
        whole = client.chat.completions.create(model=name, messages=messages)
        deltas = {}
        with client.chat.completions.stream(model=name, messages=messages) as stream:
            for event in stream:
                if event.type == "chunk" and event.chunk.choices:
                    choice = event.chunk.choices[0]
                    deltas[choice.index] = deltas.get(choice.index, "") + (choice.delta.content or "")
            final = finished(stream)
        assert choices(final) == choices(whole), f"{name}:\n{choices(final)}\n{choices(whole)}"
        assert plain(final)["usage"] == plain(whole)["usage"], name
        for choice in whole.choices:
            assert deltas[choice.index] == (choice.message.content or ""), name
        print(f"{name}: {[choice.finish_reason for choice in final.choices]}")
    try:
        for _ in client.chat.completions.create(model="error", messages=messages, stream=True):
            pass
    except openai.APIError as error:
        print(f"error: {error.message}")
    else:
        sys.exit("error: the client did not raise what the stream says")


main()
