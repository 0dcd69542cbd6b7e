"""Structured outputs through OpenAI's client: its own schemas of Pydantic models, and others."""

import json
from enum import Enum
from typing import Literal, Optional

from openai import BadRequestError, LengthFinishReasonError, OpenAI
from pydantic import BaseModel, Field

from checks import QUESTION, URL, refused, run
from shapes import Circle, Drawing, Square, Step

client = OpenAI(base_url=URL + "/v1", api_key="none", max_retries=0)
MODEL = client.models.list().data[0].id


class Colour(str, Enum):
    red = "red"
    green = "green"


class Town(BaseModel):
    name: str = Field(max_length=12)
    colour: Colour


class Country(BaseModel):
    """Models in models, lists of them, enums, and what may be null."""

    capital: Town
    towns: list[Town] = Field(max_length=2)
    population: int = Field(ge=0, le=100)
    motto: Optional[Literal["liberty", "unity"]]


WALK = '{"name":"walk","after":{"name":"stop","after":null}}'
STEPS = [
    {"role": "system", "content": "Repeat what the user says."},
    {"role": "user", "content": WALK},
    {"role": "assistant", "content": WALK},
    {"role": "user", "content": WALK},
]


def parse(form, messages=QUESTION, max_tokens=200):
    asked = {"model": MODEL, "messages": messages, "temperature": 0, "max_tokens": max_tokens, "response_format": form}
    message = client.chat.completions.parse(**asked).choices[0].message
    assert isinstance(message.parsed, form), message
    # The text itself is JSON that is valid under the model, and nothing else.
    assert form.model_validate_json(message.content) == message.parsed, message
    return message


def schema(schema):
    return {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": schema}}


def create(**more):
    asked = {"model": MODEL, "messages": QUESTION, "temperature": 0, "max_tokens": 100}
    return client.chat.completions.create(**asked | more)


def models_lie_in_models():
    parsed = parse(Country).parsed
    assert len(parsed.towns) <= 2 and 0 <= parsed.population <= 100, parsed


def a_union_is_one_of_its_kinds():
    shape = parse(Drawing).parsed.shape
    assert isinstance(shape, (Circle, Square)), shape


def a_schema_may_refer_to_itself():
    message = parse(Step, STEPS)
    assert message.parsed.name in ("walk", "stop"), message


def the_stream_helper_parses_as_it_goes():
    seen, done = [], []
    asked = {"model": MODEL, "messages": QUESTION, "temperature": 0, "max_tokens": 200, "response_format": Drawing}
    with client.chat.completions.stream(**asked) as stream:
        for event in stream:
            if event.type == "content.delta":
                seen.append(event.parsed)
            elif event.type == "content.done":
                done.append(event)
        final = stream.get_final_completion().choices[0].message
    [event] = done
    assert isinstance(final.parsed, Drawing), final
    assert (event.content, event.parsed) == (final.content, final.parsed), (event, final)
    assert {"shape", "note"} == set(seen[-1]), seen


def schemas_of_other_kinds_are_followed():
    digits = {"type": "array", "items": {"type": "integer", "minimum": 1, "maximum": 3}, "minItems": 2, "maxItems": 2}
    named = {
        "$defs": {"n": {"type": "number", "minimum": 0, "maximum": 5}},
        "type": "object",
        "properties": {"n": {"$ref": "#/$defs/n"}},
        "required": ["n"],
        "additionalProperties": False,
    }
    cases = [
        (digits, list),
        ({"anyOf": [{"type": "boolean"}, {"type": "null"}]}, (bool, type(None))),
        ({"enum": ["a", 2, None]}, (str, int, type(None))),
        ({"const": {"x": [1, "ü"]}}, dict),
        ({"type": "string", "pattern": "^[A-Z]{2}-[0-9]{3}$"}, str),
        (named, dict),
    ]
    for wanted, kinds in cases:
        content = create(response_format=schema(wanted)).choices[0].message.content
        assert isinstance(json.loads(content), kinds), (wanted, content)


def any_object_is_an_object():
    answer = create(
        messages=[{"role": "user", "content": 'Say {"a": 1} as JSON.'}],
        response_format={"type": "json_object"},
        max_tokens=300,
    ).choices[0]
    # A small model may not find an end.
    assert answer.message.content.lstrip().startswith("{"), answer
    if answer.finish_reason == "stop":
        assert isinstance(json.loads(answer.message.content), dict), answer


def an_answer_without_room_is_no_answer():
    error = refused(LengthFinishReasonError, lambda: parse(Country, max_tokens=4))
    assert error.completion.choices[0].finish_reason == "length", error


def what_cannot_be_followed_is_refused():
    at = "response_format.json_schema.schema"
    wrong = schema({"type": "object", "properties": {"a": {"type": "nothing"}}})
    error = refused(BadRequestError, lambda: create(response_format=wrong), param=at)
    assert "nothing" in str(error), error
    refused(BadRequestError, lambda: create(response_format=schema([])), param=at)
    lost = schema({"$ref": "#/$defs/nowhere"})
    refused(BadRequestError, lambda: create(response_format=lost), param=at)
    unnamed = {"type": "json_schema", "json_schema": {"schema": {}}}
    refused(BadRequestError, lambda: create(response_format=unnamed), param="response_format.json_schema.name")


if __name__ == "__main__":
    run(
        models_lie_in_models,
        a_union_is_one_of_its_kinds,
        a_schema_may_refer_to_itself,
        the_stream_helper_parses_as_it_goes,
        schemas_of_other_kinds_are_followed,
        any_object_is_an_object,
        an_answer_without_room_is_no_answer,
        what_cannot_be_followed_is_refused,
    )
