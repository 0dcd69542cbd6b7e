use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;

use proptest::prelude::*;

use super::*;
use crate::{Application, Error};

fn manifest(component: &str) -> String {
    format!(
        "spin_manifest_version = 2\n[application]\nname = \"x\"\n[[trigger.http]]\nroute = \"/...\"\n\
         component = \"a\"\n[component.a]\nsource = \"a\"\n{component}"
    )
}

fn files(folder: &Path, component: &str) -> Files {
    let application = Application::parse(&manifest(component), folder, None).unwrap();
    application.component("a").unwrap().files.clone()
}

/// Guest paths, and the host's from the folder.
fn expanded(folder: &Path, component: &str) -> Result<BTreeMap<String, String>, String> {
    let real = folder.canonicalize().unwrap();
    let found = files(folder, component).expand().map_err(|error| error.to_string())?;
    Ok(found
        .into_iter()
        .map(|MountedFile { host, guest }| {
            let host = host.strip_prefix(&real).unwrap().to_str().unwrap().to_owned();
            (guest.to_string(), host)
        })
        .collect())
}

fn guests(folder: &Path, component: &str) -> Vec<String> {
    expanded(folder, component).unwrap().into_keys().collect()
}

/// A folder with files, beside one that nobody may see.
fn folder() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let app = dir.path().join("app");
    for file in ["a.txt", "web/i.html", "web/css/m.css", "web/css/.hidden", "web/[x].txt", "secret/key", "web/secret"] {
        let path = app.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, file).unwrap();
    }
    fs::create_dir(dir.path().join("other")).unwrap();
    fs::write(dir.path().join("other/file"), "").unwrap();
    (dir, app)
}

#[test]
fn patterns_and_placed_folders_are_found() {
    let (_dir, app) = folder();
    for (component, expected) in [
        ("", vec![]),
        ("files = [\"web/*.html\"]", vec!["/web/i.html"]),
        ("files = [\"web/**/*.css\", \"a.txt\"]", vec!["/a.txt", "/web/css/m.css"]),
        ("files = [\"web/*\"]", vec!["/web/[x].txt", "/web/i.html", "/web/secret"]),
        ("files = [\"./web/css/../[x].txt\"]", vec!["/web/[x].txt"]),
        ("files = [\"web/css\"]", vec!["/web/css/.hidden", "/web/css/m.css"]),
        ("files = [\"**/key\"]", vec!["/secret/key"]),
        ("files = [\"none/*\"]", vec![]),
        ("files = [{ source = \"web/css\", destination = \"/\" }]", vec!["/.hidden", "/m.css"]),
        ("files = [{ source = \"web/i.html\", destination = \"/x/index.html\" }]", vec!["/x/index.html"]),
        (
            "files = [{ source = \".\", destination = \"/all\" }]\nexclude_files = [\"web/*\", \"**/key\"]",
            vec!["/all/a.txt"],
        ),
        (
            "files = [\"web/**/*\", \"secret/key\"]\nexclude_files = [\"**/secret\", \"secret/*\", \"**/*.css\"]",
            vec!["/web/[x].txt", "/web/css/.hidden", "/web/i.html"],
        ),
    ] {
        assert_eq!(guests(&app, component), expected, "{component}");
    }
    let placed = expanded(&app, "files = [{ source = \"web/css\", destination = \"/s//./t/\" }]").unwrap();
    assert_eq!(placed["/s/t/m.css"], "web/css/m.css");
}

#[test]
fn nothing_is_found_outside_of_the_folder() {
    let (_dir, app) = folder();
    symlink("../../other/file", app.join("web/link")).unwrap();
    symlink("../other", app.join("out")).unwrap();
    symlink("web", app.join("in")).unwrap();
    symlink("nowhere", app.join("broken")).unwrap();
    for component in [
        "files = [\"web/link\"]",
        "files = [\"web/*\"]",
        "files = [\"web/l*\"]",
        "files = [\"out\"]",
        "files = [\"out/*\"]",
        "files = [\"out/file\"]",
        "files = [\"**/file\"]",
        "files = [\"in/link\"]",
        "files = [{ source = \"out\", destination = \"/\" }]",
        "files = [{ source = \"out/file\", destination = \"/f\" }]",
        "files = [{ source = \"web/link\", destination = \"/f\" }]",
        "files = [{ source = \"web\", destination = \"/\" }]",
    ] {
        let error = expanded(&app, component).unwrap_err();
        assert!(error.contains("is a link out of"), "{component}: {error}");
        assert!(error.contains("spin.toml:9:10"), "{component}: {error}");
    }
    // What is not asked for, or excluded, does no harm; a link inside is followed.
    assert_eq!(guests(&app, "files = [\"web/*.html\"]"), ["/web/i.html"]);
    assert_eq!(guests(&app, "files = [\"in/*.html\"]"), ["/in/i.html"]);
    assert_eq!(guests(&app, "files = [\"**/i.html\"]\nexclude_files = [\"out\"]"), ["/in/i.html", "/web/i.html"]);
    assert_eq!(expanded(&app, "files = [\"in/i.html\"]").unwrap()["/in/i.html"], "web/i.html");
    assert!(expanded(&app, "files = [\"broken\"]").unwrap_err().contains("there is no `broken`"));
}

#[test]
fn links_in_a_circle_are_told() {
    let (_dir, app) = folder();
    symlink("..", app.join("web/up")).unwrap();
    let error = expanded(&app, "files = [\"web/**/*\"]").unwrap_err();
    assert!(error.contains("leads back"), "{error}");
}

