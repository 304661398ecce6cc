//! The files that `file://` may name: below one directory, also by way of links, and regular.

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, open, openat2};
use rustix::io::Errno;
use std::fs::File;
use std::path::{Component, Path};

/// How often the kernel may say that a name changed while it was followed.
const TRIES: usize = 8;

/// Opens `path` if it is a regular file below `directory`.
///
/// # Errors
/// Why not, in words that follow the URL.
pub(crate) fn open_below(directory: &Path, path: &Path) -> Result<File, String> {
    if directory.as_os_str().is_empty() {
        return Err("cannot be deployed: the controller has no [images] directory".to_owned());
    }
    let outside = || format!("is not below [images] directory {}", directory.display());
    let below = path.strip_prefix(directory).map_err(|_| outside())?;
    let plain = below.components().all(|part| matches!(part, Component::Normal(_)));
    if !plain || below.as_os_str().is_empty() {
        return Err(outside());
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = open(directory, flags, Mode::empty());
    let root = root.map_err(|error| format!("cannot be read: [images] directory: {error}"))?;
    // A FIFO without a writer would be waited for, and a terminal would become ours.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let mut opened = Err(Errno::AGAIN);
    for _ in 0..TRIES {
        opened = openat2(&root, below, flags, Mode::empty(), resolve);
        if !matches!(opened, Err(Errno::AGAIN)) {
            break;
        }
    }
    let file = File::from(opened.map_err(|error| match error {
        Errno::XDEV => outside(),
        Errno::NOENT => "is not there".to_owned(),
        error => format!("cannot be read: {error}"),
    })?);
    // Asked of the open file: the name may have become another's meanwhile.
    match file.metadata() {
        Ok(found) if found.is_file() => Ok(file),
        Ok(_) => Err("is not a regular file".to_owned()),
        Err(error) => Err(format!("cannot be read: {error}")),
    }
}

/// The bytes that are free on the file system of `directory`.
pub(crate) fn free_bytes(directory: &Path) -> std::io::Result<u64> {
    let root = rustix::fs::openat(CWD, directory, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let found = rustix::fs::fstatvfs(root)?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    #[test]
    fn only_regular_files_below_the_directory_are_opened() {
        let all = tempfile::tempdir().unwrap();
        let dir = all.path().join("images");
        std::fs::create_dir_all(dir.join("sub")).unwrap();
        std::fs::create_dir_all(all.path().join("images-2")).unwrap();
        std::fs::write(dir.join("a.raw"), b"a").unwrap();
        std::fs::write(dir.join("sub/b.raw"), b"b").unwrap();
        std::fs::write(all.path().join("secret"), b"s").unwrap();
        std::fs::write(all.path().join("images-2/c"), b"c").unwrap();
        symlink("sub/b.raw", dir.join("inside")).unwrap();
        symlink("../secret", dir.join("out")).unwrap();
        symlink(all.path().join("secret"), dir.join("absolute")).unwrap();
        symlink("..", dir.join("up")).unwrap();
        symlink("/proc/self/fd/0", dir.join("magic")).unwrap();
        let fifo = Mode::RUSR | Mode::WUSR;
        rustix::fs::mknodat(CWD, dir.join("fifo"), rustix::fs::FileType::Fifo, fifo, 0).unwrap();
        let _socket = UnixListener::bind(dir.join("socket")).unwrap();

        for inside in ["a.raw", "sub/b.raw", "inside"] {
            assert!(open_below(&dir, &dir.join(inside)).is_ok(), "{inside}");
        }
        for (path, why) in [
            (dir.join("../secret"), "not below"),
            (dir.join("sub/../../secret"), "not below"),
            (dir.join("out"), "not below"),
            (dir.join("absolute"), "not below"),
            (dir.join("up/secret"), "not below"),
            (dir.join("magic"), ""),
            (all.path().join("images-2/c"), "not below"),
            ("/etc/passwd".into(), "not below"),
            (dir.clone(), "not below"),
            (dir.join("sub"), "not a regular file"),
            (dir.join("fifo"), "not a regular file"),
            (dir.join("socket"), ""),
            (dir.join("none"), "not there"),
        ] {
            let said = open_below(&dir, &path).expect_err(&path.display().to_string());
            assert!(said.contains(why), "{}: {said}", path.display());
        }
        let devices = Path::new("/dev");
        assert_eq!(open_below(devices, Path::new("/dev/null")).unwrap_err(), "is not a regular file");
        assert!(open_below(Path::new(""), Path::new("/a")).unwrap_err().contains("[images] directory"));
    }
}
