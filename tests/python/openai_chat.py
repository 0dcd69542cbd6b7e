"""Chat completions through OpenAI's client: whole, as raw chunks, by the stream helper, async."""

import asyncio
import json

from openai import AsyncOpenAI, OpenAI

from checks import FRANCE, QUESTION, URL, run

client = OpenAI(base_url=URL + "/v1", api_key="none", max_retries=0)
MODEL = client.models.list().data[0].id
ASKED = {"model": MODEL, "messages": QUESTION, "temperature": 0}


def text_of(completion):
    return completion.choices[0].message.content


def models_are_listed_and_described():
    listed = client.models.list()
    assert listed.object == "list", listed
    one = client.models.retrieve(MODEL)
    assert (one.id, one.object) == (MODEL, "model"), one
    assert isinstance(one.created, int) and one.owned_by, one


def an_answer_has_all_its_parts():
    answer = client.chat.completions.create(**ASKED)
    assert answer.object == "chat.completion" and answer.id and answer.created > 1_700_000_000, answer
    assert answer.model == MODEL, answer
    [choice] = answer.choices
    assert (choice.index, choice.finish_reason, choice.logprobs) == (0, "stop", None), choice
    assert choice.message.role == "assistant" and choice.message.refusal is None, choice
    assert choice.message.tool_calls is None, choice
    assert "Paris" in choice.message.content, choice
    usage = answer.usage
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens, usage
    assert usage.prompt_tokens_details.cached_tokens <= usage.prompt_tokens, usage


def chunks_make_the_whole_answer():
    whole = client.chat.completions.create(**ASKED)
    chunks = list(client.chat.completions.create(**ASKED, stream=True, stream_options={"include_usage": True}))
    assert {chunk.object for chunk in chunks} == {"chat.completion.chunk"}, chunks
    for field in ("id", "created", "model"):
        assert len({getattr(chunk, field) for chunk in chunks}) == 1, f"{field} changes: {chunks}"
    *parts, last = chunks
    assert last.choices == [] and last.usage.completion_tokens == whole.usage.completion_tokens, last
    assert last.usage.prompt_tokens == whole.usage.prompt_tokens, last
    assert all(len(part.choices) == 1 and part.usage is None for part in parts), parts
    assert parts[0].choices[0].delta.role == "assistant", parts[0]
    assert all(part.choices[0].delta.role is None for part in parts[1:]), parts
    assert "".join(part.choices[0].delta.content or "" for part in parts) == text_of(whole), parts
    reasons = [part.choices[0].finish_reason for part in parts]
    assert reasons == [None] * (len(parts) - 1) + ["stop"], reasons
    bare = list(client.chat.completions.create(**ASKED, stream=True))
    assert all(chunk.choices and chunk.usage is None for chunk in bare), bare


def the_stream_helper_gathers_the_same():
    whole = client.chat.completions.create(**ASKED)
    seen, text = [], ""
    with client.chat.completions.stream(**ASKED, stream_options={"include_usage": True}) as stream:
        for event in stream:
            seen.append(event.type)
            if event.type == "content.delta":
                text += event.delta
                assert event.snapshot == text, (event, text)
            elif event.type == "content.done":
                assert event.content == text == text_of(whole), (event, text)
        final = stream.get_final_completion()
    assert set(seen) == {"chunk", "content.delta", "content.done"}, seen
    assert seen.count("content.done") == 1, seen
    assert text_of(final) == text_of(whole), final
    assert final.choices[0].finish_reason == "stop", final
    assert final.usage.completion_tokens == whole.usage.completion_tokens, (final.usage, whole.usage)


def logprobs_are_the_same_in_both_ways():
    asked = {**ASKED, "logprobs": True, "top_logprobs": 2}
    whole = client.chat.completions.create(**asked)
    entries = whole.choices[0].logprobs.content
    assert all(entry.logprob <= 0 and len(entry.top_logprobs) == 2 for entry in entries), entries
    # At temperature 0 the best is taken.
    assert all(entry.token == entry.top_logprobs[0].token for entry in entries), entries
    spelled = b"".join(bytes(entry.bytes) for entry in entries).decode()
    assert spelled.startswith(text_of(whole)), (spelled, text_of(whole))
    done = []
    with client.chat.completions.stream(**asked) as stream:
        for event in stream:
            if event.type == "logprobs.content.done":
                done += event.content
        final = stream.get_final_completion()
    streamed = final.choices[0].logprobs.content
    assert [entry.token for entry in streamed] == [entry.token for entry in entries], (streamed, entries)
    assert [entry.token for entry in done] == [entry.token for entry in entries], (done, entries)


