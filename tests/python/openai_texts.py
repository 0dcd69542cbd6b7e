"""Completions of plain texts through OpenAI's client."""

from openai import OpenAI

from checks import URL, run

client = OpenAI(base_url=URL + "/v1", api_key="none", max_retries=0)
MODEL = client.models.list().data[0].id


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


if __name__ == "__main__":
    run(plain_texts_are_gone_on_from)
