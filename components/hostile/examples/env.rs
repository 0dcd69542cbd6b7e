//! Looks for what the host's process knows: variables, arguments, input, and where it is.

use std::io::Read;

use hostile::wasi::http::types::ResponseOutparam;
use hostile::{Asked, answer};

fn handle(_asked: Asked, out: ResponseOutparam) {
    let variables: Vec<_> = std::env::vars_os().collect();
    let arguments: Vec<_> = std::env::args_os().collect();
    let mut input = Vec::new();
    let read = std::io::stdin().read_to_end(&mut input).map_err(|error| error.kind());
    let folder = std::env::current_dir().map_err(|error| error.kind());
    answer(out, &format!("variables {variables:?} arguments {arguments:?} input {read:?} folder {folder:?}"));
}

hostile::guest!(handle);
