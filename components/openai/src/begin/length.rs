//! How long prompts and answers may be.

use nala_sdk::chat::{Content, Message};

use crate::ask::Options;
use crate::error::ApiError;

/// Bytes of text that a token stands for at the most, on the average of a whole
/// conversation. Vocabularies have longer tokens for blanks and dashes at most,
/// and the host refuses more than this for each token of the context, too.
const TOKEN_BYTES: usize = 128;

/// Bytes that a message counts for beside its text: a template prints something for
/// each, which is a token at least.
const MESSAGE_BYTES: usize = TOKEN_BYTES;

/// Bytes that a part of a text counts for beside itself.
const PART_BYTES: usize = 8;

/// Everything that somebody wrote, in bytes, and what each message adds to it. A
/// template may leave some of it out, but none does so with what makes a conversation
/// long.
pub(super) fn text_bytes(messages: &[Message]) -> usize {
    let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let of = |message: &Message| {
        let calls = message.tool_calls.iter().map(|call| call.name.len() + call.arguments.len());
        let content = match &message.content {
            Content::None => 0,
            Content::Text(text) => text.len(),
            Content::Parts(parts) => parts.iter().map(|part| part.len() + PART_BYTES).sum(),
        };
        MESSAGE_BYTES + content + text(&message.reasoning) + text(&message.name) + calls.sum::<usize>()
    };
    messages.iter().map(of).sum()
}

/// Refuses a text that cannot fit into the context, before it is copied into the
/// renderer or tokenised, whose memory might not suffice for it.
pub(super) fn refuse_what_never_fits(param: &str, bytes: usize, context: u32) -> Result<(), ApiError> {
    let most = usize::try_from(context).unwrap_or(usize::MAX).saturating_mul(TOKEN_BYTES);
    if bytes > most { Err(ApiError::too_long(param, bytes, most, context)) } else { Ok(()) }
}

/// How many tokens there is room for behind a prompt of so many.
pub(super) fn room(param: &str, tokens: usize, context: u32) -> Result<u32, ApiError> {
    let room = u32::try_from(tokens).ok().and_then(|length| context.checked_sub(length));
    // Without room for a single new token the prompt does not fit either.
    room.filter(|room| *room > 0).ok_or_else(|| ApiError::context_length(param, tokens, context.saturating_sub(1)))
}

/// How many tokens each answer may have. `cells` are the KV cells for all answers to
/// this prompt, and `prompts` how many prompts the request has.
pub(super) fn of_each(options: &Options, room: u32, prompt: usize, cells: u64, prompts: u32) -> Result<u32, ApiError> {
    let max_new = options.max_tokens.map_or(room, |wanted| wanted.min(room));
    match (options.choices, prompts) {
        (1, 0..=1) => Ok(max_new),
        (n, 0..=1) => share(options.max_tokens, max_new, prompt, n, cells),
        (n, several) => share(options.max_tokens, max_new, prompt, n, cells).map_err(|error| {
            let message = format!(
                "{several} prompts share the KV cells of a request, {cells} each: {n} answers of {max_new} tokens to a \
                 prompt of {prompt} do not fit; send fewer prompts or lower 'max_tokens'"
            );
            ApiError { param: Some("prompt".to_owned()), message, ..error }
        }),
    }
}

/// How many tokens each of `n` choices may have. All of them hold the prompt, and
/// the KV cells of a request, `cells`, must do for all.
fn share(asked: Option<u32>, max_new: u32, prompt: usize, n: u32, cells: u64) -> Result<u32, ApiError> {
    let each = cells / u64::from(n.max(1));
    let room = u32::try_from(each.saturating_sub(prompt as u64)).unwrap_or(u32::MAX);
    // Without a wish for a length the answers end where there is no more room, as a
    // single one does.
    if room == 0 || asked.is_some() && room < max_new {
        return Err(ApiError::invalid(
            "n",
            format!(
                "'n' is {n}: {n} answers of {max_new} tokens to a prompt of {prompt} do not fit into the {cells} KV cells \
                 of a request; lower 'n' or 'max_tokens'"
            ),
        ));
    }
    Ok(max_new.min(room))
}

#[cfg(test)]
mod tests {
    use nala_sdk::chat::ToolCall;

    use super::*;

    #[test]
    fn a_conversation_that_never_fits_is_refused_before_it_is_rendered() {
        let messages = [Message::system("Be brief."), Message::user("x".repeat(9_500_000))];
        let bytes = text_bytes(&messages);
        assert_eq!(bytes, 9_500_009 + 2 * MESSAGE_BYTES);
        let error = refuse_what_never_fits("messages", bytes, 8192).unwrap_err();
        assert_eq!((error.status, error.code), (400, Some("context_length_exceeded")));
        assert_eq!(error.param.as_deref(), Some("messages"));
        assert!(
            error.message.contains("9500265 bytes") && error.message.contains("1048576 bytes"),
            "{}",
            error.message
        );
        assert_eq!(refuse_what_never_fits("messages", 8192 * TOKEN_BYTES, 8192), Ok(()));
        assert_eq!(refuse_what_never_fits("messages", bytes, 131_072), Ok(()));
    }

    #[test]
    fn a_prompt_needs_room_for_an_answer() {
        assert_eq!(room("prompt", 99, 100), Ok(1));
        let error = room("prompt", 100, 100).unwrap_err();
        assert_eq!((error.status, error.param.as_deref()), (400, Some("prompt")));
        assert!(error.message.contains("100 tokens") && error.message.contains("99 fit"), "{}", error.message);
    }

    #[test]
    fn choices_share_the_cells_of_a_request() {
        // Each has 1,000 cells, 100 of which hold the prompt.
        assert_eq!(share(None, 7_900, 100, 8, 8_000), Ok(900));
        assert_eq!(share(Some(900), 900, 100, 8, 8_000), Ok(900));
        let error = share(Some(901), 901, 100, 8, 8_000).unwrap_err();
        assert_eq!((error.status, error.param.as_deref()), (400, Some("n")));
        assert!(error.message.contains("8000 KV cells"), "{}", error.message);
        assert!(share(None, 7_000, 1_000, 8, 8_000).is_err(), "no room for a single token");
    }

    #[test]
    fn prompts_share_the_cells_of_a_request() {
        let mut options = crate::parameters::read(br#"{"model":"m","messages":[{"role":"user","content":"x"}]}"#)
            .unwrap()
            .ask
            .options;
        assert_eq!(of_each(&options, 7_900, 100, 1_000, 1), Ok(7_900), "the only answer is bounded by the context");
        assert_eq!(of_each(&options, 7_900, 100, 1_000, 8), Ok(900));
        options.max_tokens = Some(901);
        let error = of_each(&options, 7_900, 100, 1_000, 8).unwrap_err();
        assert_eq!((error.status, error.param.as_deref()), (400, Some("prompt")));
        assert!(error.message.contains("8 prompts") && error.message.contains("1000 each"), "{}", error.message);
    }

    #[test]
    fn the_text_of_tool_calls_and_thoughts_counts() {
        let mut message = Message::assistant("ab");
        message.tool_calls = vec![ToolCall { id: "1".into(), name: "f".into(), arguments: "{}".into() }];
        message.reasoning = Some("hm".into());
        assert_eq!(text_bytes(&[message]), 7 + MESSAGE_BYTES);
        // Of short ones so many fit as there are tokens.
        let many = vec![Message::user(""); 20_000];
        assert!(refuse_what_never_fits("messages", text_bytes(&many), 8192).is_err());
    }
}
