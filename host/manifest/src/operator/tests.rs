use std::time::{Duration, SystemTime};

use nala_tenant::{Ceiling, Key, Limit, Rate, Stock, UNLIMITED};
use proptest::prelude::*;

use super::*;
use crate::diagnostic::Diagnostic;

const HASH: &str = "00000000000000000000000000000000000000000000000000000000000000aa";
const SALT: &str = "000102030405060708090a0b0c0d0e0f";

/// A stored key with a public part of its own.
fn key(id: u8) -> String {
    format!("nala-sha256:{id:016x}:{SALT}:{HASH}")
}

fn good() -> String {
    format!(
        r#"anonymous = "refuse"

[keys]
file = "keys.toml"

[listen]
http = "127.0.0.1:3000"
admin = "[::1]:3001"

[admin]
keys = ["{admin}"]

[state]
dir = "state"

[defaults.limits]
requests = 8
memory = "1GiB"

[tenant.acme]
weight = 2
hosts = ["ACME.example.com."]
prefix = "/t/acme"
keys = [
    "{first}",
    {{ key = "{second}", expires = 2027-01-31T00:00:00Z, note = "ci" }},
]
models = ["small"]

[tenant.acme.limits]
requests = 16
cpu_per_minute = "30s"
outbound_connections = 0
log_bytes_per_minute = "unlimited"

[tenant.zoo]
keys = ["{third}"]
telemetry = true
"#,
        admin = key(1),
        first = key(2),
        second = key(3),
        third = key(4)
    )
}

fn parse(text: &str) -> Result<Operator, Error> {
    Operator::parse(text, None, Path::new("/etc/nala"))
}

fn invalid(result: Result<Operator, Error>) -> Diagnostic {
    match result {
        Err(Error::Invalid(diagnostic)) => *diagnostic,
        other => panic!("{other:?}"),
    }
}

/// The good file with a part replaced.
fn changed(from: &str, to: &str) -> String {
    let good = good();
    assert!(good.contains(from), "{from}");
    good.replacen(from, to, 1)
}

#[test]
fn a_file_is_read_whole() {
    let operator = parse(&good()).unwrap();
    assert!(operator.warnings.is_empty(), "{:?}", operator.warnings);
    assert_eq!(operator.roster.anonymous(), None);
    assert_eq!(operator.listen.http, Some("127.0.0.1:3000".parse().unwrap()));
    assert_eq!(operator.listen.admin, Some("[::1]:3001".parse().unwrap()));
    assert_eq!(operator.admin_keys, [key(1).parse().unwrap()]);
    assert_eq!(operator.state_dir.as_deref(), Some(Path::new("/etc/nala/state")));

    let acme = operator.roster.tenant("acme").unwrap();
    assert_eq!(acme.weight.get(), 2);
    assert_eq!(acme.hosts, ["acme.example.com".parse().unwrap()]);
    assert_eq!(acme.prefix, Some("/t/acme".parse().unwrap()));
    let end = SystemTime::UNIX_EPOCH + Duration::from_secs(1_801_353_600);
    let second: StoredKey = key(3).parse().unwrap();
    assert_eq!(acme.keys, [key(2).parse().unwrap(), second.with_expiry(Some(end))]);
    assert_eq!(acme.models, Some(BTreeSet::from(["small".to_owned()])));
    assert!(!acme.reads_machine);
    // Its own, the file's default, and the table's.
    let expected = Limits::default()
        .with(Stock::Requests, 16)
        .with(Stock::Memory, 1 << 30)
        .with(Rate::Cpu, 30_000_000)
        .with(Stock::OutboundConnections, 0)
        .with(Rate::LogBytes, UNLIMITED);
    assert_eq!(acme.limits, expected);

    let zoo = operator.roster.tenant("zoo").unwrap();
    assert_eq!((zoo.weight.get(), &zoo.models, zoo.has_places()), (1, &None, false));
    assert!(zoo.reads_machine);
    assert_eq!(zoo.limits.get(Stock::Requests), 8);
    assert_eq!(zoo.limits.get(Ceiling::CompileTime), 60_000_000);
}

