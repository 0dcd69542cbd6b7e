use super::*;
use crate::digest::Sha256Digest;

fn store(dir: &Path) -> Store {
    let text = format!(
        "[[model]]\nname = \"tiny-q4\"\ndescription = \"d\"\nfile = \"Tiny.Q4.gguf\"\nsize = 3\n\
         sha256 = \"{}\"\nlicence = \"MIT\"\nsource = {{ kind = \"https\", url = \"https://h.example/t\" }}\n",
        Sha256Digest::of(b"abc")
    );
    Store::with_catalogue(dir, Catalogue::parse(&text).unwrap())
}

#[test]
fn the_folder_is_the_variable_then_the_checkout_then_the_data_folder() {
    let checkout = tempfile::tempdir().unwrap();
    let data = || Some(PathBuf::from("/data"));
    let choose = |variable: Option<&str>| choose_dir(variable.map(Into::into), checkout.path(), data).unwrap();
    assert_eq!(choose(None), Path::new("/data"));
    assert_eq!(choose(Some("")), Path::new("/data"));
    fs::write(checkout.path().join("catalogue.toml"), "").unwrap();
    assert_eq!(choose(None), checkout.path());
    assert_eq!(choose(Some("/else")), Path::new("/else"));
    let nowhere = choose_dir(None, Path::new("/nonexistent"), || None).unwrap_err();
    assert!(nowhere.to_string().contains("NALA_MODELS_DIR"), "{nowhere}");
}

#[test]
fn a_name_a_stem_and_a_path_all_resolve() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    let file = dir.path().join("Tiny.Q4.gguf");
    fs::write(&file, b"abc").unwrap();
    let other = dir.path().join("mine.gguf");
    fs::write(&other, b"x").unwrap();
    let bare = dir.path().join("no-ending");
    fs::write(&bare, b"x").unwrap();

    assert_eq!(store.resolve("tiny-q4").unwrap(), file);
    assert_eq!(store.resolve("Tiny.Q4").unwrap(), file);
    assert_eq!(store.resolve("mine").unwrap(), other);
    assert_eq!(store.resolve("mine.gguf").unwrap(), other);
    assert_eq!(store.resolve(bare.to_str().unwrap()).unwrap(), bare);
}

#[test]
fn what_cannot_be_found_says_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    let say = |name: &str| store.resolve(name).unwrap_err().to_string();
    assert!(say("tiny-q4").contains("nala-host model pull tiny-q4"));
    assert!(say("tiny-q5").contains("did you mean `tiny-q4`?"));
    let far = say("zzz");
    assert!(far.contains("known models: tiny-q4") && !far.contains("did you mean"), "{far}");
    assert!(say("").contains("known models"));
    assert!(say("./x.gguf").contains("there is no file ./x.gguf"));

    fs::write(dir.path().join("Tiny.Q4.gguf"), b"ab").unwrap();
    assert!(say("tiny-q4").contains("damaged (2 bytes instead of 3)"));
    let pull = store.entry("a/b").unwrap_err().to_string();
    assert!(pull.contains("takes a name"), "{pull}");
}

#[test]
fn what_is_no_file_is_named_and_never_opened() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    let say = |name: &str| store.resolve(name).unwrap_err().to_string();
    let folder = dir.path().to_str().unwrap().to_owned();
    assert!(say(&folder).contains("is a folder, not a file: give the path"), "{}", say(&folder));
    fs::create_dir(dir.path().join("inner.gguf")).unwrap();
    assert!(say("inner.gguf").contains("is a folder"), "{}", say("inner.gguf"));
    assert!(say("inner").contains("is a folder"), "{}", say("inner"));
    if cfg!(unix) {
        assert!(say("/dev/null").contains("is a device"), "{}", say("/dev/null"));
        let pipe = dir.path().join("pipe.gguf");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert!(say(pipe.to_str().unwrap()).contains("is a pipe"));
    }
}

#[test]
fn a_listing_tells_what_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let states = |store: &Store| {
        let listed = store.list().unwrap();
        listed.into_iter().map(|l| (l.name, l.state)).collect::<Vec<_>>()
    };
    let store = store(&dir.path().join("made-later"));
    assert_eq!(states(&store), [("tiny-q4".to_owned(), State::Absent)]);
    fs::create_dir(store.dir()).unwrap();
    fs::write(store.dir().join("Tiny.Q4.gguf.whl.part"), b"a").unwrap();
    fs::write(store.dir().join("mine.gguf"), b"xy").unwrap();
    assert_eq!(
        states(&store),
        [("tiny-q4".to_owned(), State::Partial { received: 1 }), ("mine".to_owned(), State::Installed { size: 2 })]
    );
    fs::write(store.dir().join("Tiny.Q4.gguf"), b"abc").unwrap();
    assert_eq!(states(&store)[0].1, State::Installed { size: 3 });
}
