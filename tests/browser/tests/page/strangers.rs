//! Texts of strangers are texts: a name, a description, an error of a machine runs no script, whatever it looks like.

use crate::{fail_cleaning, open};
use anyhow::Result;
use serde_json::json;

const EVIL: &str = "<img src=x onerror=\"alert(1)\"><script>alert(2)</script>'\"><svg onload=alert(3)>";

#[test]
fn what_strangers_write_is_shown_as_text() -> Result<()> {
    let (controller, browser) = open()?;
    let uuid = controller
        .enrol("n1", &["--description", EVIL, "--owner", EVIL, "--resource-class", "<b>large</b>"])?;
    controller.does(&["node", "set", "n1", "--extra", &format!("note={EVIL}")])?;
    controller.does(&["node", "manage", "n1", "--wait"])?;
    controller.does(&["node", "inspect", "n1", "--wait"])?;
    fail_cleaning(&controller, "n1", EVIL)?;
    controller.does(&["node", "maintenance", "set", "n1", "--reason", EVIL])?;
    let steps = json!([{"interface": "management", "step": EVIL, "args": {}, "order": 1}]).to_string();
    controller.does(&["runbook", "create", "CUSTOM_EVIL", "--steps", &steps])?;
    let page = browser.page()?;
    let places = ["", "/plan", "/certificates", "/inventory", "/history", "/settings"];
    let mut places: Vec<_> = places.iter().map(|part| format!("nodes/{uuid}{part}")).collect();
    places.extend(["nodes", "runbooks"].map(str::to_owned));
    for place in &places {
        page.open(&controller.url(place))?;
        page.until("document.querySelector('main section')", place)?;
        let made =
            page.eval("document.querySelectorAll('main img, main script, main svg, main b').length")?;
        assert_eq!(made, 0, "{place}");
    }
    page.open(&controller.url("nodes"))?;
    page.reads(EVIL)?;
    page.open(&controller.url(&format!("nodes/{uuid}")))?;
    page.reads(EVIL)?;
    page.is_clean()
}

/// A link of this page leads to no script and to no other site, whatever a filter or a route says.
#[test]
fn a_link_of_a_stranger_shows_nothing_of_theirs() -> Result<()> {
    let (controller, browser) = open()?;
    controller.enrol("n1", &[])?;
    let page = browser.page()?;
    for place in [
        "nodes?search=<img src=x onerror=alert(1)>",
        "nodes/%3Cimg%20src=x%3E",
        "javascript:alert(1)",
        "nodes?owner=%00%zz",
    ] {
        page.open(&controller.url(place))?;
        page.until("document.querySelector('h1')", place)?;
        let links = "[...document.links].every((one) => one.origin === location.origin)";
        assert_eq!(page.eval(links)?, true, "{place}");
        assert_eq!(page.eval("document.querySelectorAll('main img').length")?, 0, "{place}");
    }
    page.is_clean()
}

/// A change that an old page of another site sends by the user's browser is refused without the token of the session; and
/// the policy of the page lets no script in that is not the controller's.
#[test]
fn the_policy_stops_a_script_that_got_in_all_the_same() -> Result<()> {
    let (controller, browser) = open()?;
    let page = browser.page()?;
    page.open(&controller.url("nodes"))?;
    let thrown = page.eval(
        "(() => { try { document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=alert(1)>'); return 'taken'; } \
         catch (error) { return error.name; } })()",
    )?;
    assert_eq!(thrown, "TypeError", "HTML of a text");
    page.eval(
        "new Promise((done) => { const one = document.createElement('script'); one.src = 'data:text/javascript,alert(1)'; \
         one.onerror = done; one.onload = done; document.body.append(one); }).catch(() => {})",
    )
    .unwrap_or_default();
    assert!(page.is_clean().is_err(), "a violation is seen by these tests");
    Ok(())
}