#[test]
fn every_limit_is_a_key_and_every_default_can_be_written_as_it_is_shown() {
    for limit in Limit::all() {
        let row = limit.row();
        let shown = row.unit.show(row.default);
        let value = if row.unit == nala_tenant::Unit::Count { shown } else { format!("{shown:?}") };
        let text = format!("[tenant.a]\nkeys = [\"{}\"]\n[tenant.a.limits]\n{} = {value}\n", key(1), row.name);
        let limits = parse(&text).unwrap().roster.tenant("a").unwrap().limits.clone();
        assert_eq!(limits, Limits::default(), "{}", row.name);
        for (value, expected) in [("0", 0), ("\"unlimited\"", UNLIMITED)] {
            let text = format!("[tenant.a.limits]\n{} = {value}\n", row.name);
            let limits = parse(&text).unwrap().roster.tenant("a").unwrap().limits.clone();
            assert_eq!(limits, Limits::default().with(limit, expected), "{}", row.name);
        }
    }
}

#[test]
fn mistakes_are_named_with_place_and_way_out() {
    let (first, third) = (key(2), key(4));
    for (from, to, message, help, line) in [
        ("weight = 2", "weigth = 2", "`weigth` is not known", "did you mean `weight`?", 21),
        ("weight = 2", "zzz = 2", "`zzz` is not known", "one of `class`, `weight`, `hosts`", 21),
        ("[state]", "[states]", "`states` is not known", "did you mean `state`?", 13),
        ("requests = 16", "request = 16", "no limit `request`", "did you mean `requests`?", 31),
        ("memory = \"1GiB\"", "memry = \"1GiB\"", "no limit `memry`", "did you mean `memory`?", 18),
        ("memory = \"1GiB\"", "memory = 1000", "1000 is no size for `memory`", "\"64MiB\"", 18),
        ("requests = 16", "requests = \"16\"", "\"16\" is no number for `requests`", "such as 32", 31),
        ("requests = 16", "requests = -1", "-1 is no number", "such as 32", 31),
        ("\"30s\"", "\"30\"", "\"30\" is no duration for `cpu_per_minute`", "\"60s\"", 32),
        ("\"30s\"", "true", "true is no duration", "unlimited", 32),
        ("weight = 2", "weight = 0", "`0` is no weight", "from 1", 21),
        ("weight = 2", "weight = \"2\"", "invalid type", "docs/tenants.md", 21),
        ("ACME.example.com.", "acme:80", "has no port", "acme.example.com", 22),
        ("\"/t/acme\"", "\"t/acme\"", "begins with `/`", "/t/acme", 23),
        ("\"/t/acme\"", "\"/t/%61\"", "is no prefix", "/t/acme", 23),
        (first.as_str(), "sha256:1", "a stored key begins with", "nala-host key new", 25),
        ("expires = 2027-01-31T00:00:00Z", "expires = 2027-01-31", "no moment", "2027-01-31T00:00:00Z", 26),
        ("expires = 2027-01-31T00:00:00Z", "expires = \"2027\"", "no moment", "without quotes", 26),
        ("expires =", "expire =", "`expire` is not known", "did you mean `expires`?", 26),
        ("note = \"ci\"", "note = 1", "`note` is no text", "in quotes", 26),
        (third.as_str(), first.as_str(), "belongs to the tenant `acme` already", "one of them only", 37),
        (
            "[tenant.zoo]",
            "[tenant.zoo]\nprefix = \"/t/acme\"",
            "`/t/acme` belongs to the tenant `acme`",
            "one of them",
            37,
        ),
        ("[tenant.zoo]", "[tenant.zoo]\nhosts = [\"acme.example.com\"]", "belongs to the tenant `acme`", "one of", 37),
        ("\"ACME.example.com.\"", "\"a\", \"A\"", "`a` belongs to the tenant `acme` already", "stand there once", 22),
        ("[tenant.zoo]", "[tenant.\"z o\"]", "a tenant's name has", "another name", 36),
        ("[tenant.zoo]", "[tenant.refuse]", "cannot be a tenant", "another name", 36),
        ("anonymous = \"refuse\"", "anonymous = \"acne\"", "no tenant `acne`", "did you mean `acme`?", 1),
        ("anonymous = \"refuse\"", "anonymous = \"x\"", "no tenant `x`", "one of `acme`, `zoo`", 1),
        ("127.0.0.1:3000", "localhost:3000", "no address to listen at", "127.0.0.1:3000", 7),
        ("[state]", "[state", "", "docs/tenants.md", 13),
    ] {
        let error = invalid(parse(&changed(from, to)));
        assert!(error.message.contains(message), "{to}: {error}");
        assert!(error.help.contains(help), "{to}: {error}");
        assert_eq!(error.line, line, "{to}: {error}");
    }
    let twice = format!("[admin]\nkeys = [\"{0}\",\n\"{0}\"]\n", key(1));
    assert_eq!(invalid(parse(&twice)).line, 3);
}

