//! What tools may ask whoever called them.

use serde::de::IgnoredAny;

use super::bindings::nala::tools::types::{Abilities, Inquiry, Question, Refusal};

/// Questions at a time.
const MOST: usize = 16;
/// What all of them have, in bytes at the most.
pub(super) const MOST_BYTES: usize = 64 << 10;
/// The longest name of one, in bytes.
const LONGEST_KEY: usize = 256;

/// Refuses questions that are none, and those that nobody could reply to.
pub(super) fn check(questions: &[Question], abilities: Abilities) -> Result<(), Refusal> {
    let invalid = |why: String| Err(Refusal::Invalid(why));
    if questions.is_empty() || questions.len() > MOST {
        return invalid(format!(
            "there are {} questions; between 1 and {MOST} can be asked at a time",
            questions.len()
        ));
    }
    let length = |question: &Question| question.key.len().saturating_add(question.parameters.len());
    if questions.iter().map(length).fold(0, usize::saturating_add) > MOST_BYTES {
        return invalid(format!("the questions have more than {MOST_BYTES} bytes"));
    }
    let mut lacking = Abilities::empty();
    for (at, Question { key, kind, parameters }) in questions.iter().enumerate() {
        if key.is_empty() || key.len() > LONGEST_KEY {
            return invalid(format!("a question's key has 1 to {LONGEST_KEY} bytes, and this one {}", key.len()));
        }
        if questions.iter().take(at).any(|other| other.key == *key) {
            return invalid(format!("two questions have the key {key:?}"));
        }
        if !is_object(parameters) {
            return invalid(format!("what {key:?} asks is no JSON object"));
        }
        let needs = needed(*kind, parameters);
        lacking |= needs & !abilities;
    }
    if lacking == Abilities::empty() { Ok(()) } else { Err(Refusal::Unable(lacking)) }
}

/// What somebody has to be able to do who is asked this.
fn needed(kind: Inquiry, parameters: &str) -> Abilities {
    match kind {
        Inquiry::Elicitation if is_url(parameters) => Abilities::ELICIT_URL,
        Inquiry::Elicitation => Abilities::ELICIT_FORM,
        Inquiry::Sampling => Abilities::SAMPLE,
        Inquiry::Roots => Abilities::ROOTS,
    }
}

fn is_url(parameters: &str) -> bool {
    /// The one field that matters here.
    #[derive(serde::Deserialize)]
    struct Elicitation {
        mode: Option<String>,
    }
    serde_json::from_str(parameters).is_ok_and(|asked: Elicitation| asked.mode.as_deref() == Some("url"))
}

/// Whether a text is JSON. Nothing is kept of what is read.
pub(super) fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// Whether a text is a JSON object.
pub(super) fn is_object(text: &str) -> bool {
    text.trim_start().starts_with('{') && is_json(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(key: &str, kind: Inquiry, parameters: &str) -> Question {
        Question { key: key.into(), kind, parameters: parameters.into() }
    }

    #[test]
    fn questions_are_asked_of_those_alone_who_can_be_asked() {
        let form = question("a", Inquiry::Elicitation, "{\"message\": \"who?\"}");
        let page = question("b", Inquiry::Elicitation, "{\"mode\": \"url\", \"url\": \"https://a.example\"}");
        let roots = question("c", Inquiry::Roots, "{}");
        let all = [form.clone(), page, roots];
        assert!(check(&all, Abilities::all()).is_ok());
        let lacking = check(&all, Abilities::ELICIT_FORM);
        let Err(Refusal::Unable(lacking)) = lacking else { panic!("{lacking:?}") };
        assert_eq!(lacking, Abilities::ELICIT_URL | Abilities::ROOTS);
        let sampling = question("d", Inquiry::Sampling, "{}");
        let lacking = check(&[sampling], Abilities::empty());
        assert!(matches!(lacking, Err(Refusal::Unable(lacking)) if lacking == Abilities::SAMPLE));
    }

    #[test]
    fn what_is_no_question_is_refused_whoever_is_asked() {
        let good = || question("a", Inquiry::Roots, "{}");
        let many: Vec<Question> = (0..17).map(|n| question(&n.to_string(), Inquiry::Roots, "{}")).collect();
        for wrong in [
            vec![],
            vec![good(), good()],
            vec![question("", Inquiry::Roots, "{}")],
            vec![question(&"k".repeat(1000), Inquiry::Roots, "{}")],
            vec![question("a", Inquiry::Roots, "[]")],
            vec![question("a", Inquiry::Roots, "{")],
            many,
        ] {
            assert!(matches!(check(&wrong, Abilities::all()), Err(Refusal::Invalid(_))), "{wrong:?}");
        }
    }
}
