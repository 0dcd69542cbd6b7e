use proptest::prelude::*;

use super::*;

fn table(routes: &[&str]) -> RouteTable<String> {
    let mut table = RouteTable::new();
    for route in routes {
        table.insert(route.parse().unwrap(), (*route).to_owned()).unwrap();
    }
    table
}

#[test]
fn the_most_specific_route_answers() {
    let table = table(&["/...", "/a", "/a/...", "/a/b", "/a/:x", "/a/:x/c", "/a/b/...", "/:y/z"]);
    for (path, expected) in [
        ("/", "/..."),
        ("/q", "/..."),
        ("/a", "/a"),
        ("/a/", "/a"),
        ("/a/b", "/a/b"),
        ("/a/q", "/a/:x"),
        ("/a/q/c", "/a/:x/c"),
        ("/a/q/d", "/a/..."),
        ("/a/b/c", "/a/b/..."),
        ("/a/z", "/a/:x"),
        ("/b/z", "/:y/z"),
        ("/ab", "/..."),
    ] {
        assert_eq!(table.find(path).unwrap().0, expected, "{path}");
    }
}

#[test]
fn parameters_and_the_rest_are_told() {
    let table = table(&["/users/:id/files/..."]);
    let (_, params) = table.find("/users/7/files/a/b").unwrap();
    assert_eq!(params.named, [("id", "7")]);
    assert_eq!(params.rest, Some("a/b"));
    assert_eq!(table.find("/users/7/files").unwrap().1.rest, Some(""));
    assert!(table.find("/users//files").is_none());
    assert!(table.find("/users/7").is_none());
    assert!(table.find("users/7/files").is_none());
}

#[test]
fn only_what_matches_the_same_paths_is_double() {
    let mut table = table(&["/a/:x", "/a/...", "/"]);
    assert_eq!(table.insert("/a/:y".parse().unwrap(), String::new()).unwrap_err().to_string(), "/a/:x");
    assert!(table.insert("/a/".parse().unwrap(), String::new()).is_ok());
    assert!(table.insert("/a".parse().unwrap(), String::new()).is_err());
}

#[test]
fn a_route_may_be_percent_encoded() {
    assert!(table(&["/a%20b"]).find("/a%20b").is_some());
}

#[test]
fn malformed_routes_are_refused() {
    for (text, expected) in [
        ("", InvalidRoute::NoSlash),
        ("a", InvalidRoute::NoSlash),
        ("/a//b", InvalidRoute::EmptySegment),
        ("//", InvalidRoute::EmptySegment),
        ("/.../a", InvalidRoute::Wildcard),
        ("/a...", InvalidRoute::Wildcard),
        ("/:", InvalidRoute::Parameter),
        ("/:a/:a", InvalidRoute::Parameter),
        ("/a?b", InvalidRoute::Character),
        ("/a b", InvalidRoute::Character),
        ("/*", InvalidRoute::Star),
        ("/a/*/b", InvalidRoute::Star),
        ("/%zz", InvalidRoute::Escape),
        ("/a%2", InvalidRoute::Escape),
        ("/%", InvalidRoute::Escape),
    ] {
        assert_eq!(text.parse::<Route>(), Err(expected), "{text}");
    }
}

fn any_route() -> impl Strategy<Value = Route> {
    let segment = prop_oneof!["[ab]".prop_map(Segment::Literal), Just(Segment::Parameter(String::new()))];
    (prop::collection::vec(segment, 0..4), any::<bool>()).prop_map(|(mut segments, wildcard)| {
        for (n, segment) in segments.iter_mut().enumerate() {
            if let Segment::Parameter(name) = segment {
                *name = format!("p{n}");
            }
        }
        Route { segments, wildcard }
    })
}

proptest! {
    #[test]
    fn a_route_reads_back_as_it_is_written(route in any_route()) {
        prop_assert_eq!(route.to_string().parse::<Route>().unwrap(), route);
    }

    #[test]
    fn the_order_of_insertion_does_not_matter_and_a_match_is_never_missed(
        routes in prop::collection::vec(any_route(), 0..8),
        path in "(/[abc]){0,5}/?",
    ) {
        let build = |routes: &mut dyn Iterator<Item = &Route>| {
            let mut table = RouteTable::new();
            for route in routes {
                let _ = table.insert(route.clone(), route.to_string());
            }
            table
        };
        let forwards = build(&mut routes.iter());
        let backwards = build(&mut routes.iter().rev());
        let found = forwards.find(&path).map(|(target, _)| target);
        prop_assert_eq!(found, backwards.find(&path).map(|(target, _)| target));
        prop_assert_eq!(found.is_some(), routes.iter().any(|r| r.matches(&path).is_some()));
        // Whatever else matches is at most as specific.
        if let Some(best) = found {
            let best: Route = best.parse().unwrap();
            for other in routes.iter().filter(|r| r.matches(&path).is_some()) {
                prop_assert!(best.specificity(other) != Ordering::Greater);
            }
        }
    }

    #[test]
    fn a_path_made_from_a_route_is_matched_by_it(route in any_route(), rest in "([ab](/[ab]){0,2})?") {
        let mut path = String::new();
        for segment in &route.segments {
            path.push('/');
            path.push_str(match segment {
                Segment::Literal(text) => text,
                Segment::Parameter(_) => "value",
            });
        }
        if route.wildcard || path.is_empty() {
            path.push('/');
        }
        if route.wildcard {
            path.push_str(&rest);
        }
        let params = route.matches(&path).unwrap();
        let parameters = route.segments.iter().filter(|s| matches!(s, Segment::Parameter(_))).count();
        prop_assert_eq!(params.named.len(), parameters);
        prop_assert_eq!(params.rest, route.wildcard.then_some(rest.as_str()));
    }

    #[test]
    fn any_text_is_a_route_or_an_error(text in "\\PC{0,24}", path in "\\PC{0,24}") {
        if let Ok(route) = text.parse::<Route>() {
            let _ = route.matches(&path);
        }
    }
}
