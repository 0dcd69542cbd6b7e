//! Files that are granted, and ways out of them that are none.

#![allow(clippy::panic, clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::common::{Bench, tight};
use nala_wasm::{Access, Asset, AssetLimit, Capabilities, Files, Folder, HandleError, Limits};
use tempfile::TempDir;

/// A folder with `read`, `write` and `other` in it, which are granted as `/read`,
/// `/write` and `/other`, and `secret`, which is not.
struct Host {
    root: TempDir,
}

impl Host {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        for folder in ["read", "write", "other"] {
            fs::create_dir(root.path().join(folder)).unwrap();
            fs::write(root.path().join(folder).join("file"), folder).unwrap();
        }
        fs::write(root.path().join("secret"), "secret").unwrap();
        Self { root }
    }

    fn path(&self, path: &str) -> std::path::PathBuf {
        self.root.path().join(path)
    }

    fn capabilities(&self) -> Capabilities {
        let folder = |name: &str, access| Folder { host: self.path(name), guest: format!("/{name}"), access };
        let folders = vec![
            folder("read", Access::ReadOnly),
            folder("write", Access::ReadWrite),
            folder("other", Access::ReadWrite),
        ];
        Capabilities { files: Files { folders, ..Files::default() }, ..Capabilities::default() }
    }

    fn bench(&self) -> Bench {
        Bench::granted(self.capabilities())
    }
}

async fn told(bench: &Bench, operation: &str) -> String {
    let path = format!("/files?{operation}");
    let answer = bench.text(&path);
    tokio::time::timeout(Duration::from_secs(10), answer).await.unwrap_or_else(|_| panic!("{operation} hangs"))
}

const DENIED: &str = "error not-permitted";

