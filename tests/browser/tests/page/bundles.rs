//! Bundles, given to the controller and taken from it in the page.

use crate::{open, rows, text};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;

#[test]
fn a_bundle_is_added_replaced_and_removed_in_the_page() -> Result<()> {
    let (controller, browser) = open()?;
    let dir = tempfile::tempdir()?;
    let root = dir.path().join("root");
    fs::create_dir(&root)?;
    let build = |version: &str| -> Result<_> {
        fs::write(root.join("manager"), version)?;
        fs::set_permissions(root.join("manager"), PermissionsExt::from_mode(0o755))?;
        let manifest = json!({"format": 1, "name": "acme", "version": version, "vendor": "ACME", "entry": ["/manager"],
                              "protocol_versions": [1]});
        let (source, made) =
            (dir.path().join("manifest.json"), dir.path().join(format!("acme-{version}.bundle")));
        fs::write(&source, manifest.to_string())?;
        let words = [root.as_path(), &source, &made].map(|path| path.to_str().unwrap_or_default());
        controller.does(&[&["bundle", "build"][..], &words].concat())?;
        Ok(made)
    };
    let (one, two) = (build("1.0")?, build("2.0")?);
    let page = browser.page()?;
    page.open(&controller.url("bundles"))?;
    page.reads("No bundle: nodes have the managers of the ramdisk alone.")?;

    // What is no bundle is refused, and the dialog stays with the reason.
    let damaged = dir.path().join("damaged.bundle");
    fs::write(&damaged, &fs::read(&one)?[1..])?;
    page.click("Add a bundle")?;
    page.choose_file("File", &damaged)?;
    page.click("Add")?;
    page.until(
        "document.querySelector('dialog[open] .error')?.innerText.includes('The bundle is refused')",
        "why not",
    )?;
    page.choose_file("File", &one)?;
    page.fill("Scope", "driver:fake-hardware")?;
    page.click("Add")?;
    page.reads("Added acme 1.0 for driver:fake-hardware.")?;
    assert_eq!(versions(&controller.json(&["bundle", "list"])?), ["1.0"]);

    page.click("Add a bundle")?;
    page.choose_file("File", &two)?;
    page.fill("Scope", "driver:fake-hardware")?;
    page.click("Add")?;
    page.reads("Added acme 2.0 for driver:fake-hardware.")?;
    page.until("anneal.find('[aria-label=Bundles] td', '2.0')", "the new version")?;
    let kept = controller.json(&["bundle", "list"])?;
    let shown = rows(&page, "[aria-label=Bundles]")?;
    assert_eq!(shown.len(), 1, "one of a name in a scope: {shown:?}");
    let row = shown.first().context("a row")?;
    assert_eq!(row[..4], ["acme", "2.0", "ACME", "driver:fake-hardware"]);
    assert_eq!((row[5].as_str(), row[7].as_str()), ("not signed", &text(&kept[0]["digest"])[..12]));

    page.click("remove")?;
    page.fill("Type acme to go on", "acme")?;
    page.click("Remove")?;
    page.reads("No bundle: nodes have the managers of the ramdisk alone.")?;
    assert_eq!(controller.json(&["bundle", "list"])?, json!([]));
    page.is_clean()
}

fn versions(bundles: &Value) -> Vec<&str> {
    bundles.as_array().into_iter().flatten().map(|bundle| text(&bundle["version"])).collect()
}
