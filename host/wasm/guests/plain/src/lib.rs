//! Functions of values of all types, which give what they take, and some that cannot be
//! called with values.

mod bindings {
    #![allow(missing_docs, reason = "generated")]
    wit_bindgen::generate!({
        inline: r#"
            package test:plain@1.2.3;

            interface kinds {
                record person { name: string, age: option<u8>, nick: option<option<string>> }
                variant shape { dot, circle(f64), polygon(list<tuple<s32, s32>>) }
                enum color { red, light-blue }
                flags rights { read, write, %export }

                integers: func(a: s8, b: u16, c: s64, d: u64) -> tuple<s8, u16, s64, u64>;
                floats: func(a: f32, b: f64) -> tuple<f32, f64>;
                texts: func(a: char, b: string, c: bool) -> tuple<char, string, bool>;
                bytes: func(data: list<u8>) -> list<u8>;
                people: func(all: list<person>) -> list<person>;
                shapes: func(all: list<shape>) -> list<shape>;
                paint: func(color: color) -> color;
                grant: func(rights: rights) -> rights;
                outcome: func(outcome: result<u32, string>) -> option<result<u32, string>>;
                divide: func(a: s64, b: s64) -> result<s64, string>;
                check: func(good: bool) -> result;
                forget: func(text: string);

                resource handle;
                open: func() -> handle;
            }

            world plain {
                export kinds;
                export add: func(a: u32, b: u32) -> u32;
            }
        "#,
        world: "test:plain/plain",
    });
    export!(Plain with_types_in self);
    use super::Plain;
}

use bindings::exports::test::plain::kinds::{Color, Guest, GuestHandle, Handle, Person, Rights, Shape};

struct Plain;

struct Nothing;

impl GuestHandle for Nothing {}

impl bindings::Guest for Plain {
    fn add(a: u32, b: u32) -> u32 {
        a + b
    }
}

impl Guest for Plain {
    type Handle = Nothing;

    fn integers(a: i8, b: u16, c: i64, d: u64) -> (i8, u16, i64, u64) {
        (a, b, c, d)
    }

    fn floats(a: f32, b: f64) -> (f32, f64) {
        (a, b)
    }

    fn texts(a: char, b: String, c: bool) -> (char, String, bool) {
        (a, b, c)
    }

    fn bytes(data: Vec<u8>) -> Vec<u8> {
        data
    }

    fn people(all: Vec<Person>) -> Vec<Person> {
        all
    }

    fn shapes(all: Vec<Shape>) -> Vec<Shape> {
        all
    }

    fn paint(color: Color) -> Color {
        color
    }

    fn grant(rights: Rights) -> Rights {
        rights
    }

    fn outcome(outcome: Result<u32, String>) -> Option<Result<u32, String>> {
        Some(outcome)
    }

    fn divide(a: i64, b: i64) -> Result<i64, String> {
        a.checked_div(b).ok_or_else(|| "by zero".to_owned())
    }

    fn check(good: bool) -> Result<(), ()> {
        if good { Ok(()) } else { Err(()) }
    }

    fn forget(_text: String) {}

    fn open() -> Handle {
        Handle::new(Nothing)
    }
}
