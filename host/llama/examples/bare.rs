//! Prints the rates of a bare `llama_decode` loop:
//! `cargo run --release -p nala-llama --example bare -- MODEL STREAMS DEPTH NEW auto|on|off [ROUNDS]`.

#![allow(clippy::print_stdout, reason = "a program for the terminal")]

use std::error::Error;
use std::path::Path;

use nala_llama::bare::decode_loop;
use nala_llama::{FlashAttention, LoadOptions, system_info};

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [model, streams, depth, new, flash, rest @ ..] = args.as_slice() else {
        return Err("usage: bare MODEL STREAMS DEPTH NEW auto|on|off [ROUNDS]".into());
    };
    let flash_attention = match flash.as_str() {
        "on" => FlashAttention::On,
        "off" => FlashAttention::Off,
        _ => FlashAttention::Auto,
    };
    let options = LoadOptions { flash_attention, ..LoadOptions::default() };
    // Any tokens do: the work does not depend on which they are.
    let prompt: Vec<u32> = (0..depth.parse()?).map(|token| 100 + token).collect();
    println!("{}", system_info());
    let rounds: u32 = rest.first().map_or(Ok(1), |rounds| rounds.parse())?;
    for _ in 0..rounds {
        let run = decode_loop(Path::new(model), &options, streams.parse()?, &prompt, new.parse()?)?;
        println!(
            "{streams} streams from depth {depth}, flash attention {flash}: {:.1} tokens/s decode, {:.1} prefill",
            run.decode_rate(),
            run.prompt_rate(),
        );
    }
    Ok(())
}
