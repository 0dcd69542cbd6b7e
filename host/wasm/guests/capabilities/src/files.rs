//! Operations on files, by descriptors: nothing is put right before the host sees
//! it.

use wasip2::filesystem::preopens::get_directories;
use wasip2::filesystem::types::{Descriptor, DescriptorFlags, ErrorCode, OpenFlags, PathFlags};

/// `OPERATION&FOLDER&ARGUMENT…`, where the folder is named as it is granted.
pub(crate) fn operate(query: &str) -> String {
    let parts: Vec<&str> = query.split('&').collect();
    let folder = |name: &str| get_directories().into_iter().find(|(_, place)| place == name).map(|(folder, _)| folder);
    let result = match parts.as_slice() {
        ["folders"] => return format!("{:?}", get_directories().into_iter().map(|(_, name)| name).collect::<Vec<_>>()),
        [operation, place, arguments @ ..] => {
            let Some(folder) = folder(place) else { return format!("no folder {place}") };
            match (*operation, arguments) {
                ("read", [path]) => read(&folder, PathFlags::SYMLINK_FOLLOW, path),
                ("read-link", [path]) => read(&folder, PathFlags::empty(), path),
                ("write", [path, text]) => write(&folder, path, text),
                ("make", [path]) => folder.create_directory_at(path).map(done),
                ("remove", [path]) => folder.unlink_file_at(path).map(done),
                ("size", [path, size]) => size_of(&folder, path, size.parse().unwrap_or(0)),
                ("stat", [path]) => folder
                    .stat_at(PathFlags::SYMLINK_FOLLOW, path)
                    .map(|stat| format!("{:?} {}", stat.type_, stat.size)),
                ("link", [to, path]) => folder.symlink_at(to, path).map(done),
                ("list", []) => list(&folder),
                ("touch", [path]) => {
                    use wasip2::filesystem::types::NewTimestamp::Now;
                    folder.set_times_at(PathFlags::SYMLINK_FOLLOW, path, Now, Now).map(done)
                }
                ("rename" | "hard-link", [path, other, new]) => {
                    let Some(other) = get_directories().into_iter().find(|(_, name)| name == other) else {
                        return format!("no folder {other}");
                    };
                    match *operation {
                        "rename" => folder.rename_at(path, &other.0, new).map(done),
                        _ => folder.link_at(PathFlags::empty(), path, &other.0, new).map(done),
                    }
                }
                other => return format!("no operation {other:?}"),
            }
        }
        other => return format!("no operation {other:?}"),
    };
    result.unwrap_or_else(|error| format!("error {}", error.name()))
}

fn done(_: ()) -> String {
    "done".to_owned()
}

fn read(folder: &Descriptor, follow: PathFlags, path: &str) -> Result<String, ErrorCode> {
    let file = folder.open_at(follow, path, OpenFlags::empty(), DescriptorFlags::READ)?;
    let (bytes, _) = file.read(1 << 40, 0)?;
    Ok(format!("{} {}", bytes.len(), String::from_utf8_lossy(&bytes[..bytes.len().min(20)])))
}

fn write(folder: &Descriptor, path: &str, text: &str) -> Result<String, ErrorCode> {
    let flags = OpenFlags::CREATE | OpenFlags::TRUNCATE;
    let file = folder.open_at(PathFlags::SYMLINK_FOLLOW, path, flags, DescriptorFlags::WRITE)?;
    file.write(text.as_bytes(), 0).map(|n| format!("wrote {n}"))
}

fn size_of(folder: &Descriptor, path: &str, size: u64) -> Result<String, ErrorCode> {
    let file = folder.open_at(PathFlags::empty(), path, OpenFlags::empty(), DescriptorFlags::WRITE)?;
    file.set_size(size).map(done)
}

fn list(folder: &Descriptor) -> Result<String, ErrorCode> {
    let entries = folder.read_directory()?;
    let mut names = Vec::new();
    while let Some(entry) = entries.read_directory_entry()? {
        names.push(entry.name);
    }
    names.sort();
    Ok(names.join(" "))
}
