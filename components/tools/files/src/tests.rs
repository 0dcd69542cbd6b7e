use std::fs;
use std::io::{Error as IoError, ErrorKind};
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};

use super::*;
use crate::folders::{Access, Folder};

fn folder(name: &str, path: &Path, access: Access) -> Folder {
    Folder { name: name.to_owned(), path: path.to_owned(), access }
}

/// A folder with some files, which may be written.
fn some() -> (TempDir, Folders) {
    let dir = tempdir().unwrap();
    fs::create_dir_all(dir.path().join("src/deep")).unwrap();
    fs::write(dir.path().join("README.md"), "# Title\n\nsome grün text\n").unwrap();
    fs::write(dir.path().join("src/lib.rs"), "fn main() {}\n").unwrap();
    fs::write(dir.path().join("src/deep/mod.rs"), "\n\nlet text = 1;\n").unwrap();
    fs::write(dir.path().join("data.bin"), b"\x00\xFFtext").unwrap();
    symlink("src/deep", dir.path().join("inside")).unwrap();
    symlink("/etc", dir.path().join("outside")).unwrap();
    symlink("../../../../etc/passwd", dir.path().join("src/up")).unwrap();
    symlink("circle", dir.path().join("circle")).unwrap();
    let folders = Folders::new([folder("/", dir.path(), Access::Write)]);
    (dir, folders)
}

#[track_caller]
fn done(folders: &Folders, name: &str, arguments: Value) -> Value {
    let answer = called(folders, name, &arguments.to_string()).unwrap();
    assert!(!answer.is_error, "{name} {arguments}: {answer:?}");
    serde_json::from_str(answer.structured.as_deref().unwrap()).unwrap()
}

#[track_caller]
fn fails(folders: &Folders, name: &str, arguments: Value) -> String {
    let answer = called(folders, name, &arguments.to_string()).unwrap();
    assert!(answer.is_error, "{name} {arguments}: {answer:?}");
    let [nala_sdk::tools::Content::Text(why)] = answer.content.as_slice() else { panic!("{answer:?}") };
    why.clone()
}

#[test]
fn the_schemas_are_json() {
    let all = tools();
    let named: Vec<_> = all.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(named, ["list_files", "read_file", "search_files", "write_file"]);
    for tool in &all {
        let read = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        let input = read(&tool.input_schema);
        assert_eq!(input["type"], "object");
        assert!(input["properties"]["path"]["description"].as_str().unwrap().starts_with(super::PATH));
        read(tool.output_schema.as_deref().unwrap());
        let is_writing = tool.name == "write_file";
        assert_eq!(tool.annotations.read_only, Some(!is_writing));
        assert_eq!(tool.annotations.destructive, is_writing.then_some(true));
        assert_eq!(tool.annotations.open_world, Some(false));
    }
}

#[test]
fn arguments_that_cannot_be_read_are_told() {
    let (_dir, folders) = some();
    for arguments in ["", "[]", r#"{"path": 1}"#, r#"{"path": "a", "offset": -1}"#] {
        assert!(matches!(called(&folders, "read_file", arguments), Err(Error::InvalidArguments(_))), "{arguments}");
    }
    assert!(matches!(called(&folders, "rm", "{}"), Err(Error::UnknownTool(_))));
}

#[test]
fn a_folder_is_listed() {
    let (_dir, folders) = some();
    let whole = json!({"path": "/", "entries": [
        {"name": "README.md", "kind": "file", "bytes": 25},
        {"name": "circle", "kind": "link"},
        {"name": "data.bin", "kind": "file", "bytes": 6},
        {"name": "inside", "kind": "link"},
        {"name": "outside", "kind": "link"},
        {"name": "src", "kind": "folder"},
    ], "writable": true, "more": false});
    for arguments in [json!({}), json!({"path": ""}), json!({"path": "."}), json!({"path": "/"})] {
        assert_eq!(done(&folders, "list_files", arguments), whole);
    }
    let inside = done(&folders, "list_files", json!({"path": "./inside//"}));
    assert_eq!((&inside["path"], &inside["entries"][0]["name"]), (&json!("/src/deep"), &json!("mod.rs")));
    assert!(fails(&folders, "list_files", json!({"path": "README.md"})).contains("no folder"));
    assert!(fails(&folders, "list_files", json!({"path": "none"})).contains("`/none` is not there"));
}

