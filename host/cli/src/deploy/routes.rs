//! The routes of all that a tenant has deployed.

use std::collections::BTreeMap;
use std::sync::Arc;

use nala_deploy::AppName;
use nala_manifest::routes::RouteTable;

use super::Loaded;
use crate::answer::Answering;
use crate::console::Help;

/// One table of them.
///
/// # Errors
/// Two applications answer the same paths.
pub(super) fn of(apps: &BTreeMap<AppName, Arc<Loaded>>) -> anyhow::Result<RouteTable<Answering>> {
    let mut table = RouteTable::new();
    for (app, loaded) in apps {
        for (route, answering) in &loaded.routes {
            if table.insert(route.clone(), answering.clone()).is_err() {
                // The first to have it is in the table.
                let has = |loaded: &Loaded| loaded.routes.iter().any(|(other, _)| other.is_same_as(route));
                let owner = apps.iter().find(|(_, loaded)| has(loaded)).map_or(app, |(owner, _)| owner);
                return Err(Help {
                    what: format!("the route {route} is answered by the application {owner} already"),
                    help: "choose another route, or remove that application".to_owned(),
                }
                .into());
            }
        }
    }
    Ok(table)
}