#[tokio::test(flavor = "multi_thread")]
async fn folders_are_read_and_written_as_they_are_granted() {
    let host = Host::new();
    let bench = host.bench();
    assert_eq!(told(&bench, "folders").await, r#"["/read", "/write", "/other"]"#);
    assert_eq!(told(&bench, "read&/read&file").await, "4 read");
    assert_eq!(told(&bench, "list&/read").await, "file");
    assert_eq!(told(&bench, "write&/write&new&text").await, "wrote 4");
    assert_eq!(fs::read_to_string(host.path("write/new")).unwrap(), "text");
    assert_eq!(told(&bench, "rename&/write&new&/other&moved").await, "done");
    assert_eq!(fs::read_to_string(host.path("other/moved")).unwrap(), "text");
    assert_eq!(bench.text("/whole?/read/file").await, "Ok(4)");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_read_only_cannot_be_changed() {
    let host = Host::new();
    let bench = host.bench();
    for operation in [
        "write&/read&file&text",
        "write&/read&new&text",
        "make&/read&folder",
        "remove&/read&file",
        "size&/read&file&0",
        "touch&/read&file",
        "link&/read&file&link",
        "rename&/read&file&/read&moved",
        "rename&/read&file&/write&stolen",
        "rename&/write&file&/read&put",
        "hard-link&/read&file&/read&link",
        "hard-link&/read&file&/write&stolen",
        "hard-link&/write&file&/read&put",
    ] {
        assert_eq!(told(&bench, operation).await, DENIED, "{operation}");
    }
    assert_eq!(fs::read_to_string(host.path("read/file")).unwrap(), "read");
    assert_eq!(fs::read_dir(host.path("read")).unwrap().count(), 1);
    assert_eq!(fs::read_dir(host.path("write")).unwrap().count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_path_leads_out() {
    let host = Host::new();
    for (to, link) in [
        ("/etc/passwd", "absolute"),
        ("../secret", "up"),
        ("../../../../../../../../etc/passwd", "far-up"),
        ("/proc/self/environ", "process"),
        ("/proc/self/root/etc/passwd", "magic"),
        ("/proc/self/cwd", "folder"),
    ] {
        symlink(to, host.path("read").join(link)).unwrap();
        symlink(to, host.path("write").join(link)).unwrap();
    }
    let bench = host.bench();
    for path in [
        "../secret",
        "../../../../../../etc/passwd",
        "/etc/passwd",
        "/proc/self/environ",
        "//etc/passwd",
        "file/../../secret",
        "./../secret",
        "absolute",
        "up",
        "far-up",
        "process",
        "magic",
        "folder/Cargo.toml",
        "..",
        "",
    ] {
        for folder in ["/read", "/write"] {
            for operation in ["read", "read-link", "stat"] {
                let answer = told(&bench, &format!("{operation}&{folder}&{path}")).await;
                assert!(answer.starts_with("error "), "{operation} {folder} {path}: {answer}");
            }
        }
        for operation in
            [format!("write&/write&{path}&text"), format!("size&/write&{path}&0"), format!("touch&/write&{path}")]
        {
            let answer = told(&bench, &operation).await;
            assert!(answer.starts_with("error "), "{operation}: {answer}");
        }
    }
    for operation in [
        "make&/write&../made",
        "remove&/write&../secret",
        "rename&/write&../secret&/write&stolen",
        "rename&/write&file&/write&../out",
        "hard-link&/write&../secret&/write&stolen",
        "hard-link&/write&file&/write&../out",
        "link&/write&file&../out",
        "link&/write&/etc/passwd&guests-own",
    ] {
        assert_eq!(told(&bench, operation).await, DENIED, "{operation}");
    }
    assert_eq!(fs::read_to_string(host.path("secret")).unwrap(), "secret");
    assert_eq!(fs::read_dir(host.root.path()).unwrap().count(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn links_that_a_guest_makes_lead_it_nowhere() {
    let host = Host::new();
    let bench = host.bench();
    assert_eq!(told(&bench, "link&/write&../secret&up").await, "done");
    assert_eq!(told(&bench, "hard-link&/write&up&/write&hard").await, "done");
    assert_eq!(told(&bench, "make&/write&inner").await, "done");
    assert_eq!(told(&bench, "link&/write&../..&inner/out").await, "done");
    assert_eq!(told(&bench, "rename&/write&up&/other&moved").await, "done");
    for operation in [
        "read&/write&hard",
        "read&/write&inner/out/secret",
        "read&/other&moved",
        "write&/write&hard&text",
        "write&/write&inner/out/made&text",
        "size&/write&inner/out/secret&0",
        "make&/write&inner/out/made",
        "remove&/write&inner/out/secret",
        "rename&/write&inner/out/secret&/write&stolen",
        "hard-link&/write&inner/out/secret&/write&stolen",
        "rename&/write&file&/write&inner/out/put",
        "link&/write&x&inner/out/made",
    ] {
        assert_eq!(told(&bench, operation).await, DENIED, "{operation}");
    }
    assert_eq!(fs::read_to_string(host.path("secret")).unwrap(), "secret");
    assert_eq!(fs::read_dir(host.root.path()).unwrap().count(), 4);
    // Within what is granted, links are links.
    assert_eq!(told(&bench, "link&/write&file&fine").await, "done");
    assert_eq!(told(&bench, "read&/write&fine").await, "5 write");
    assert_eq!(told(&bench, "read-link&/write&fine").await, "error loop");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_neither_file_nor_folder_is_not_opened() {
    let host = Host::new();
    for folder in ["read", "write"] {
        assert!(Command::new("mkfifo").arg(host.path(folder).join("fifo")).status().unwrap().success());
        symlink("fifo", host.path(folder).join("to-fifo")).unwrap();
    }
    let _socket = UnixListener::bind(host.path("read/socket")).unwrap();
    let bench = host.bench();
    for operation in [
        "read&/read&fifo",
        "read-link&/read&fifo",
        "read&/read&to-fifo",
        "read&/read&socket",
        "write&/write&fifo&text",
        "write&/write&to-fifo&text",
        "size&/write&fifo&0",
    ] {
        assert_eq!(told(&bench, operation).await, DENIED, "{operation}");
    }
    let others = Bench::granted_within(Limits::default(), host.capabilities(), "capabilities_async");
    let read = |path: &'static str| tokio::time::timeout(Duration::from_secs(10), others.text(path));
    assert_eq!(read("/read?/read&fifo").await.unwrap(), "ErrorCode::NotPermitted");
    assert_eq!(read("/read?/read&to-fifo").await.unwrap(), "ErrorCode::NotPermitted");
    assert_eq!(read("/read?/read&../secret").await.unwrap(), "ErrorCode::NotPermitted");
    assert_eq!(read("/read?/read&file").await.unwrap(), "read Ok(())");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_of_devices_gives_none_of_them() {
    let folders = vec![Folder { host: "/dev".into(), guest: "/dev".into(), access: Access::ReadOnly }];
    let files = Files { folders, ..Files::default() };
    let bench = Bench::granted(Capabilities { files, ..Capabilities::default() });
    for device in ["null", "zero", "urandom", "tty"] {
        let answer = told(&bench, &format!("read&/dev&{device}")).await;
        assert!(answer == DENIED || answer == "error no-entry", "{device}: {answer}");
    }
    assert_eq!(told(&bench, "read&/dev&null").await, DENIED);
}

#[tokio::test(flavor = "multi_thread")]
async fn huge_files_take_no_more_memory_than_a_guest_has() {
    let host = Host::new();
    for (name, bytes) in [("large", 1 << 30), ("huge", 16 << 30)] {
        fs::File::create(host.path("read").join(name)).unwrap().set_len(bytes).unwrap();
    }
    let bench = Bench::granted_within(tight(), host.capabilities(), "capabilities");
    // The guest asks for a TiB at once.
    assert_eq!(told(&bench, "read&/read&huge").await.split(' ').next(), Some("65536"));
    for path in ["/whole?/read/large", "/whole?/read/huge"] {
        match bench.get(path).await {
            Err(error) => assert_eq!(error, HandleError::MemoryLimit, "{path}"),
            Ok(_) => assert_eq!(bench.text(path).await, "Err(OutOfMemory)", "{path}"),
        }
    }
    assert_eq!(told(&bench, "read&/read&file").await, "4 read");
}

fn assets(files: &[(&Path, &str)], limit: AssetLimit) -> Capabilities {
    let asset = |(host, guest): &(&Path, &str)| Asset { host: (*host).to_owned(), guest: (*guest).to_owned() };
    let assets = files.iter().map(asset).collect();
    Capabilities { files: Files { assets, asset_limit: limit, ..Files::default() }, ..Capabilities::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_found_at_the_root_and_only_read() {
    let host = Host::new();
    let granted = [(host.path("read"), "/static"), (host.path("write/file"), "page")];
    let granted: Vec<_> = granted.iter().map(|(host, guest)| (host.as_path(), *guest)).collect();
    let bench = Bench::granted(assets(&granted, AssetLimit::default()));
    fs::write(host.path("read/file"), "edited").unwrap();
    assert_eq!(told(&bench, "folders").await, r#"["/"]"#);
    assert_eq!(told(&bench, "list&/").await, "page static");
    assert_eq!(told(&bench, "read&/&static/file").await, "4 read");
    assert_eq!(bench.text("/whole?/page").await, "Ok(5)");
    for operation in ["write&/&page&text", "remove&/&page", "read&/&../../etc/passwd", "read&/&/etc/passwd"] {
        assert_eq!(told(&bench, operation).await, DENIED, "{operation}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_cannot_be_given_are_named_at_load() {
    use nala_wasm::{Grant, LoadError, Runtime, RuntimeConfig, Source};
    let host = Host::new();
    symlink("/etc/passwd", host.path("link")).unwrap();
    let runtime = Runtime::new(RuntimeConfig::default()).unwrap();
    let compiled = runtime.compile("caps", Source::File(&crate::common::guest("capabilities"))).unwrap();
    let refused = |path: &str, guest: &str, limit: u64| {
        let path = host.path(path);
        let capabilities = assets(&[(path.as_path(), guest)], AssetLimit(limit));
        let error = runtime.load(&compiled, Grant { capabilities, ..Grant::default() }).err().unwrap();
        assert!(matches!(error, LoadError::Grant { .. }), "{error:?}");
        error.to_string()
    };
    assert!(refused("link", "/a", 100).contains("symbolic link"));
    assert!(refused("none", "/a", 100).contains("none"));
    assert!(refused("secret", "/a/../b", 100).contains("`/a/../b`"));
    assert!(refused("secret", "/a", 5).contains("5 bytes"));
}