#[test]
fn several_folders_are_told_apart() {
    let (one, two) = (tempdir().unwrap(), tempdir().unwrap());
    fs::write(one.path().join("a"), "1").unwrap();
    fs::write(two.path().join("a"), "2").unwrap();
    let folders =
        Folders::new([folder("/data", one.path(), Access::Read), folder("/data/notes/", two.path(), Access::Write)]);
    let listed = done(&folders, "list_files", json!({}));
    assert_eq!(
        listed["entries"],
        json!([
            {"name": "/data", "kind": "folder", "writable": false},
            {"name": "/data/notes", "kind": "folder", "writable": true},
        ])
    );
    assert_eq!(done(&folders, "list_files", json!({"path": "/"})), listed);
    for (path, text) in [("/data/a", "1"), ("data/a", "1"), ("/data/notes/a", "2"), ("//data/./notes/a", "2")] {
        assert_eq!(done(&folders, "read_file", json!({"path": path}))["text"], text, "{path}");
    }
    for path in ["/a", "a", "/database/a", "/etc/passwd"] {
        let why = fails(&folders, "read_file", json!({"path": path}));
        assert!(why.contains("in none of the folders that are granted: `/data`, `/data/notes`"), "{path}: {why}");
    }
    assert_eq!(done(&folders, "search_files", json!({"pattern": "a"}))["matches"].as_array().unwrap().len(), 2);

    let only = Folders::new([folder("/data", one.path(), Access::Read)]);
    assert_eq!(done(&only, "read_file", json!({"path": "a"}))["path"], "/data/a");
    assert_eq!(done(&only, "list_files", json!({"path": "/"}))["entries"][0]["name"], "/data");
    assert!(fails(&only, "read_file", json!({"path": "/a"})).contains("`/data`"));
}

#[test]
fn without_a_grant_the_operator_is_told_how() {
    let none = Folders::new([]);
    let asked =
        [("list_files", json!({})), ("read_file", json!({"path": "a"})), ("search_files", json!({"pattern": ""}))];
    for (name, arguments) in asked {
        assert!(fails(&none, name, arguments).contains("`files = [{ source"), "{name}");
    }
}

#[test]
fn paths_lead_nowhere_else() {
    let (_dir, folders) = some();
    let table = [
        ("../etc/passwd", "`..`"),
        ("src/../../etc/passwd", "`..`"),
        ("/..", "`..`"),
        ("a\0b", "zeros"),
        ("/etc/passwd", "not there"),
        ("..\\..\\etc\\passwd", "not there"),
        ("outside", "leads out of `/`"),
        ("outside/passwd", "leads out of `/`"),
        ("src/up", "leads out of `/`"),
        ("circle", "more than 32 links"),
        ("README.md/x", "no folder"),
        (&"a/".repeat(65), "more than 64 names"),
        (&"a".repeat(5000), "`/aaa"),
        ("a\u{1b}[31m\nb", "`/a\\u{1b}[31m\\nb`"),
    ];
    for (path, why) in table {
        for (name, more) in
            [("read_file", json!({})), ("list_files", json!({})), ("search_files", json!({"pattern": ""}))]
        {
            let mut arguments = more;
            arguments["path"] = json!(path);
            let error = fails(&folders, name, arguments);
            assert!(error.contains(why) && error.len() < 1000, "{name} {path:?}: {error}");
        }
    }
    for path in ["outside/x", "src/up", "../x", "circle/x"] {
        fails(&folders, "write_file", json!({"path": path, "text": ""}));
    }
}

