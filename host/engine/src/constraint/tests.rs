use super::*;
use crate::fake::{END, Fake};

fn compiler() -> GrammarCompiler {
    GrammarCompiler::new(Fake::default().load().tokenizer, ConstraintLimits::default())
}

fn compile(source: GrammarSource) -> Result<Grammar, Error> {
    block_on(compiler().compile(source))
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn bytes(text: &str) -> Vec<u32> {
    text.bytes().map(u32::from).collect()
}

#[test]
fn a_regex_allows_what_it_matches() {
    let grammar = compile(GrammarSource::Regex("a(b|c)+".to_owned())).unwrap();
    let mut matcher = Matcher::new(&grammar);
    assert_eq!(matcher.mask().unwrap().tokens().collect::<Vec<_>>(), bytes("a"));
    assert_eq!(matcher.accept(&bytes("abcd")), Ok(3));
    assert_eq!(matcher.mask().unwrap().tokens().collect::<Vec<_>>(), [98, 99, END]);
    assert_eq!(matcher.accept(&[END, 98]), Ok(1));
    assert!(matcher.is_done());
}
