//! The page without a mouse.

use crate::open;
use anyhow::Result;

#[test]
fn a_node_is_enrolled_and_cleaned_by_keys_alone() -> Result<()> {
    let (controller, browser) = open()?;
    let page = browser.page()?;
    page.open(&controller.url("nodes"))?;
    page.until("anneal.find('button', 'Enrol a node')", "the button")?;
    page.tab_to("Enrol a node")?;
    page.press("Enter")?;
    page.until("document.querySelector('dialog[open]')", "the dialog")?;
    // The focus is inside, at the first field, and stays inside.
    assert_eq!(page.eval("anneal.text(document.activeElement.labels[0])")?, "Driver");
    // A list takes the option whose name is typed.
    page.call(
        "Input.dispatchKeyEvent",
        serde_json::json!({ "type": "keyDown", "key": "f", "code": "KeyF", "text": "f" }),
    )?;
    page.until("document.activeElement.value === 'fake-hardware'", "the driver by its first letter")?;
    page.tab_to("Name")?;
    page.enter("n1")?;
    page.tab_to("Enrol")?;
    page.press("Enter")?;
    page.until("document.querySelector('h1').innerText === 'n1'", "the node")?;
    page.until("!document.querySelector('dialog[open]')", "the dialog closed")?;

    say(&page, "manage", false)?;
    controller.reaches("n1", "manageable")?;
    page.until("anneal.find('.actions button', 'provide')", "the verbs of the new state")?;
    page.tab_to("provide")?;
    page.press("Enter")?;
    page.until("document.querySelector('dialog[open]')", "the question")?;
    page.press("Escape")?;
    page.until("!document.querySelector('dialog[open]')", "Escape closes it")?;
    assert_eq!(page.eval("anneal.text(document.activeElement)")?, "provide", "the focus is where it was");
    say(&page, "provide", true)?;
    controller.reaches("n1", "available")?;
    page.is_clean()
}

/// Says a verb; `typed`: its name is asked for.
fn say(page: &browser::Page<'_>, verb: &str, typed: bool) -> Result<()> {
    page.until(&format!("anneal.find('.actions button', '{verb}')"), verb)?;
    if page.eval("anneal.text(document.activeElement)")? != verb {
        page.tab_to(verb)?;
    }
    page.press("Space")?;
    page.until("document.querySelector('dialog[open]')", "the question")?;
    if typed {
        if page.eval("document.activeElement.id")? != "typed-name" {
            page.tab_to("Type n1 to go on")?;
        }
        page.enter("n1")?;
        page.press("Enter")?;
    } else {
        page.tab_to(verb)?;
        page.press("Enter")?;
    }
    page.until("!document.querySelector('dialog[open]')", "the dialog closed")?;
    Ok(())
}

#[test]
fn the_way_to_the_content_is_one_key() -> Result<()> {
    let (controller, browser) = open()?;
    controller.enrol("n1", &[])?;
    let page = browser.page()?;
    page.open(&controller.url("nodes"))?;
    page.until("document.querySelector('main tbody')", "the nodes")?;
    page.eval("document.activeElement.blur()")?;
    page.reload()?;
    page.until("document.querySelector('main tbody')", "the nodes")?;
    page.eval("document.querySelector('.skip').focus()")?;
    let (top, left) = (
        page.eval("document.querySelector('.skip').getBoundingClientRect().top")?,
        page.eval("document.querySelector('.skip').getBoundingClientRect().left")?,
    );
    assert!(top.as_f64() >= Some(0.0) && left.as_f64() >= Some(0.0), "what has the focus is seen");
    page.press("Enter")?;
    page.until("document.activeElement.id === 'main'", "the focus in the content")?;
    assert_eq!(page.eval("location.hash")?, "#/nodes");
    page.is_clean()
}
