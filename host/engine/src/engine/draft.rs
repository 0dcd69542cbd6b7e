//! Whether a draft model fits a model.

use super::StartError;
use crate::backend::LoadedModel;
use crate::thread::MakeBackend;
use crate::tokenizer::Tokenizer;

/// What makes the draft model's backend.
///
/// # Errors
/// [`StartError::Draft`] if its tokens do not mean what those of the model do: its
/// guesses would be nonsense.
pub(super) fn backend_for(model: &dyn Tokenizer, draft: LoadedModel) -> Result<MakeBackend, StartError> {
    let other = &*draft.tokenizer;
    let (own, its) = (model.vocab(), other.vocab());
    if own != its {
        return Err(StartError::Draft(format!("its vocabulary has {its} entries and the model's {own}")));
    }
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for token in 0..own {
        a.clear();
        b.clear();
        let differ = model.piece(token, true, &mut a).is_ok() != other.piece(token, true, &mut b).is_ok() || a != b;
        if differ {
            let (a, b) = (String::from_utf8_lossy(&a).into_owned(), String::from_utf8_lossy(&b).into_owned());
            return Err(StartError::Draft(format!("its token {token} is {b:?} and the model's {a:?}")));
        }
    }
    Ok(draft.backend)
}
