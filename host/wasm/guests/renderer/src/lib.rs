//! A renderer that does what its template says, nice things and others.

use std::time::Duration;

use bindings::nala::chat::types::{Error, Origin, Piece, Request};

mod bindings {
    #![allow(missing_docs, reason = "generated")]
    wit_bindgen::generate!({ path: "../../../../wit/nala-chat", world: "nala:chat/renderer" });
    export!(Renderer);
    use super::Renderer;
}

struct Renderer;

impl bindings::exports::nala::chat::render::Guest for Renderer {
    fn render(request: Request) -> Result<Vec<Piece>, Error> {
        let source = request.template.source;
        let (what, number) = source.split_once('+').unwrap_or((&source, ""));
        let number = number.parse().unwrap_or(0);
        match what {
            "trap" => core::arch::wasm32::unreachable(),
            "spin" => loop {
                std::hint::black_box(());
            },
            "grow" => {
                let mut all: Vec<Vec<u8>> = Vec::new();
                loop {
                    all.push(std::hint::black_box(vec![1; 1 << 20]));
                }
            }
            "sleep" => std::thread::sleep(Duration::from_millis(number)),
            "work" => work(number),
            "refuse" => return Err(Error::Refused("as asked".into())),
            _ => {}
        }
        Ok(vec![Piece { origin: Origin::Template, text: source }])
    }
}

/// The same as in `prompts`, so that both can be compared.
fn work(n: u64) {
    let mut x = 1_u64;
    for i in 0..n {
        x = std::hint::black_box(x.wrapping_mul(31).wrapping_add(i));
    }
}
