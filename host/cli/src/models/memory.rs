//! How much memory models take, and how much there is for them.

use std::path::Path;

use nala_engine::Residence;
use nala_llama::LoadOptions;
use nala_machine::Machine;
use nala_models::gguf::Header;

/// Bytes of a logit.
const LOGIT: u64 = 4;

/// Times that the logits of a batch are kept: as computed and as handed out.
const ROWS_KEPT: u64 = 2;

/// What a model takes when it is loaded, in bytes: the file, which is mapped, the
/// KV cells, those of the context for embeddings too, which is made later, and the
/// logits of a batch, the largest part of what computing needs.
pub(super) fn estimate(path: &Path, file: u64, options: &LoadOptions) -> u64 {
    // llama.cpp has its own reader; what only it can read is taken by its size.
    let Ok(header) = Header::read(path) else { return file };
    let cells = u64::from(options.kv_cells).saturating_add(options.longest_embedding().into());
    let cells = header.kv_cell_bytes().unwrap_or(0).saturating_mul(cells);
    let row = header.vocabulary().unwrap_or(0).saturating_mul(LOGIT * ROWS_KEPT);
    file.saturating_add(cells).saturating_add(row.saturating_mul(options.batch_tokens.into()))
}

/// Three quarters of what this process may use; the rest is for components,
/// saved sessions and the system. None where that is not known.
pub(crate) fn default_budget() -> Option<u64> {
    part(Machine::probe().memory.usable_bytes())
}

fn part(usable: Option<u64>) -> Option<u64> {
    usable.map(|usable| usable / 4 * 3)
}

/// The least memory with which each model can be loaded at some time: all that
/// stay, and the largest of the others.
pub(super) fn least(needs: &[(u64, Residence)]) -> u64 {
    let of = |wanted| needs.iter().filter(move |(_, residence)| *residence == wanted).map(|(bytes, _)| *bytes);
    let stay = of(Residence::Resident).fold(0_u64, u64::saturating_add);
    stay.saturating_add(of(Residence::OnDemand).max().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_stay_and_the_largest_other_must_fit() {
        use Residence::{OnDemand, Resident};
        assert_eq!(least(&[]), 0);
        assert_eq!(least(&[(3, OnDemand), (5, Resident), (4, OnDemand), (1, Resident)]), 10);
        assert_eq!(part(Some(16 << 30)), Some(12 << 30));
        assert_eq!(part(None), None);
    }
}