#[test]
fn what_cannot_be_placed_is_told() {
    let (_dir, app) = folder();
    fs::create_dir(app.join("empty")).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(app.join("pipe")).status().unwrap().success());
    for (component, message) in [
        ("files = [\"nothing.txt\"]", "there is no `nothing.txt`"),
        ("files = [{ source = \"nothing\", destination = \"/\" }]", "there is no `nothing`"),
        ("files = [\"pipe\"]", "a pipe"),
        ("files = [{ source = \"a.txt\", destination = \"/\" }]", "`/` is a folder"),
        ("files = [\"a.txt\", { source = \"web/i.html\", destination = \"/a.txt\" }]", "would be two files"),
        ("files = [\"a.txt\", { source = \"web\", destination = \"/a.txt\" }]", "a file and a folder"),
        ("files = [\"web/i.html\", { source = \"a.txt\", destination = \"/web\" }]", "a file and a folder"),
    ] {
        let error = expanded(&app, component).unwrap_err();
        assert!(error.contains(message), "{component}: {error}");
    }
    // The same file twice is one.
    assert_eq!(guests(&app, "files = [\"a.txt\", \"*.txt\", \"empty\", \"p*\"]"), ["/a.txt"]);
}

#[test]
fn what_leads_out_or_says_nothing_is_refused_where_it_is_written() {
    for (entry, message) in [
        ("\"/etc/*\"", "it is absolute"),
        ("\"../x\"", "leads out"),
        ("\"a/../../x\"", "leads out"),
        ("\"*/../x\"", "behind a pattern"),
        ("\"\"", "it is empty"),
        ("\".\"", "the manifest's folder itself"),
        ("\"a/**\"", "matches folders only"),
        ("\"a**/b\"", "is no pattern"),
        ("\"[a\"", "is no pattern"),
        ("7", "must be a pattern or a table"),
        ("{ source = \"a\" }", "no `destination`"),
        ("{ destination = \"/\" }", "no `source`"),
        ("{ source = \"..\", destination = \"/\" }", "leads out"),
        ("{ source = \"/etc\", destination = \"/\" }", "it is absolute"),
        ("{ source = \"a\", destination = \"b\" }", "it is not absolute"),
        ("{ source = \"a\", destination = \"/../b\" }", "leads out"),
        ("{ source = \"a\", destination = \"/\", mode = 1 }", "unknown key `mode`"),
    ] {
        let error = Application::parse(&manifest(&format!("files = [{entry}]")), Path::new(""), None);
        let Err(Error::Invalid(found)) = error else { panic!("{entry}: {error:?}") };
        let first = found.iter().next().unwrap();
        assert!(first.message.contains(message), "{entry}: {first}");
        assert_eq!(first.line, 9);
    }
    for entry in ["/x", "..", "[a"] {
        let text = manifest(&format!("exclude_files = [{entry:?}]"));
        assert!(Application::parse(&text, Path::new(""), None).is_err(), "{entry}");
    }
    let whole = Application::parse(&manifest("files = [\"**/*\"]"), Path::new(""), None).unwrap();
    assert!(whole.warnings[0].message.contains("all of the manifest's folder"), "{:?}", whole.warnings);
}

/// An entry of `files`: nonsense, or one that would lead out if it could.
fn entry() -> impl Strategy<Value = String> {
    prop_oneof![
        "(\\.\\./|/|a|web|out|\\*|\\*\\*|in|\\.|file|\\[x\\]|\\?){1,5}",
        "(out|\\*\\*|\\.|web/\\.\\.)/(file|\\*|f\\?le|\\*\\*/file)",
        Just("out".to_owned()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever a manifest says, no file from beside its folder is given.
    #[test]
    fn no_entry_leads_out(entries in prop::collection::vec(entry(), 1..3)) {
        let (_dir, app) = folder();
        symlink("../other", app.join("out")).unwrap();
        let real = app.canonicalize().unwrap();
        let text = manifest(&format!("files = {entries:?}"));
        if let Ok(application) = Application::parse(&text, &app, None)
            && let Ok(found) = application.component("a").unwrap().files.expand()
        {
            for MountedFile { host, guest } in found {
                prop_assert!(host.starts_with(&real), "{}", host.display());
                prop_assert!(guest.as_str().starts_with('/') && !guest.as_str().contains("/../"));
            }
        }
    }

    /// A pattern finds what it matches, and no more.
    #[test]
    fn a_pattern_finds_what_it_matches(names in prop::collection::btree_set("[ab]{1,2}(/[ab]{1,2}){0,2}\\.t", 1..6), pattern in "(a|b|\\*|\\*\\*/|\\?|/){1,4}\\.t") {
        // A doubled slash is one for us, and finds nothing there.
        prop_assume!(!pattern.contains("//"));
        let dir = tempfile::tempdir().unwrap();
        for name in &names {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let text = manifest(&format!("files = [{pattern:?}]"));
        let Ok(application) = Application::parse(&text, dir.path(), None) else { return Ok(()) };
        let Ok(found) = application.component("a").unwrap().files.expand() else { return Ok(()) };
        let found: Vec<String> = found.into_iter().map(|file| file.guest.as_str()[1..].to_owned()).collect();
        // The library's own search is the judge: it is the one that Spin has.
        let escaped = Pattern::escape(dir.path().to_str().unwrap());
        let expected: Vec<String> = glob::glob(&format!("{escaped}/{pattern}"))
            .unwrap()
            .map(Result::unwrap)
            .filter(|path| path.is_file())
            .map(|path| path.strip_prefix(dir.path()).unwrap().to_str().unwrap().to_owned())
            .collect::<std::collections::BTreeSet<_>>()
            .into_iter()
            .collect();
        prop_assert_eq!(found, expected, "{}", pattern);
    }
}
