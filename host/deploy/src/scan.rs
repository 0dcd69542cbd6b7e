//! A state folder as it is found: what it holds is read and checked, and what a
//! process that was killed left half done is cleared away.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::Path;
use std::str::FromStr;

use crate::digest::Digest;
use crate::disk::Disk;
use crate::error::Error;
use crate::index::{App, Index};
use crate::layout::Layout;
use crate::manifest::Version;
use crate::name::{AppName, TenantName};
use crate::record::{Record, VersionNumber};

/// The line that the file `format` holds.
const FORMAT: &str = "nala state folder, version 1\n";

/// Makes an empty folder into a state folder, or checks that it is one.
pub(crate) fn prepare(layout: &Layout, disk: &dyn Disk) -> Result<(), Error> {
    let format = layout.format();
    match fs::read(&format) {
        Ok(found) if found == FORMAT.as_bytes() => {}
        // A kill can leave the file empty or without its end, but nothing else beside it.
        Ok(found) if FORMAT.as_bytes().starts_with(&found) && !exists(&layout.tenants())? => {
            disk.remove_file(&format).map_err(Error::io(&format))?;
            write_format(layout, disk)?;
        }
        Ok(found) => {
            let found = String::from_utf8_lossy(found.get(..80).unwrap_or(&found)).escape_debug().to_string();
            return Err(Error::Format { folder: layout.root().to_owned(), found });
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let strangers = names(layout.root())?.into_iter().any(|name| name != "lock");
            if strangers {
                let found = "nothing, as there is none, and the folder is not empty".to_owned();
                return Err(Error::Format { folder: layout.root().to_owned(), found });
            }
            write_format(layout, disk)?;
        }
        Err(error) => return Err(Error::io(&format)(error)),
    }
    for folder in [layout.drafts(), layout.algorithms(), layout.blobs(), layout.all_claims(), layout.tenants()] {
        make_dir(&folder, disk)?;
    }
    Ok(())
}

fn write_format(layout: &Layout, disk: &dyn Disk) -> Result<(), Error> {
    let path = layout.format();
    let mut file = disk.create(&path).map_err(Error::io(&path))?;
    file.write_all(FORMAT.as_bytes()).and_then(|()| file.sync()).map_err(Error::io(&path))?;
    disk.sync_dir(layout.root()).map_err(Error::io(layout.root()))
}

/// Makes a folder, and makes it safe, if it is not there.
pub(crate) fn make_dir(path: &Path, disk: &dyn Disk) -> Result<(), Error> {
    match disk.create_dir(path) {
        // One that is there may have been made right before a kill.
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => {}
        Err(error) => return Err(Error::io(path)(error)),
    }
    let parent = path.parent().unwrap_or(path);
    disk.sync_dir(parent).map_err(Error::io(parent))
}

/// Reads all that is there, and clears away what nothing names.
pub(crate) fn scan(layout: &Layout, disk: &dyn Disk) -> Result<Index, Error> {
    for name in names(&layout.drafts())? {
        remove_file(&layout.drafts().join(name), disk)?;
    }
    let mut index = Index::default();
    for name in names(&layout.blobs())? {
        if let Some(digest) = name.to_str().and_then(Digest::from_hex) {
            let path = layout.blob(&digest);
            index.blobs.insert(digest, fs::metadata(&path).map_err(Error::io(&path))?.len());
        }
    }
    for tenant in parsed::<TenantName>(&layout.tenants())? {
        for app in parsed::<AppName>(&layout.tenant(&tenant))? {
            if let Some(found) = read_app(layout, disk, &tenant, &app, &index.blobs)? {
                index.tenants.entry(tenant.clone()).or_default().apps.insert(app, found);
            }
        }
    }
    for tenant in parsed::<TenantName>(&layout.all_claims())? {
        read_claims(layout, disk, tenant, &mut index)?;
    }
    for (digest, _) in index.unnamed() {
        remove_file(&layout.blob(&digest), disk)?;
        index.blobs.remove(&digest);
    }
    settle(layout, disk, &index)?;
    Ok(index)
}

/// Makes the names that were found safe: a process that was killed may not have
/// come to that, and what follows is built on them.
fn settle(layout: &Layout, disk: &dyn Disk, index: &Index) -> Result<(), Error> {
    let mut folders = vec![layout.blobs(), layout.all_claims(), layout.tenants()];
    for (tenant, has) in &index.tenants {
        if !has.claims.is_empty() {
            folders.push(layout.claims(tenant));
        }
        if !has.apps.is_empty() {
            folders.push(layout.tenant(tenant));
        }
        folders.extend(has.apps.keys().flat_map(|app| [layout.app(tenant, app), layout.versions(tenant, app)]));
    }
    folders.iter().try_for_each(|folder| disk.sync_dir(folder).map_err(Error::io(folder)))
}