#[test]
fn the_message_shows_the_line_and_the_fix() {
    let error = invalid(parse(&changed("weight = 2", "weigth = 2")));
    let expected =
        "nala.toml:21:1: `weigth` is not known here\n   |\n21 | weigth = 2\n   | ^\n   = help: did you mean `weight`?";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn a_key_that_stands_where_its_hash_belongs_is_in_no_message() {
    let (secret, _) = Key::generate().unwrap();
    let text = secret.expose();
    for bad in [
        format!("[tenant.a]\nkeys = [\"{text}\"]\n"),
        format!("[tenant.a]\nkeys = \"{text}\"\n"),
        format!("[tenant.a]\nkeys = [\"{text}]\n"),
        format!("[tenant.a]\nkeys = [{{ key = \"{text}\" }}]\n"),
        format!("[tenant.a]\nkeys = [{{ kay = \"{text}\" }}]\n"),
        format!("[tenant.a]\nkeys = [{{ key = \"{text}\", expires = 1 }}]\n"),
        format!("[tenant.a]\nkey = \"{text}\"\n"),
        format!("[tenant.a.limits]\nrequests = \"{text}\"\n"),
        format!("anonymous = \"{text}\"\n[tenant.a]\n"),
    ] {
        let error = invalid(parse(&bad));
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains(&text[10..]), "{shown}");
    }
    let error = invalid(parse(&format!("[admin]\nkeys = [\"{text}\"]\n")));
    assert!(error.message.contains("make a new key"), "{error}");
}

#[test]
fn without_tenants_one_has_the_machine_alone() {
    let operator = parse("").unwrap();
    let local = operator.roster.tenant("local").unwrap();
    assert_eq!(operator.roster.anonymous(), Some(&local.name));
    assert_eq!(local.limits, Limits::unlimited());
    assert_eq!(Operator::default().roster.tenant("local"), Some(local));
    let limited = parse("anonymous = \"local\"\n[defaults.limits]\nrequests = 3\n").unwrap().roster;
    assert_eq!(limited.tenant("local").unwrap().limits, Limits::unlimited().with(Stock::Requests, 3));
    assert!(invalid(parse("anonymous = \"refuse\"")).message.contains("nobody could ask anything"));
    assert!(invalid(parse("anonymous = \"acme\"")).message.contains("no tenant `acme`"));
}

#[test]
fn anonymous_callers_belong_to_nobody_unless_it_is_said() {
    assert_eq!(parse(&changed("anonymous = \"refuse\"", "")).unwrap().roster.anonymous(), None);
    let operator = parse(&changed("\"refuse\"", "\"zoo\"")).unwrap();
    assert_eq!(operator.roster.anonymous().unwrap().as_str(), "zoo");
    let keyless = parse(&changed("[tenant.zoo]", "[tenant.empty]\n[tenant.zoo]")).unwrap();
    let warning = keyless.warnings.first().unwrap().to_string();
    assert!(warning.contains("nobody can be the tenant `empty`"), "{warning}");
}