#[test]
fn a_file_is_read_in_parts_of_whole_characters() {
    let (dir, folders) = some();
    let whole = "aü€😀".repeat(9);
    fs::write(dir.path().join("long"), &whole).unwrap();
    for most in 4..14 {
        let (mut text, mut offset) = (String::new(), 0);
        loop {
            let part = done(&folders, "read_file", json!({"path": "long", "offset": offset, "max_bytes": most}));
            assert_eq!((&part["offset"], &part["bytes"]), (&json!(offset), &json!(whole.len())));
            text.push_str(part["text"].as_str().unwrap());
            let Some(next) = part.get("next_offset") else { break };
            assert!(next.as_u64().unwrap() > offset);
            offset = next.as_u64().unwrap();
        }
        assert_eq!(text, whole, "{most}");
    }
    let inside = done(&folders, "read_file", json!({"path": "long", "offset": 4, "max_bytes": 9}));
    assert_eq!((&inside["text"], &inside["offset"]), (&json!("😀aü"), &json!(6)));

    fs::write(dir.path().join("large"), "x".repeat(300_000)).unwrap();
    let part = done(&folders, "read_file", json!({"path": "large", "max_bytes": 1 << 30}));
    assert_eq!((&part["next_offset"], part["text"].as_str().unwrap().len()), (&json!(262_144), 262_144));
    let end = done(&folders, "read_file", json!({"path": "README.md", "offset": 25}));
    assert_eq!((&end["text"], end.get("next_offset")), (&json!(""), None));
    assert!(fails(&folders, "read_file", json!({"path": "README.md", "offset": 26})).contains("has 25 bytes"));
}

#[test]
fn what_is_no_text_is_not_read() {
    let (dir, folders) = some();
    assert_eq!(
        fails(&folders, "read_file", json!({"path": "data.bin"})),
        "`/data.bin` is no text in UTF-8; it has 6 bytes"
    );
    fs::write(dir.path().join("latin"), b"gr\xFCn").unwrap();
    fs::write(dir.path().join("cut"), &"gr€".as_bytes()[..4]).unwrap();
    for path in ["latin", "cut"] {
        assert!(fails(&folders, "read_file", json!({"path": path})).contains("no text"), "{path}");
    }
    assert!(fails(&folders, "read_file", json!({"path": "src"})).contains("is a folder"));
    let _socket = std::os::unix::net::UnixListener::bind(dir.path().join("socket")).unwrap();
    assert!(fails(&folders, "read_file", json!({"path": "socket"})).contains("is no file"));
    assert!(fails(&folders, "write_file", json!({"path": "socket", "text": ""})).contains("is no file"));
}