/// Reads an application; one without a record is the rest of one that was
/// removed, or the beginning of one that was never there.
fn read_app(
    layout: &Layout,
    disk: &dyn Disk,
    tenant: &TenantName,
    app: &AppName,
    blobs: &BTreeMap<Digest, u64>,
) -> Result<Option<App>, Error> {
    let path = layout.current(tenant, app);
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            clear_app(layout, disk, tenant, app)?;
            return Ok(None);
        }
        Err(error) => return Err(Error::io(&path)(error)),
    };
    let record = Record::parse(&bytes).map_err(|why| Error::damaged(&path, why))?;
    let mut versions = BTreeMap::new();
    for number in &record.kept {
        let version = read_version(layout, tenant, app, *number)?;
        for component in version.components.values() {
            if blobs.get(&component.digest) != Some(&component.bytes) {
                let why =
                    format!("this component of {app} of {tenant} is not there with its {} bytes", component.bytes);
                return Err(Error::damaged(&layout.blob(&component.digest), why));
            }
        }
        versions.insert(*number, version.digests());
    }
    let folder = layout.versions(tenant, app);
    for name in names(&folder)? {
        let number = name.to_str().and_then(|name| name.strip_suffix(".json")?.parse::<VersionNumber>().ok());
        if number.is_some_and(|number| !record.kept.contains(&number)) {
            remove_file(&folder.join(name), disk)?;
        }
    }
    Ok(Some(App { record, versions }))
}

/// Reads what a version is made of.
pub(crate) fn read_version(
    layout: &Layout,
    tenant: &TenantName,
    app: &AppName,
    number: VersionNumber,
) -> Result<Version, Error> {
    let path = layout.version(tenant, app, number);
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(Error::damaged(&path, "the record names this version, and it is not there"));
        }
        Err(error) => return Err(Error::io(&path)(error)),
    };
    let version: Version = serde_json::from_slice(&bytes).map_err(|error| Error::damaged(&path, error))?;
    if version.number != number {
        return Err(Error::damaged(&path, format!("it says that it is version {}", version.number)));
    }
    Ok(version)
}

/// Removes what an application without a record has left.
pub(crate) fn clear_app(layout: &Layout, disk: &dyn Disk, tenant: &TenantName, app: &AppName) -> Result<(), Error> {
    let versions = layout.versions(tenant, app);
    if exists(&versions)? {
        for name in names(&versions)? {
            remove_file(&versions.join(name), disk)?;
        }
        disk.remove_dir(&versions).map_err(Error::io(&versions))?;
    }
    let folder = layout.app(tenant, app);
    disk.remove_dir(&folder).map_err(Error::io(&folder))
}

/// Reads a tenant's claims; one whose component is gone is the rest of one that
/// was given up.
fn read_claims(layout: &Layout, disk: &dyn Disk, tenant: TenantName, index: &mut Index) -> Result<(), Error> {
    let mut claims = BTreeMap::new();
    for name in names(&layout.claims(&tenant))? {
        let path = layout.claims(&tenant).join(&name);
        match name.to_str().and_then(Digest::from_hex) {
            Some(digest) if index.blobs.contains_key(&digest) => {
                let put = fs::metadata(&path).and_then(|metadata| metadata.modified()).map_err(Error::io(&path))?;
                claims.insert(digest, put);
            }
            Some(_) => remove_file(&path, disk)?,
            None => {}
        }
    }
    if !claims.is_empty() {
        index.tenants.entry(tenant).or_default().claims = claims;
    }
    Ok(())
}

fn remove_file(path: &Path, disk: &dyn Disk) -> Result<(), Error> {
    disk.remove_file(path).map_err(Error::io(path))
}

fn exists(path: &Path) -> Result<bool, Error> {
    path.try_exists().map_err(Error::io(path))
}

/// The names in a folder.
fn names(folder: &Path) -> Result<Vec<OsString>, Error> {
    let entries = fs::read_dir(folder).map_err(Error::io(folder))?;
    entries.map(|entry| entry.map(|entry| entry.file_name()).map_err(Error::io(folder))).collect()
}

/// The same, each of which has to be a name by our rule.
fn parsed<T: FromStr<Err: ToString>>(folder: &Path) -> Result<Vec<T>, Error> {
    let parse = |name: OsString| {
        let text = name.to_string_lossy();
        text.parse().map_err(|error: T::Err| Error::damaged(&folder.join(&name), error))
    };
    names(folder)?.into_iter().map(parse).collect()
}
