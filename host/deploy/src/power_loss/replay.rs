//! The folder that a disk may have after a power failure.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use super::record::Step;

/// What a name stands for.
#[derive(Clone, Copy)]
enum Node {
    Folder,
    /// The content of this number.
    File(usize),
}

/// Makes the folder. Contents and names that were synchronised are there; of the
/// others, each is there or not, independent of the order they came in, and
/// contents may end early.
///
/// That is all that POSIX promises; file systems keep more than that.
pub(super) fn after_power_loss(steps: &[Step], seed: u64, root: &Path) {
    let mut random = ChaCha8Rng::seed_from_u64(seed ^ (u64::try_from(steps.len()).unwrap() << 8));
    let mut names: BTreeMap<PathBuf, Node> = BTreeMap::new();
    let mut contents: Vec<Vec<u8>> = Vec::new();
    // Which content a path stands for as long as the power is there.
    let mut live: HashMap<PathBuf, usize> = HashMap::new();
    for (at, step) in steps.iter().enumerate() {
        let later = &steps[at + 1..];
        let mut named = |path: &PathBuf| {
            let parent = path.parent().unwrap();
            let safe = later.iter().any(|step| matches!(step, Step::SyncDir(folder) if folder == parent));
            safe || random.next_u32() % 2 == 0
        };
        match step {
            Step::Create(path) => {
                live.insert(path.clone(), contents.len());
                if named(path) {
                    names.insert(path.clone(), Node::File(contents.len()));
                }
                contents.push(Vec::new());
            }
            Step::Write(path, bytes) => {
                let safe = later.contains(&Step::SyncFile(path.clone()));
                let length =
                    if safe { bytes.len() } else { [0, bytes.len() / 2, bytes.len()][random.next_u32() as usize % 3] };
                contents[live[path]].extend_from_slice(&bytes[..length]);
            }
            Step::Rename(from, to) => {
                let content = live.remove(from).unwrap();
                live.insert(to.clone(), content);
                if named(to) {
                    names.remove(from);
                    names.insert(to.clone(), Node::File(content));
                }
            }
            Step::CreateDir(path) => {
                if named(path) {
                    names.insert(path.clone(), Node::Folder);
                }
            }
            Step::RemoveFile(path) | Step::RemoveDir(path) => {
                if named(path) {
                    names.remove(path);
                }
            }
            Step::SyncFile(_) | Step::SyncDir(_) | Step::Answered(_) => {}
        }
    }
    // A folder comes before what is in it; what is in none is lost.
    for (path, node) in names {
        let path = root.join(path);
        if !path.parent().unwrap().is_dir() {
            continue;
        }
        match node {
            Node::Folder => fs::create_dir(path).unwrap(),
            Node::File(content) => fs::write(path, &contents[content]).unwrap(),
        }
    }
}
