//! Checks of [`Backend`] itself.

use super::begun;
use crate::backend::{Backend, BatchEntry, DecodeError, LoadedModel, SeqId, Token};

pub(super) const A: SeqId = SeqId(0);
pub(super) const B: SeqId = SeqId(1);

pub(super) fn run(load: &dyn Fn() -> LoadedModel) {
    let model = load();
    let tokens = begun(&*model.tokenizer, "The quick brown fox jumps over the lazy dog.");
    let mut backend = (model.backend)().unwrap();
    let backend = &mut *backend;
    let limits = backend.limits();
    assert!(limits.sequences >= 4 && limits.kv_cells <= 1024, "load a small context: {limits:?}");
    assert!(tokens.len() >= 8 && tokens.len() <= limits.batch_tokens as usize);

    logits_come_where_asked_for(backend, &tokens);
    chunks_equal_the_whole(backend, &tokens);
    neighbours_change_nothing(backend, &tokens);
    cutting_back_forgets(backend, &tokens);
    refused_batches_change_nothing(backend, &tokens);
    cells_run_out_cleanly(backend, tokens[1]);
}

/// Entries for tokens of one sequence from a position on; logits at the last.
pub(super) fn entries(seq: SeqId, from: usize, tokens: &[Token]) -> Vec<BatchEntry> {
    let entry = |(i, &token): (usize, &Token)| BatchEntry {
        token,
        position: u32::try_from(from + i).unwrap(),
        seq,
        logits: i + 1 == tokens.len(),
    };
    tokens.iter().enumerate().map(entry).collect()
}

/// Logits after the tokens, in an empty sequence that is emptied again.
pub(super) fn alone(backend: &mut dyn Backend, tokens: &[Token]) -> Vec<f32> {
    assert!(backend.truncate(A, 0));
    backend.decode(&entries(A, 0, tokens)).unwrap();
    let row = backend.logits(tokens.len() - 1).unwrap().to_vec();
    assert!(backend.truncate(A, 0));
    row
}

/// Kernels may sum in another order for another batch shape, which moves logits
/// by a little: by less than what separates one token from the next best, where
/// the model is decided at all. What all logits have in common says nothing, and
/// the farthest of many thousands little, so it is the usual distance that counts.
pub(super) fn assert_close(a: &[f32], b: &[f32], what: &str) {
    assert_eq!(a.len(), b.len());
    let spread = f64::from(a.iter().fold(0.0_f32, |m, x| m.max(x.abs())).max(1.0));
    let apart = || a.iter().zip(b).map(|(x, y)| f64::from(x - y));
    let common = apart().sum::<f64>() / a.len() as f64;
    let usual = (apart().map(|d| (d - common).powi(2)).sum::<f64>() / a.len() as f64).sqrt();
    assert!(usual <= spread * 0.02, "{what}: logits usually differ by {usual} (largest {spread}, in common {common})");
    let best = |row: &[f32]| (0..row.len()).max_by(|&i, &j| row[i].total_cmp(&row[j])).unwrap();
    let ahead = f64::from(a[best(a)] - a[best(b)]);
    assert!(
        ahead <= (spread * 0.02).max(usual * 4.0),
        "{what}: token {} is the most likely, not {}, which is {ahead} behind (logits usually differ by {usual})",
        best(a),
        best(b)
    );
}

fn logits_come_where_asked_for(backend: &mut dyn Backend, tokens: &[Token]) {
    let mut batch = entries(A, 0, tokens);
    batch[1].logits = true;
    backend.decode(&batch).unwrap();
    let vocab = backend.limits().vocab as usize;
    for index in [1, tokens.len() - 1] {
        let row = backend.logits(index).expect("logits were asked for");
        assert_eq!(row.len(), vocab);
        assert!(row.iter().all(|l| l.is_finite()));
    }
    assert!(backend.logits(0).is_none(), "logits that nobody asked for");
    assert!(backend.logits(tokens.len()).is_none(), "logits behind the batch");
    assert!(backend.truncate(A, 0));
    let again = alone(backend, tokens);
    assert_eq!(alone(backend, tokens), again, "the same batch twice");
}

fn chunks_equal_the_whole(backend: &mut dyn Backend, tokens: &[Token]) {
    let whole = alone(backend, tokens);
    let (head, tail) = tokens.split_at(3);
    backend.decode(&entries(A, 0, head)).unwrap();
    backend.decode(&entries(A, 3, tail)).unwrap();
    assert_close(&whole, backend.logits(tail.len() - 1).unwrap(), "prefill in chunks");
    assert!(backend.truncate(A, 0));
}

