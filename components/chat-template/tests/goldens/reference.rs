//! The engine alone beside transformers: the same variables, byte for byte.

use crate::golden::{Goldens, Outcome, templates};
use chat_template::Error;

/// Templates that fail in the reference, with how often and in which words, and
/// render here: see the table in the documentation of `engine`.
const RENDER_HERE_ALONE: [(&str, usize, &str); 8] = [
    ("CohereForAI-c4ai-command-r-plus-tool_use", 14, "TypeError: 'NoneType' object is not iterable"),
    ("LFM2.5-8B-A1B", 1, "TypeError: 'NoneType' object is not iterable"),
    ("NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use", 13, "TypeError: 'NoneType' object is not iterable"),
    ("NousResearch-Hermes-3-Llama-3.1-8B-tool_use", 13, "TypeError: 'NoneType' object is not iterable"),
    ("deepseek-ai-DeepSeek-V3.2", 1, "TemplateRuntimeError: No filter named 'from_json' found."),
    ("deepseek-ai-DeepSeek-V4", 1, "TemplateRuntimeError: No filter named 'from_json' found."),
    ("deepseek-ai-DeepSeek-V4-Flash-0731", 1, "TemplateRuntimeError: No filter named 'from_json' found."),
    ("llama-cpp-deepseek-r1", 9, "TypeError: Object of type generator is not JSON serializable"),
];

/// The template whose prompts the reference escapes for HTML.
const ESCAPED: &str = "meetkai-functionary-medium-v3.1";

fn without_html(text: &str) -> String {
    let mut text = text.to_owned();
    for (escape, c) in [("&lt;", "<"), ("&gt;", ">"), ("&#34;", "\""), ("&#39;", "'"), ("&amp;", "&")] {
        text = text.replace(escape, c);
    }
    text
}

#[test]
fn every_template_renders_as_in_transformers() {
    let goldens = Goldens::read();
    let (corpus, own) = (templates("corpus"), templates("templates"));
    assert_eq!(corpus.len(), 70);
    let mut differ = Vec::new();
    let mut alone = Vec::new();
    let mut escaped = 0;
    let mut unlocked = 0;
    for (name, source) in corpus.iter().chain(&own) {
        let outcomes = goldens.of(name);
        assert!(outcomes.len() >= 20, "{name} has {} conversations", outcomes.len());
        for (conversation, expected) in outcomes {
            let found = goldens.raw(source, &conversation);
            let same = match (&expected, &found) {
                (Outcome::Prompt(a), Ok(b)) if name == ESCAPED && a != b => {
                    escaped += 1;
                    without_html(a) == *b
                }
                (Outcome::Prompt(a), Ok(b)) => a == b,
                (Outcome::Locked(a), Ok(b)) => {
                    unlocked += 1;
                    a == b
                }
                (Outcome::Refused(a), Err(Error::Refused(b))) => a == b,
                (Outcome::Failed(_), Err(Error::Template(_))) => true,
                (Outcome::Failed(why), Ok(_)) => {
                    alone.push((name.as_str(), why.clone()));
                    true
                }
                _ => false,
            };
            if !same {
                differ.push(format!("{name} / {conversation}: {}", crate::golden::difference(&expected, &found)));
            }
        }
    }
    assert!(differ.is_empty(), "{} differ:\n{}", differ.len(), differ.join("\n"));
    assert_eq!(escaped, 9);
    assert_eq!(unlocked, 14);
    for (name, times, why) in RENDER_HERE_ALONE {
        let found = alone.iter().filter(|found| **found == (name, why.to_owned())).count();
        assert_eq!(found, times, "{name}");
    }
    assert_eq!(alone.len(), RENDER_HERE_ALONE.iter().map(|(_, times, _)| times).sum::<usize>(), "{alone:?}");
}