#[test]
fn a_class_has_tenants_and_a_process() {
    let with = |class: &str, of: &str| parse(&format!("{class}\n[tenant.acme]\n{of}\n[tenant.zoo]\n"));
    let operator = with(
        "[class.untrusted]\nprocess = \"own\"\nthreads = 2\nkv_cells = 4096\nmodel_memory = \"1GiB\"",
        "class = \"untrusted\"",
    )
    .unwrap();
    let [class] = &operator.classes[..] else { panic!("{:?}", operator.classes) };
    assert_eq!((class.threads.unwrap().get(), class.kv_cells.unwrap().get()), (2, 4096));
    assert_eq!(class.model_memory, Some(1 << 30));
    assert_eq!(operator.roster.tenant("acme").unwrap().class, Some(class.name.clone()));
    assert_eq!(operator.roster.tenant("zoo").unwrap().class, None);
    let own = "[class.untrusted]\nprocess = \"own\"\n";
    let of = "class = \"untrusted\"";
    for (class, of, message, help, line) in [
        ("[class.untrusted]", of, "does not say where", "process = \"own\"", 1),
        ("[class.untrusted]\nprocess = \"shared\"", of, "`shared` is no process", "process = \"own\"", 2),
        ("[class.untrusted]\nprocess = 1", of, "invalid type", "docs/tenants.md", 2),
        ("[class.untrusted]\nproces = \"own\"", of, "`proces` is not known", "did you mean `process`?", 2),
        ("[class.\"../x\"]\nprocess = \"own\"", of, "a class's name has", "choose another name", 1),
        (own, "class = \"untrustd\"", "there is no class `untrustd`", "did you mean `untrusted`?", 5),
        ("", "class = \"x\"", "there is no class `x`", "add a table [class.x]", 3),
        (own, "", "no tenant is of the class `untrusted`", "or remove the class", 1),
        (&format!("{own}threads = 0"), of, "`0` is no number for `threads`", "from 1", 3),
        (&format!("{own}model_memory = 5"), of, "5 is no size for `model_memory`", "4GiB", 3),
    ] {
        let error = invalid(with(class, of));
        assert!(error.message.contains(message) && error.help.contains(help), "{error}");
        assert_eq!(error.line, line, "{error}");
    }
    // Without tenants there is nobody of a class.
    assert!(invalid(parse(own)).message.contains("no tenant is of the class"));
}

#[test]
fn keys_can_stand_apart() {
    let with = |keys: &str| Operator::parse(&good(), Some(keys), Path::new(""));
    let text = format!("[tenant.zoo]\nkeys = [\"{}\"]\n[admin]\nkeys = [\"{}\"]\n", key(8), key(9));
    let operator = with(&text).unwrap();
    assert_eq!(operator.roster.tenant("zoo").unwrap().keys, [key(4).parse().unwrap(), key(8).parse().unwrap()]);
    assert_eq!(operator.admin_keys.len(), 2);
    for (keys, message, line) in [
        (format!("\n[tenant.zoo]\nkeys = [\"{}\"]\n", key(2)), "belongs to the tenant `acme` already", 3),
        ("[tenant.zo]\nkeys = []\n".to_owned(), "there is no tenant `zo`", 1),
        ("[tenant.zoo]\nkey = []\n".to_owned(), "`key` is not known here", 2),
        (format!("[admin]\nkeys = [\"{}\"]\n", key(1)), "stands here twice", 2),
    ] {
        let error = invalid(with(&keys));
        assert_eq!((error.file.as_str(), error.line), ("keys.toml", line), "{error}");
        assert!(error.message.contains(message), "{error}");
    }
}

