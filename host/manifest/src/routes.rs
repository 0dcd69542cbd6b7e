//! Routes and which of them answers a path, as Spin does it.
//!
//! A route is exact (`/chat`), has parameters that match one segment each
//! (`/users/:id`), and may end in a wildcard that matches any number of
//! segments, none included (`/files/...`). Of the routes that match, the most
//! specific wins: segment by segment from the left, a literal before a
//! parameter before the wildcard. Slashes at the end of a path do not count.
//! Paths are compared as they are, without percent-decoding.
//!
//! Source: <https://spinframework.dev/http-trigger#http-trigger-routes>.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// A route of an HTTP trigger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    segments: Vec<Segment>,
    wildcard: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Segment {
    Literal(String),
    Parameter(String),
}

/// Why a text is no route; the message says what to write.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRoute {
    /// It does not begin with a slash.
    #[error("a route begins with `/`")]
    NoSlash,
    /// Two slashes in a row.
    #[error("a route has no empty segment: remove the doubled `/`")]
    EmptySegment,
    /// `...` not alone in the last segment.
    #[error("`...` stands alone in the last segment only, as in `/files/...`")]
    Wildcard,
    /// `:` without a name, or with the same name as another.
    #[error("a parameter needs a name of its own, as in `/users/:id`")]
    Parameter,
    /// `*`, which other programs take for a wildcard.
    #[error("a route has no `*`: write `/...` for everything below a path, or `/:name` for one segment")]
    Star,
    /// `%` without two hexadecimal digits behind it.
    #[error("a `%` begins an escape of two hexadecimal digits, as in `/a%20b`")]
    Escape,
    /// A query, a fragment, a space or a control character.
    #[error("a route has no `?`, `#`, spaces or control characters")]
    Character,
}

/// What a path has in the places of a route's parameters and wildcard.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Params<'a> {
    /// Name and value of each parameter, from the left, as the path has it.
    pub named: Vec<(&'a str, &'a str)>,
    /// What the wildcard matched, without a slash before it; none for a route
    /// without wildcard.
    pub rest: Option<&'a str>,
}

impl Route {
    /// The route that matches every path, `/...`.
    #[must_use]
    pub fn all() -> Self {
        Self { segments: Vec::new(), wildcard: true }
    }

    /// Whether `path` is matched, and by what.
    #[must_use]
    pub fn matches<'a>(&'a self, path: &'a str) -> Option<Params<'a>> {
        let mut rest = path.strip_prefix('/')?.trim_end_matches('/');
        let mut params = Params::default();
        for segment in &self.segments {
            if rest.is_empty() {
                return None;
            }
            let (head, tail) = rest.split_once('/').unwrap_or((rest, ""));
            match segment {
                Segment::Literal(literal) if literal == head => {}
                Segment::Parameter(name) if !head.is_empty() => params.named.push((name, head)),
                _ => return None,
            }
            rest = tail;
        }
        if self.wildcard {
            params.rest = Some(rest);
        } else if !rest.is_empty() {
            return None;
        }
        Some(params)
    }

    /// Whether both match the same paths: names of parameters do not count.
    #[must_use]
    pub fn is_same_as(&self, other: &Self) -> bool {
        self.specificity(other) == Ordering::Equal
    }

    /// Less is more specific. A total order over routes, equal for those that
    /// match the same paths.
    fn specificity(&self, other: &Self) -> Ordering {
        let mut mine = self.segments.iter();
        let mut theirs = other.segments.iter();
        loop {
            let order = match (mine.next(), theirs.next()) {
                // An end is more specific than a wildcard.
                (None, None) => return self.wildcard.cmp(&other.wildcard),
                (Some(_), None) => return Ordering::Less,
                (None, Some(_)) => return Ordering::Greater,
                (Some(Segment::Literal(a)), Some(Segment::Literal(b))) => a.cmp(b),
                (Some(Segment::Literal(_)), Some(Segment::Parameter(_))) => Ordering::Less,
                (Some(Segment::Parameter(_)), Some(Segment::Literal(_))) => Ordering::Greater,
                (Some(Segment::Parameter(_)), Some(Segment::Parameter(_))) => Ordering::Equal,
            };
            if order != Ordering::Equal {
                return order;
            }
        }
    }
}

impl FromStr for Route {
    type Err = InvalidRoute;

    fn from_str(text: &str) -> Result<Self, InvalidRoute> {
        if text.contains(|c: char| c.is_control() || c.is_whitespace() || matches!(c, '?' | '#')) {
            return Err(InvalidRoute::Character);
        }
        if text.contains('*') {
            return Err(InvalidRoute::Star);
        }
        if !text.split('%').skip(1).all(begins_with_two_digits) {
            return Err(InvalidRoute::Escape);
        }
        let inner = text.strip_prefix('/').ok_or(InvalidRoute::NoSlash)?;
        if text.contains("//") {
            return Err(InvalidRoute::EmptySegment);
        }
        let mut route = Self { segments: Vec::new(), wildcard: false };
        let inner = inner.strip_suffix('/').unwrap_or(inner);
        if inner.is_empty() {
            return Ok(route);
        }
        for part in inner.split('/') {
            if route.wildcard {
                return Err(InvalidRoute::Wildcard);
            }
            if part == "..." {
                route.wildcard = true;
            } else if part.contains("...") {
                return Err(InvalidRoute::Wildcard);
            } else if let Some(name) = part.strip_prefix(':') {
                let parameter = Segment::Parameter(name.to_owned());
                if name.is_empty() || route.segments.contains(&parameter) {
                    return Err(InvalidRoute::Parameter);
                }
                route.segments.push(parameter);
            } else {
                route.segments.push(Segment::Literal(part.to_owned()));
            }
        }
        Ok(route)
    }
}

fn begins_with_two_digits(text: &str) -> bool {
    text.as_bytes().get(..2).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for segment in &self.segments {
            match segment {
                Segment::Literal(text) => write!(f, "/{text}")?,
                Segment::Parameter(name) => write!(f, "/:{name}")?,
            }
        }
        match (self.wildcard, self.segments.is_empty()) {
            (true, _) => f.write_str("/..."),
            (false, true) => f.write_str("/"),
            (false, false) => Ok(()),
        }
    }
}

/// Routes with what answers them.
#[derive(Debug, Clone)]
pub struct RouteTable<T> {
    /// Most specific first, so that the first match is the best.
    routes: Vec<(Route, T)>,
}

impl<T> Default for RouteTable<T> {
    fn default() -> Self {
        Self { routes: Vec::new() }
    }
}

impl<T> RouteTable<T> {
    /// An empty table.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a route.
    ///
    /// # Errors
    /// The route that is there already and matches the same paths.
    pub fn insert(&mut self, route: Route, target: T) -> Result<(), Route> {
        let place = self.routes.binary_search_by(|(other, _)| other.specificity(&route));
        match place {
            Ok(at) => Err(self.routes.get(at).map_or(route, |(other, _)| other.clone())),
            Err(at) => {
                self.routes.insert(at, (route, target));
                Ok(())
            }
        }
    }

    /// What answers `path` (without the query).
    #[must_use]
    pub fn find<'s: 'p, 'p>(&'s self, path: &'p str) -> Option<(&'s T, Params<'p>)> {
        self.routes.iter().find_map(|(route, target)| Some((target, route.matches(path)?)))
    }

    /// Every route, most specific first.
    pub fn iter(&self) -> impl Iterator<Item = (&Route, &T)> {
        self.routes.iter().map(|(route, target)| (route, target))
    }
}

#[cfg(test)]
#[path = "routes_tests.rs"]
mod tests;
