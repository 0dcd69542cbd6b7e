"""Completions of plain texts, and embeddings, through OpenAI's client."""

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


if __name__ == "__main__":
    run(plain_texts_are_gone_on_from, texts_become_vectors)