#[test]
fn both_files_are_read_and_named() {
    let dir = tempfile::tempdir().unwrap();
    let (path, keys) = (dir.path().join("nala.toml"), dir.path().join("keys.toml"));
    let missing = Operator::read(&path).unwrap_err().to_string();
    assert!(missing.contains("nala.toml: ") && missing.contains("give the path"), "{missing}");
    std::fs::write(&path, good()).unwrap();
    let missing = Operator::read(&path).unwrap_err().to_string();
    assert!(missing.contains("keys.toml: "), "{missing}");
    std::fs::write(&keys, format!("[tenant.zoo]\nkeys = [\"{}\"]\n", key(8))).unwrap();
    let operator = Operator::read(&path).unwrap();
    assert_eq!(operator.files(), [path.clone(), keys.clone()]);
    assert_eq!(operator.roster.tenant("zoo").unwrap().keys.len(), 2);
    assert_eq!(operator.state_dir, Some(dir.path().join("state")));

    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(&keys, std::fs::Permissions::from_mode(0o666)).unwrap();
        let error = Operator::read(&path).unwrap_err().to_string();
        assert!(error.contains("chmod o-w"), "{error}");
    }
}

#[test]
fn networks_are_kept_as_they_are_written() {
    assert_eq!(parse("").unwrap().egress, Egress::default());
    let egress = parse("[egress]\nprivate = [\"10.1.0.0/16\"]\nrefused = [\"203.0.113.7\"]\n").unwrap().egress;
    assert_eq!((egress.private, egress.refused), (vec!["10.1.0.0/16".to_owned()], vec!["203.0.113.7".to_owned()]));
    let error = parse("[egress]\nprivat = []\n").unwrap_err().to_string();
    assert!(error.contains("nala.toml:2:1") && error.contains("did you mean `private`?"), "{error}");
}

#[test]
fn credentials_are_read_with_whose_requests_they_are_for() {
    let text = r#"
[tenant.ops]
[tenant.acme]
[[egress.credentials]]
origin = "https://KUBERNETES.default.svc:443/"
components = ["kubernetes"]
tenants = ["ops"]
bearer_file = "/var/run/token"
ca_file = "ca.crt"
[[egress.credentials]]
origin = "http://10.0.0.5:8080"
components = ["search", "agent"]
header = "X-API-Key"
value_env = "SEARCH_KEY"
allow_plain = true
[[egress.credentials]]
origin = "http://10.0.0.5:8080"
components = ["agent"]
application = "shop"
tenants = ["acme"]
header = "x-api-key"
value_file = "acme.key"
"#;
    let all = parse(text).unwrap().egress.credentials;
    let [kubernetes, search, shop] = all.as_slice() else { panic!("{all:?}") };
    assert_eq!(kubernetes.origin, "https://kubernetes.default.svc");
    assert_eq!(kubernetes.whom.of, Application::Started { tenants: Some(["ops".parse().unwrap()].into()) });
    assert_eq!(kubernetes.form, CredentialForm::Bearer);
    assert_eq!(kubernetes.value, CredentialValue::File("/var/run/token".into()));
    assert_eq!(kubernetes.ca_file, Some(Path::new("/etc/nala/ca.crt").into()));
    assert_eq!((search.plain, shop.plain), (PlainText::Allowed, PlainText::Refused));
    assert_eq!(search.value, CredentialValue::Environment("SEARCH_KEY".to_owned()));
    assert_eq!(search.whom.of, Application::Started { tenants: None });
    let tenants = ["acme".parse().unwrap()].into();
    assert_eq!(shop.whom.of, Application::Deployed { name: "shop".to_owned(), tenants });
    assert_eq!(shop.value, CredentialValue::File("/etc/nala/acme.key".into()));
}

