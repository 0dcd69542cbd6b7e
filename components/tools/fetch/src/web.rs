//! What is needed of HTTP, so that all but the sending can be tested.

use url::Url;

/// A way to the servers.
pub(crate) trait Web {
    /// Asks for what is at a URL, following nothing.
    fn get(&self, url: &Url) -> Result<Reply, Fault>;

    /// Tells how many bytes have been read, and of how many.
    fn report(&self, done: usize, total: Option<u64>);
}

/// What a server answers.
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// With names in lower case.
    pub(crate) headers: Vec<(String, Vec<u8>)>,
    /// The body in parts. Behind a fault there are none.
    pub(crate) body: Box<dyn Iterator<Item = Result<Vec<u8>, Fault>>>,
}

impl Reply {
    /// The first header of a name, if it is text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let (_, value) = self.headers.iter().find(|(known, _)| known == name)?;
        std::str::from_utf8(value).ok().map(str::trim)
    }

    /// The length that the server says the body has.
    pub(crate) fn length(&self) -> Option<u64> {
        self.header("content-length")?.parse().ok()
    }
}

/// Why there is no answer, or no more of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The host does not let this component ask that server.
    HostNotAllowed,
    /// Nor any server at the address that the name has.
    AddressNotAllowed,
    /// Something else, as words that follow "because".
    Failed(String),
}

impl Fault {
    /// What is to be said of it, and done about it.
    pub(crate) fn explain(&self, url: &Url) -> String {
        let origin = url.origin().ascii_serialization();
        let place = "in the component's table of spin.toml";
        match self {
            Self::HostNotAllowed => format!(
                "{url} may not be read: this tool is not granted {origin}. Its operator can grant it with \
                 `allowed_outbound_hosts = [\"{origin}\"]` {place}"
            ),
            Self::AddressNotAllowed => format!(
                "{url} may not be read: the address of `{}` is a private or special one, which is granted by the \
                 address only. Its operator can grant it, such as with \
                 `allowed_outbound_hosts = [\"{origin}\", \"{}://10.0.0.5:{}\"]` {place}",
                url.host_str().unwrap_or_default(),
                url.scheme(),
                url.port_or_known_default().unwrap_or(80),
            ),
            Self::Failed(why) => format!("{url} could not be read, because {why}"),
        }
    }
}

#[cfg(test)]
pub(crate) mod fake {
    //! A web in memory.

    use std::cell::RefCell;
    use std::collections::BTreeMap;

    use super::*;

    type Page = (u16, Vec<(String, Vec<u8>)>, Vec<Result<Vec<u8>, Fault>>);

    /// Servers that answer from a table. Whatever is not in it is not allowed.
    #[derive(Default)]
    pub(crate) struct Fake {
        pages: BTreeMap<String, Page>,
        pub(crate) asked: RefCell<Vec<String>>,
        pub(crate) reports: RefCell<Vec<(usize, Option<u64>)>>,
    }

    impl Fake {
        pub(crate) fn with(self, url: &str, status: u16, headers: &[(&str, &str)], body: &[u8]) -> Self {
            self.with_parts(url, status, headers, vec![Ok(body.to_vec())])
        }

        pub(crate) fn with_parts(
            mut self,
            url: &str,
            status: u16,
            headers: &[(&str, &str)],
            parts: Vec<Result<Vec<u8>, Fault>>,
        ) -> Self {
            let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec()));
            self.pages.insert(url.to_owned(), (status, headers.collect(), parts));
            self
        }

        pub(crate) fn redirecting(self, from: &str, to: &str) -> Self {
            self.with(from, 302, &[("location", to)], b"")
        }
    }

    impl Web for Fake {
        fn get(&self, url: &Url) -> Result<Reply, Fault> {
            self.asked.borrow_mut().push(url.to_string());
            let (status, headers, parts) = self.pages.get(url.as_str()).cloned().ok_or(Fault::HostNotAllowed)?;
            Ok(Reply { status, headers, body: Box::new(parts.into_iter()) })
        }

        fn report(&self, done: usize, total: Option<u64>) {
            self.reports.borrow_mut().push((done, total));
        }
    }
}