def several_answers_come_apart():
    asked = {**ASKED, "temperature": 1, "seed": 7, "n": 3, "max_tokens": 8}
    whole = client.chat.completions.create(**asked)
    assert [choice.index for choice in whole.choices] == [0, 1, 2], whole
    texts, ends = ["", "", ""], {}
    for chunk in client.chat.completions.create(**asked, stream=True):
        [choice] = chunk.choices
        texts[choice.index] += choice.delta.content or ""
        if choice.finish_reason:
            assert choice.index not in ends, f"choice {choice.index} ends twice"
            ends[choice.index] = choice.finish_reason
    assert sorted(ends) == [0, 1, 2] and set(ends.values()) <= {"stop", "length"}, ends
    assert all(texts), texts


def a_seed_says_the_same_again():
    asked = {**ASKED, "temperature": 1, "seed": 42, "max_tokens": 12}
    first, second = (text_of(client.chat.completions.create(**asked)) for _ in range(2))
    assert first == second, (first, second)


def an_answer_ends_where_it_is_told_to():
    cut = client.chat.completions.create(**ASKED, max_completion_tokens=2)
    assert cut.choices[0].finish_reason == "length" and cut.usage.completion_tokens == 2, cut
    stopped = client.chat.completions.create(**ASKED, stop=["Paris", "paris"])
    assert stopped.choices[0].finish_reason == "stop" and "Paris" not in text_of(stopped), stopped


def messages_take_every_form():
    answer = client.chat.completions.create(
        model=MODEL,
        temperature=0,
        max_tokens=16,
        messages=[
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "name": "ann", "content": [{"type": "text", "text": "Say "}, {"type": "text", "text": "hi."}]},
            {"role": "assistant", "content": "Hi."},
            {"role": "user", "content": FRANCE},
        ],
    )
    assert text_of(answer), answer


def letters_of_many_bytes_stay_whole():
    word = "Zürich 🏔️ 東京"
    asked = {
        "model": MODEL,
        "messages": QUESTION,
        "temperature": 0,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "word", "strict": True, "schema": {"type": "string", "enum": [word]}},
        },
    }
    assert json.loads(text_of(client.chat.completions.create(**asked))) == word
    deltas = [chunk.choices[0].delta.content or "" for chunk in client.chat.completions.create(**asked, stream=True)]
    assert "\ufffd" not in "".join(deltas), deltas
    assert json.loads("".join(deltas)) == word, deltas


def raw_responses_have_their_headers():
    raw = client.chat.completions.with_raw_response.create(**ASKED)
    assert raw.headers["content-type"].startswith("application/json"), raw.headers
    assert "Paris" in text_of(raw.parse())
    with client.chat.completions.with_streaming_response.create(**ASKED, stream=True) as response:
        assert response.headers["content-type"].startswith("text/event-stream"), response.headers
        lines = [line for line in response.iter_lines() if line]
    assert all(line.startswith("data: ") for line in lines), lines
    assert lines[-1] == "data: [DONE]", lines[-1]
    assert all(json.loads(line[6:]) for line in lines[:-1]), lines


def the_async_client_asks_several_at_once():
    async def ask():
        async with AsyncOpenAI(base_url=URL + "/v1", api_key="none", max_retries=0) as many:
            whole = [many.chat.completions.create(**ASKED) for _ in range(3)]

            async def streamed():
                async with many.chat.completions.stream(**ASKED) as stream:
                    async for _ in stream:
                        pass
                    return await stream.get_final_completion()

            return await asyncio.gather(*whole, streamed())

    answers = asyncio.run(ask())
    assert len({answer.id for answer in answers}) == len(answers), answers
    assert all("Paris" in text_of(answer) for answer in answers), answers


if __name__ == "__main__":
    run(
        models_are_listed_and_described,
        an_answer_has_all_its_parts,
        chunks_make_the_whole_answer,
        the_stream_helper_gathers_the_same,
        logprobs_are_the_same_in_both_ways,
        several_answers_come_apart,
        a_seed_says_the_same_again,
        an_answer_ends_where_it_is_told_to,
        messages_take_every_form,
        letters_of_many_bytes_stay_whole,
        raw_responses_have_their_headers,
        the_async_client_asks_several_at_once,
    )
