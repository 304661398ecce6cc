//! Images that are files of the controller.

use crate::{MIB, content, ended, sha256, store, wanted};
use images::{Settings, State};

#[test]
fn a_file_is_served_with_its_digest_and_no_other() {
    let directory = tempfile::tempdir().unwrap();
    let (image, path) = (content(1, 2 * MIB), directory.path().join("a.raw"));
    std::fs::write(&path, &image).unwrap();
    let store = store(Settings { directory: directory.path().into(), ..Settings::default() });
    let url = format!("file://{}", path.display());
    let asked = wanted(&url, sha256(&image));
    assert!(matches!(store.state(&asked), State::Waiting(_)), "before it was compared");
    let ready = ended(&store, &asked).expect("served");
    assert_eq!(ready.name, format!("file-sha256-{}", sha256(&image).value));
    assert!(store.offer(&ready).expect("an endpoint").url.ends_with(&ready.name));

    let other = content(2, 2 * MIB);
    let said = ended(&store, &wanted(&url, sha256(&other))).expect_err("another digest");
    assert_eq!(
        said,
        format!("the sha256 of {url} is {}, not {}", sha256(&image).value, sha256(&other).value)
    );
    // Changed since it was compared: compared again.
    std::fs::write(&path, &other).unwrap();
    ended(&store, &asked).expect_err("changed");
    ended(&store, &wanted(&url, sha256(&other))).expect("the other one now");
}

#[test]
fn a_file_elsewhere_is_refused_before_anything_is_done() {
    let all = tempfile::tempdir().unwrap();
    let directory = all.path().join("images");
    std::fs::create_dir(&directory).unwrap();
    std::fs::write(all.path().join("secret"), b"secret").unwrap();
    std::os::unix::fs::symlink("../secret", directory.join("link")).unwrap();
    let served = store(Settings { directory: directory.clone(), ..Settings::default() });
    for path in ["/etc/passwd".into(), directory.join("../secret"), directory.join("link")] {
        let asked = wanted(&format!("file://{}", path.display()), sha256(b"secret"));
        let said = served.check(&asked).expect_err("outside");
        assert!(said.contains("is not below [images] directory"), "{said}");
        assert!(matches!(served.state(&asked), State::Failed(_)));
    }
    let none = store(Settings::default());
    let said = none.check(&wanted("file:///etc/passwd", sha256(b""))).expect_err("no directory");
    assert!(said.contains("no [images] directory"), "{said}");
}