#[test]
fn a_credential_that_is_not_clear_is_refused_where_it_stands() {
    let good = "[[egress.credentials]]\norigin = \"https://a.example\"\ncomponents = [\"a\"]\nbearer_file = \"t\"\n";
    assert!(parse(good).is_ok());
    for (from, to, line, told) in [
        ("origin = \"https://a.example\"\n", "", 1, "has no origin"),
        ("https://a.example", "a.example", 2, "is no origin"),
        ("https://a.example", "ftp://a.example", 2, "neither http nor https"),
        ("https://a.example", "https://a.example/v1", 2, "more than an origin"),
        ("components = [\"a\"]\n", "", 1, "for no component"),
        ("components = [\"a\"]", "components = []", 1, "for no component"),
        ("bearer_file = \"t\"\n", "", 1, "not clear what is to be sent"),
        ("bearer_file = \"t\"", "bearer_file = \"t\"\nbearer_env = \"T\"", 1, "not clear what is to be sent"),
        ("bearer_file = \"t\"", "bearer_file = \"t\"\nheader = \"x-key\"", 1, "not clear what is to be sent"),
        ("bearer_file = \"t\"", "value_env = \"T\"", 1, "not clear what is to be sent"),
        ("bearer_file = \"t\"", "value_env = \"T\"\nheader = \"x key\"", 5, "no name of a header"),
        ("bearer_file = \"t\"", "bearer_file = \"t\"\ntenants = [\"none\"]", 5, "there is no tenant `none`"),
        ("bearer_file = \"t\"", "bearer_file = \"t\"\napplication = \"x\"", 1, "any tenant can deploy"),
        ("bearer_file", "bearer_fil", 4, "did you mean `bearer_file`?"),
        ("https://a.example\"", "http://127.0.0.1\"\nca_file = \"c\"", 1, "no certificates without TLS"),
    ] {
        let text = good.replacen(from, to, 1);
        assert_ne!(text, good, "{from}");
        let error = parse(&text).unwrap_err().to_string();
        assert!(error.starts_with(&format!("nala.toml:{line}:")) && error.contains(told), "{to}: {error}");
    }
    let secret = parse(&good.replace("https://", "https://me:hunter2@")).unwrap_err().to_string();
    assert!(secret.contains("nala.toml:2:") && !secret.contains("hunter2"), "{secret}");
    // One request, two credentials.
    let double = parse(&format!("{good}{}", good.replace("a.example", "A.example:443"))).unwrap_err().to_string();
    assert!(double.starts_with("nala.toml:5:") && double.contains("is there already"), "{double}");
    assert!(parse(&format!("{good}{}", good.replace("[\"a\"]", "[\"b\"]"))).is_ok());
    assert!(parse(&format!("{good}{}", good.replace("https://a", "https://b"))).is_ok());
}

#[test]
fn registries_are_hosts() {
    assert!(parse("").unwrap().registries.is_empty());
    let text = "[admin]\nregistries = [\"ghcr.io\", \"10.0.0.5:5000\", \"localhost\"]\n";
    assert_eq!(parse(text).unwrap().registries, ["ghcr.io", "10.0.0.5:5000", "localhost"]);
    for wrong in ["", "ghcr", "https://ghcr.io", "ghcr.io/acme", "GHCR.io", "a@b.example", "*.example", "b.example:x"] {
        let error = parse(&format!("[admin]\nregistries = [\"{wrong}\"]\n")).unwrap_err().to_string();
        assert!(error.contains("nala.toml:2:15:") && error.contains("is no registry"), "{wrong}: {error}");
    }
}

proptest! {
    #[test]
    fn no_text_causes_a_panic(cut in any::<prop::sample::Index>(), with in "[\\[\\]{}=\".a-z0-9\n é]{0,12}", len in 0_usize..20) {
        let good = good();
        let start = cut.index(good.len());
        let end = (start + len).min(good.len());
        let text = [&good[..start], &with, &good[end..]].concat();
        if let Err(error) = parse(&text) {
            let _ = error.to_string();
        }
    }
}
