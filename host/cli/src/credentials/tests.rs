use std::fs;

use nala_manifest::operator::Operator;

use super::*;

const FILE: &str = r#"
[class.apart]
process = "own"
[tenant.ops]
[tenant.acme]
class = "apart"
[[egress.credentials]]
origin = "https://cluster.example"
components = ["kubernetes"]
tenants = ["ops"]
bearer_file = "token"
[[egress.credentials]]
origin = "https://search.example"
components = ["search", "agent"]
bearer_file = "token"
[[egress.credentials]]
origin = "https://shop.example"
components = ["kubernetes"]
application = "shop"
tenants = ["acme"]
header = "x-key"
value_file = "token"
"#;

fn origins(credentials: &Credentials, tenant: &str, home: &Home, component: &str) -> Vec<String> {
    credentials.of(tenant, home, component).iter().map(|one| one.origin().to_string()).collect()
}

fn read(folder: &Path, text: &str) -> Operator {
    Operator::parse(text, None, folder).unwrap()
}

#[test]
fn a_credential_is_found_for_those_that_are_meant() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("token"), "t0ken").unwrap();
    let operator = read(folder.path(), FILE);
    let all = Credentials::open(Path::new("nala.toml"), &operator.egress.credentials, |_| true).unwrap();
    let shop = Home::Deployed("shop".to_owned());
    let other = Home::Deployed("other".to_owned());
    let none = Vec::<String>::new();
    for (tenant, home, component, found) in [
        ("ops", &Home::Started, "kubernetes", vec!["https://cluster.example".to_owned()]),
        ("acme", &Home::Started, "kubernetes", none.clone()),
        ("acme", &Home::Started, "search", vec!["https://search.example".to_owned()]),
        ("ops", &Home::Started, "other", none.clone()),
        // Who deploys chooses names.
        ("ops", &Home::Deployed("kubernetes".to_owned()), "kubernetes", none.clone()),
        ("acme", &other, "search", none.clone()),
        ("acme", &shop, "kubernetes", vec!["https://shop.example".to_owned()]),
        ("ops", &shop, "kubernetes", none.clone()),
        ("acme", &other, "kubernetes", none),
    ] {
        assert_eq!(origins(&all, tenant, home, component), found, "{tenant} {home:?} {component}");
    }
    assert_eq!(all.files().collect::<BTreeSet<_>>(), [folder.path().join("token").as_path()].into());
    let unknown = all.unknown(|component| component == "kubernetes" || component == "agent");
    assert_eq!(unknown, [("search".to_owned(), "https://search.example".to_owned())].into());
}

#[test]
fn a_process_has_those_of_its_tenants_alone() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("token"), "t0ken").unwrap();
    let operator = read(folder.path(), FILE);
    let class = "apart".parse().unwrap();
    let front =
        Credentials::open(Path::new("nala.toml"), &operator.egress.credentials, is_served_in_front(&operator.roster));
    let only = operator.roster.only(&class);
    let behind = Credentials::open(Path::new("nala.toml"), &operator.egress.credentials, |name| {
        only.tenant(name.as_str()).is_some()
    });
    let origins =
        |credentials: &Credentials| credentials.all.iter().map(|(_, one)| one.origin().to_string()).collect::<Vec<_>>();
    assert_eq!(origins(&front.unwrap()), ["https://cluster.example", "https://search.example"]);
    assert_eq!(origins(&behind.unwrap()), ["https://search.example", "https://shop.example"]);
}

#[test]
fn variables_of_others_are_not_handed_on() {
    let text = FILE
        .replacen("bearer_file = \"token\"", "bearer_env = \"OPS\"", 1)
        .replacen("bearer_file = \"token\"", "bearer_env = \"ALL\"", 1)
        .replacen("value_file = \"token\"", "value_env = \"ACME\"", 1);
    let operator = read(Path::new(""), &text);
    let withheld = environment_of_others(&operator.egress.credentials, |name| name.as_str() == "acme");
    assert_eq!(withheld, ["OPS".to_owned()].into());
}

#[test]
fn what_is_wrong_is_told_with_what_it_is_for() {
    let folder = tempfile::tempdir().unwrap();
    let open = |text: &str| {
        let operator = read(folder.path(), text);
        let opened = Credentials::open(Path::new("nala.toml"), &operator.egress.credentials, |_| true);
        opened.map(|_| ()).unwrap_err()
    };
    let missing = open(FILE).to_string();
    assert!(missing.contains("kubernetes for https://cluster.example") && missing.contains("token"), "{missing}");
    fs::write(folder.path().join("token"), "s3cret\ns3cret\n").unwrap();
    let broken = open(FILE).to_string();
    assert!(broken.contains("line break") && !broken.contains("s3cret"), "{broken}");
    let unset = open(&FILE.replacen("bearer_file = \"token\"", "bearer_env = \"NALA_TEST_NO_SUCH\"", 1)).to_string();
    assert!(unset.contains("NALA_TEST_NO_SUCH is not set"), "{unset}");
    let plain = open(&FILE.replacen("https://cluster", "http://cluster", 1));
    assert!(plain.help.contains("allow_plain"), "{}", plain.help);
}

#[test]
fn a_file_is_found_again_when_it_is_exchanged() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    fs::create_dir(folder.join("real")).unwrap();
    fs::write(folder.join("real/token"), "x").unwrap();
    std::os::unix::fs::symlink("real/token", folder.join("token")).unwrap();
    assert_eq!(places(&folder.join("token")), [folder.clone(), folder.join("real")]);
    assert_eq!(places(Path::new("/token")), [Path::new("/token")]);
}