#[test]
fn files_are_found_by_name_and_by_text() {
    let (dir, folders) = some();
    let paths = |arguments: Value| -> Vec<String> {
        let found = done(&folders, "search_files", arguments);
        found["matches"].as_array().unwrap().iter().map(|found| found["path"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(paths(json!({"pattern": "readme"})), ["/README.md"]);
    assert_eq!(paths(json!({"pattern": "*.rs"})), ["/src/lib.rs", "/src/deep/mod.rs"]);
    assert_eq!(paths(json!({"pattern": "src/*"})), ["/src/deep", "/src/lib.rs", "/src/up"]);
    assert_eq!(paths(json!({"pattern": "deep/*.rs", "path": "src"})), ["/src/deep/mod.rs"]);
    assert_eq!(paths(json!({"pattern": "", "text": "text"})), ["/README.md", "/src/deep/mod.rs"]);
    assert_eq!(paths(json!({"pattern": "nothing"})), Vec::<String>::new());

    fs::write(dir.path().join("wide"), format!("\n{}needle{}", "ü".repeat(900), "x".repeat(900))).unwrap();
    let found = done(&folders, "search_files", json!({"pattern": "", "text": "needle"}));
    let found = &found["matches"][0];
    assert_eq!((&found["line"], &found["bytes"]), (&json!(2), &json!(2707)));
    let excerpt = found["excerpt"].as_str().unwrap();
    assert!(excerpt.contains("üneedlex") && excerpt.chars().count() == 200, "{excerpt}");
}

#[test]
fn long_listings_and_searches_end() {
    let (dir, folders) = some();
    let many = dir.path().join("many");
    fs::create_dir(&many).unwrap();
    for n in 0..1001 {
        fs::write(many.join(format!("{n:04}")), "text").unwrap();
    }
    let listed = done(&folders, "list_files", json!({"path": "many"}));
    assert_eq!((listed["entries"].as_array().unwrap().len(), &listed["more"]), (1000, &json!(true)));
    assert_eq!(listed["entries"][999]["name"], "0999");
    let found = done(&folders, "search_files", json!({"pattern": "*", "path": "many"}));
    assert_eq!((found["matches"].as_array().unwrap().len(), &found["more"]), (1000, &json!(true)));
    assert!(found["note"].as_str().unwrap().contains("1000 matches"), "{}", found["note"]);

    let mut deep = dir.path().join("deep");
    for _ in 0..70 {
        deep.push("d");
    }
    fs::create_dir_all(&deep).unwrap();
    fs::write(deep.join("needle"), "").unwrap();
    let found = done(&folders, "search_files", json!({"pattern": "needle", "path": "deep"}));
    assert_eq!((&found["matches"], &found["more"]), (&json!([]), &json!(true)));
    assert!(found["note"].as_str().unwrap().contains("deeper than 64"), "{}", found["note"]);
}

#[test]
fn files_are_written() {
    let (dir, folders) = some();
    let write = |arguments: Value| done(&folders, "write_file", arguments);
    let new = write(json!({"path": "new/folder/file", "text": "grün"}));
    assert_eq!(new, json!({"path": "/new/folder/file", "bytes": 5, "created": true}));
    let more = write(json!({"path": "/new/folder/file", "text": "er", "append": true}));
    assert_eq!(more, json!({"path": "/new/folder/file", "bytes": 7, "created": false}));
    assert_eq!(fs::read_to_string(dir.path().join("new/folder/file")).unwrap(), "grüner");
    assert_eq!(write(json!({"path": "new/folder/file", "text": "x"}))["bytes"], 1);
    write(json!({"path": "inside/linked", "text": "x"}));
    assert!(dir.path().join("src/deep/linked").is_file());

    assert!(fails(&folders, "write_file", json!({"path": "src", "text": ""})).contains("is a folder"));
    assert!(fails(&folders, "write_file", json!({"path": "", "text": ""})).contains("is a folder"));
    assert!(fails(&folders, "write_file", json!({"path": "README.md/x/y", "text": ""})).contains("behind a file"));
    let long = json!({"path": "long", "text": "x".repeat((1 << 20) + 1)});
    assert!(fails(&folders, "write_file", long).contains("1048577 bytes"));
    assert!(!dir.path().join("long").exists());
}

#[test]
fn what_is_granted_to_be_read_is_not_written() {
    let dir = tempdir().unwrap();
    let folders = Folders::new([folder("/", dir.path(), Access::Read)]);
    let why = fails(&folders, "write_file", json!({"path": "a/b", "text": "x"}));
    assert!(why.contains("`/a/b` is granted to be read only. Its operator has to grant"), "{why}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    // What the host says, whatever it said of the folder.
    for kind in [ErrorKind::PermissionDenied, ErrorKind::ReadOnlyFilesystem] {
        let why = trouble::writing("/a", &IoError::from(kind));
        assert!(why.contains("read only") && why.contains("has to grant"), "{why}");
    }
    assert!(trouble::reading("/a", &IoError::from(ErrorKind::PermissionDenied)).contains("not within the folder"));
}
