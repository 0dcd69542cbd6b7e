//! A helper for the tests of the jail. It compiles nothing; it does what its
//! input says, most of which a compiler should not.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking"
)]

use std::io::Write;
use std::process::{Command, ExitCode};
use std::time::Duration;

use nala_deploy::{Jail, JailLimits};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [_verb, limits, input, output] = arguments.as_slice() else {
        eprintln!("usage: jailed VERB LIMITS INPUT OUTPUT");
        return ExitCode::from(2);
    };
    let limits: JailLimits = limits.parse().unwrap();
    Jail::enter(&limits).unwrap();
    match behave(&std::fs::read_to_string(input).unwrap(), output) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn behave(input: &str, output: &str) -> Result<(), String> {
    let (verb, rest) = input.split_once(' ').unwrap_or((input, ""));
    let mut file = std::fs::File::create(output).map_err(|error| error.to_string())?;
    match verb {
        "copy" => file.write_all(rest.as_bytes()).unwrap(),
        "refuse" => return Err(rest.to_owned()),
        "loop" => loop {
            std::hint::spin_loop();
        },
        "sleep" => std::thread::sleep(Duration::from_secs(600)),
        "allocate" => {
            let mut kept = Vec::new();
            loop {
                kept.push(vec![1_u8; 1 << 20]);
                std::hint::black_box(&kept);
            }
        }
        "flood" => {
            let line = [b'x'; 1 << 16];
            for _ in 0..256 {
                std::io::stdout().write_all(&line).unwrap();
                std::io::stderr().write_all(&line).unwrap();
            }
            return Err("the end".to_owned());
        }
        "write" => loop {
            file.write_all(&[0; 1 << 16]).map_err(|error| error.to_string())?;
        },
        "crash" => std::process::abort(),
        "vanish" => std::fs::remove_file(output).unwrap(),
        "link" => {
            std::fs::remove_file(output).unwrap();
            std::os::unix::fs::symlink("/etc/hostname", output).unwrap();
        }
        "open" => {
            let files: Result<Vec<_>, _> = (0..1000).map(|_| std::fs::File::open("/dev/null")).collect();
            files.map_err(|error| error.to_string())?;
        }
        // Tells what it was given: the environment, the input, the parts of /proc
        // that name its group.
        "tell" => {
            let mut input = String::new();
            std::io::Read::read_to_string(&mut std::io::stdin(), &mut input).unwrap();
            write!(file, "{} variables, {} bytes", std::env::vars_os().count(), input.len()).unwrap();
        }
        // Leaves somebody behind, whose number is in the output.
        "fork" => {
            let left = Command::new("/bin/sleep").arg("600").spawn().map_err(|error| error.to_string())?;
            write!(file, "{}", left.id()).unwrap();
            if rest == "and-sleep" {
                std::thread::sleep(Duration::from_secs(600));
            }
        }
        _ => return Err(format!("`{verb}` is not known")),
    }
    Ok(())
}
