//! Which URLs are asked for, and how redirects are followed.

use url::Url;

use crate::web::{Reply, Web};

/// How many redirects are followed.
const REDIRECTS: usize = 5;

/// The longest URL in bytes: what the host takes.
const LONGEST: usize = 16 << 10;

/// What is at a URL.
pub(crate) struct Found {
    /// Where it was found.
    pub(crate) url: Url,
    /// What led there.
    pub(crate) redirects: Vec<Url>,
    pub(crate) reply: Reply,
}

/// Asks for a URL, and for what it leads to.
pub(crate) fn find(web: &dyn Web, url: &str) -> Result<Found, String> {
    let url = Url::parse(url.trim())
        .map_err(|error| format!("`{}` is no URL ({error}); give a whole one, from https:// on", short(url)))?;
    let mut url = checked(url)?;
    let mut redirects = Vec::new();
    loop {
        let reply = web.get(&url).map_err(|fault| format!("{}{}", led(&redirects), fault.explain(&url)))?;
        let Some(to) = target(&url, &reply) else { return Ok(Found { url, redirects, reply }) };
        redirects.push(url);
        let next = to.and_then(checked).map_err(|why| format!("{}{why}", led(&redirects)))?;
        if redirects.contains(&next) {
            return Err(format!("{}{next} leads in a circle", led(&redirects)));
        }
        if redirects.len() > REDIRECTS {
            return Err(format!("{}no more than {REDIRECTS} redirects are followed; next is {next}", led(&redirects)));
        }
        url = next;
    }
}

/// Where a reply leads, if it does.
fn target(from: &Url, reply: &Reply) -> Option<Result<Url, String>> {
    if !matches!(reply.status, 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    let location = reply.header("location")?;
    let no_url = |error| format!("`{}` is no URL ({error})", short(location));
    Some(from.join(location).map_err(no_url))
}

/// Lets only those through that are asked for here.
fn checked(mut url: Url) -> Result<Url, String> {
    // Not for servers.
    url.set_fragment(None);
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("`{}` is not read: only http and https are", short(url.as_str())));
    }
    if !url.username().is_empty() || url.password().is_some() {
        let _has_a_host = url.set_username("").and_then(|()| url.set_password(None));
        return Err(format!(
            "a URL with a user name or a password is not read; without, it is {}",
            short(url.as_str())
        ));
    }
    if url.as_str().len() > LONGEST {
        return Err(format!("`{}` is longer than {LONGEST} bytes", short(url.as_str())));
    }
    Ok(url)
}

/// The beginning of what is said of a request that others led to.
fn led(redirects: &[Url]) -> String {
    redirects.iter().map(|url| format!("{} redirects: ", short(url.as_str()))).collect()
}

/// As much of a text as an error shows.
fn short(text: &str) -> String {
    match text.char_indices().nth(200) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::web::Fault;
    use crate::web::fake::Fake;

    fn fails(web: &Fake, url: &str) -> String {
        find(web, url).map(|found| found.url).unwrap_err()
    }

    #[test]
    fn only_urls_of_the_web_are_asked_for() {
        let web = Fake::default();
        let table = [
            ("", "no URL"),
            ("example.org", "no URL"),
            ("/a", "no URL"),
            ("https://", "no URL"),
            ("https://exa mple.org", "no URL"),
            ("file:///etc/passwd", "only http and https"),
            ("FTP://example.org", "only http and https"),
            ("javascript:alert(1)", "only http and https"),
            ("data:text/html,x", "only http and https"),
            ("https://me@example.org/a", "without, it is https://example.org/a"),
            ("https://me:secret@example.org/", "user name or a password"),
        ];
        for (url, why) in table {
            let error = fails(&web, url);
            assert!(error.contains(why), "{url}: {error}");
            assert!(!error.contains("secret"), "{error}");
        }
        let long = format!("https://example.org/{}", "a".repeat(LONGEST));
        let error = fails(&web, &long);
        assert!(error.contains("longer than") && error.len() < 1000, "{error}");
        assert!(web.asked.borrow().is_empty(), "{:?}", web.asked);
    }

    #[test]
    fn redirects_are_followed_and_shown() {
        let web = Fake::default()
            .redirecting("http://example.org/", "https://example.org/a/b?c#d")
            .redirecting("https://example.org/a/b?c", "../x")
            .redirecting("https://example.org/x", "//other.example:8443")
            .redirecting("https://other.example:8443/", "?q=ü")
            .with("https://other.example:8443/?q=%C3%BC", 200, &[], b"end");
        let found = find(&web, " HTTP://EXAMPLE.org:80#top ").unwrap();
        assert_eq!(found.url.as_str(), "https://other.example:8443/?q=%C3%BC");
        let redirects: Vec<_> = found.redirects.iter().map(Url::as_str).collect();
        let shown = [
            "http://example.org/",
            "https://example.org/a/b?c",
            "https://example.org/x",
            "https://other.example:8443/",
        ];
        assert_eq!(redirects, shown);
    }

    #[test]
    fn redirects_end() {
        let circle = Fake::default().redirecting("http://a/", "http://b/").redirecting("http://b/", "http://a/#x");
        assert!(fails(&circle, "http://a/").contains("http://a/ leads in a circle"));
        assert_eq!(circle.asked.borrow().len(), 2);

        let itself = Fake::default().redirecting("http://a/", "");
        assert!(fails(&itself, "http://a/").contains("circle"));

        let chain = |n: u32| {
            let link = |web: Fake, at: u32| web.redirecting(&format!("http://a/{at}"), &format!("{}", at + 1));
            (0..n).fold(Fake::default(), link).with(&format!("http://a/{n}"), 200, &[], b"")
        };
        assert_eq!(find(&chain(5), "http://a/0").unwrap().redirects.len(), 5);
        let long = chain(6);
        let error = fails(&long, "http://a/0");
        assert!(error.contains("no more than 5") && error.contains("next is http://a/6"), "{error}");
        assert_eq!(long.asked.borrow().len(), 6);
    }

    #[test]
    fn redirects_lead_out_of_the_web_nowhere() {
        let table = [
            ("file:/etc/passwd", "only http and https"),
            ("gopher://a/", "only http and https"),
            ("http://me@b/", "user name"),
            ("http://[", "no URL"),
            ("http://not.allowed/", "`allowed_outbound_hosts = [\"http://not.allowed\"]`"),
        ];
        for (to, why) in table {
            let error = fails(&Fake::default().redirecting("http://a/", to), "http://a/");
            assert!(error.starts_with("http://a/ redirects: ") && error.contains(why), "{to}: {error}");
        }
    }

    #[test]
    fn what_has_no_location_is_an_answer() {
        let web = Fake::default().with("http://a/", 301, &[], b"").with("http://b/", 304, &[("location", "/")], b"");
        assert_eq!(find(&web, "http://a/").unwrap().reply.status, 301);
        assert_eq!(find(&web, "http://b/").unwrap().reply.status, 304);
    }

    #[test]
    fn what_the_host_refuses_tells_the_operator_what_to_write() {
        let error = fails(&Fake::default(), "https://example.org:8443/a?b");
        assert!(error.contains("`allowed_outbound_hosts = [\"https://example.org:8443\"]`"), "{error}");
        let url = Url::parse("http://db.example/").unwrap();
        let error = Fault::AddressNotAllowed.explain(&url);
        assert!(error.contains("\"http://10.0.0.5:80\"") && error.contains("`db.example`"), "{error}");
    }
}
