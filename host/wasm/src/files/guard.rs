//! Only files and folders are opened.
//!
//! wasmtime opens whatever a path leads to. A FIFO without a writer would hold a
//! thread of the runtime's for blocking work until one comes, beyond the life of
//! the store, and as many requests as there are such threads would hold them all.
//! A device can do anything. A guest makes neither, but a folder of the host may
//! hold them, now or later; so each path is looked at before it is opened.

use wasmtime::component::{Accessor, Linker, Resource};
use wasmtime::{Result, StoreContextMut};
use wasmtime_wasi::filesystem::{Descriptor, WasiFilesystem, WasiFilesystemCtxView, WasiFilesystemView};
use wasmtime_wasi::p2::FsResult;
use wasmtime_wasi::p2::bindings::filesystem::types as p2;
use wasmtime_wasi::p3::bindings::filesystem::types as p3;
use wasmtime_wasi::p3::filesystem::FilesystemResult;

use p2::{Host as _, HostDescriptor as _};

use crate::store::StoreData;

/// As wasmtime names them in its linker. A test of a FIFO fails if it no longer
/// does.
const INTERFACES: [&str; 2] = ["wasi:filesystem/types@0.2.12", "wasi:filesystem/types@0.3.0"];
const OPEN: &str = "[method]descriptor.open-at";

type Opening2 = (Resource<Descriptor>, p2::PathFlags, String, p2::OpenFlags, p2::DescriptorFlags);
type Opening3 = (Resource<Descriptor>, p3::PathFlags, String, p3::OpenFlags, p3::DescriptorFlags);

/// Puts the guard before wasmtime's own, for which the linker must allow
/// shadowing.
pub(crate) fn add_to_linker(linker: &mut Linker<StoreData>) -> Result<()> {
    let [two, three] = INTERFACES;
    linker.instance(two)?.func_wrap_async(OPEN, |mut store: StoreContextMut<'_, StoreData>, opening: Opening2| {
        Box::new(async move {
            let mut files = store.data_mut().filesystem();
            let opened = match open2(&mut files, opening).await {
                Ok(opened) => Ok(opened),
                Err(error) => Err(files.convert_error_code(error)?),
            };
            Ok((opened,))
        })
    })?;
    linker.instance(three)?.func_wrap_concurrent(OPEN, |accessor: &Accessor<StoreData>, opening: Opening3| {
        Box::pin(async move {
            let files = accessor.with_getter::<WasiFilesystem>(StoreData::filesystem);
            let opened = match open3(&files, opening).await {
                Ok(opened) => Ok(opened),
                Err(error) => Err(error.downcast()?),
            };
            Ok((opened,))
        })
    })
}

async fn open2(files: &mut WasiFilesystemCtxView<'_>, opening: Opening2) -> FsResult<Resource<Descriptor>> {
    let (folder, path_flags, path, open_flags, flags) = opening;
    let again = Resource::new_borrow(folder.rep());
    // Where nothing is, opening says so, or makes a file.
    if let Ok(found) = files.stat_at(folder, path_flags, path.clone()).await {
        use p2::DescriptorType::{Directory, RegularFile, SymbolicLink};
        if !matches!(found.type_, Directory | RegularFile | SymbolicLink) {
            return Err(p2::ErrorCode::NotPermitted.into());
        }
    }
    files.open_at(again, path_flags, path, open_flags, flags).await
}

async fn open3(
    files: &Accessor<StoreData, WasiFilesystem>,
    opening: Opening3,
) -> FilesystemResult<Resource<Descriptor>> {
    use p3::HostDescriptorWithStore as Files;
    let (folder, path_flags, path, open_flags, flags) = opening;
    let again = Resource::new_borrow(folder.rep());
    if let Ok(found) = <WasiFilesystem as Files<StoreData>>::stat_at(files, folder, path_flags, path.clone()).await {
        use p3::DescriptorType::{Directory, RegularFile, SymbolicLink};
        if !matches!(found.type_, Directory | RegularFile | SymbolicLink) {
            return Err(p3::ErrorCode::NotPermitted.into());
        }
    }
    WasiFilesystem::open_at(files, again, path_flags, path, open_flags, flags).await
}