fn neighbours_change_nothing(backend: &mut dyn Backend, tokens: &[Token]) {
    let (short, long) = (&tokens[..4], &tokens[..7]);
    let (want_a, want_b) = (alone(backend, short), alone(backend, long));
    // The two sequences alternate, as nothing forbids.
    let mut batch = Vec::new();
    let (mut a, mut b) = (entries(A, 0, short).into_iter(), entries(B, 0, long).into_iter());
    while batch.len() < short.len() + long.len() {
        batch.extend(a.next());
        batch.extend(b.next());
    }
    backend.decode(&batch).unwrap();
    let row = |seq| batch.iter().position(|e| e.seq == seq && e.logits).unwrap();
    assert_close(&want_a, backend.logits(row(A)).unwrap(), "a sequence beside another");
    assert_close(&want_b, backend.logits(row(B)).unwrap(), "a sequence beside another");
    assert!(backend.truncate(A, 0) && backend.truncate(B, 0));
}

fn cutting_back_forgets(backend: &mut dyn Backend, tokens: &[Token]) {
    let want = alone(backend, &tokens[..5]);
    backend.decode(&entries(A, 0, tokens)).unwrap();
    if backend.truncate(A, 4) {
        backend.decode(&entries(A, 4, &tokens[4..5])).unwrap();
        assert_close(&want, backend.logits(0).unwrap(), "after cutting back");
    }
    assert!(backend.truncate(A, 0), "cutting to nothing always succeeds");
    assert!(backend.truncate(A, 0), "also twice");
}

fn refused_batches_change_nothing(backend: &mut dyn Backend, tokens: &[Token]) {
    let limits = backend.limits();
    let want = alone(backend, &tokens[..4]);
    backend.decode(&entries(A, 0, &tokens[..3])).unwrap();
    let good = entries(A, 3, &tokens[3..4])[0];
    let too_long = entries(A, 3, &vec![tokens[0]; limits.batch_tokens as usize + 1]);
    let refused = [
        ("empty", vec![]),
        ("too long", too_long),
        ("token", vec![BatchEntry { token: limits.vocab, ..good }]),
        ("largest token", vec![BatchEntry { token: u32::MAX, ..good }]),
        ("sequence", vec![BatchEntry { seq: SeqId(limits.sequences), ..good }]),
        ("gap", vec![BatchEntry { position: 4, ..good }]),
        ("repeated position", vec![BatchEntry { position: 2, ..good }]),
        ("new sequence not at 0", vec![BatchEntry { seq: B, position: 1, ..good }]),
        ("beyond the sequence's end", vec![BatchEntry { position: limits.sequence_tokens, ..good }]),
        ("second entry bad", vec![good, BatchEntry { position: 9, ..good }]),
    ];
    for (what, batch) in refused {
        let result = backend.decode(&batch);
        assert!(matches!(result, Err(DecodeError::InvalidBatch(_))), "{what}: {result:?}");
    }
    backend.decode(&[good]).unwrap();
    assert_close(&want, backend.logits(0).unwrap(), "after refused batches");
    assert!(backend.truncate(A, 0));
}

fn cells_run_out_cleanly(backend: &mut dyn Backend, token: Token) {
    let limits = backend.limits();
    let chunk = limits.batch_tokens.min(16);
    let mut lengths = vec![0_u32; limits.sequences as usize];
    let mut used = 0;
    let mut at = 0;
    while used + chunk <= limits.kv_cells {
        if lengths[at] + chunk > limits.sequence_tokens {
            at += 1;
            continue;
        }
        let seq = SeqId(u32::try_from(at).unwrap());
        backend.decode(&entries(seq, lengths[at] as usize, &vec![token; chunk as usize])).unwrap();
        lengths[at] += chunk;
        used += chunk;
    }
    let seq = SeqId(limits.sequences - 1);
    let last = lengths[limits.sequences as usize - 1] as usize;
    let over = entries(seq, last, &vec![token; (limits.kv_cells - used + 1) as usize]);
    assert_eq!(backend.decode(&over), Err(DecodeError::NoCells));
    assert!(backend.truncate(SeqId(0), 0));
    backend.decode(&over).expect("cells that were given back can be used");
    for seq in 0..limits.sequences {
        assert!(backend.truncate(SeqId(seq), 0));
    }
}
