"""Models of answers that several scripts ask for."""

from typing import Literal, Optional, Union

from pydantic import BaseModel, Field


class Circle(BaseModel):
    kind: Literal["circle"]
    radius: int = Field(ge=1, le=9)


class Square(BaseModel):
    kind: Literal["square"]
    side: int = Field(ge=1, le=9)


class Drawing(BaseModel):
    """A union, by `anyOf`."""

    shape: Union[Circle, Square]
    note: Union[bool, None]


class Step(BaseModel):
    """Refers to itself."""

    name: Literal["walk", "stop"]
    after: Optional["Step"]
