//! All nodes: what needs an operator, counts, filters, pages.

use crate::{fail_cleaning, open, rows};
use anyhow::Result;
use serde_json::{Value, json};

/// Names in the table of nodes, in their order.
const NAMES: &str = "[...document.querySelectorAll('main tbody th')].map(anneal.text)";

#[test]
fn the_list_shows_what_the_api_says_and_filters_are_links() -> Result<()> {
    let (controller, browser) = open()?;
    for (name, owner, class) in
        [("n1", "project-1", "large"), ("n2", "project-2", "large"), ("n3", "project-1", "small")]
    {
        controller.enrol(name, &["--owner", owner, "--resource-class", class])?;
    }
    controller.does(&["node", "manage", "n1", "--wait"])?;
    let page = browser.page()?;
    page.open(&controller.url("nodes"))?;
    page.reads("3 nodes")?;
    page.until(&format!("{NAMES}.length === 3"), "three rows")?;
    for row in rows(&page, "main")? {
        let node = controller.json(&["node", "show", &row[0]])?;
        let shown =
            ["name", "provision_state", "owner", "resource_class", "conductor"].map(|key| node[key].clone());
        let read = [0, 1, 3, 4, 5].map(|place: usize| Value::from(row[place].as_str()));
        assert_eq!(read, shown, "{row:?}");
        assert!(row[6].contains("UTC") && row[6].contains("ago"), "a time has its age: {row:?}");
    }

    page.click("project-1")?;
    page.until(&format!("{NAMES}.join() === 'n1,n3'"), "the nodes of project-1")?;
    page.click("small")?;
    page.until(&format!("{NAMES}.join() === 'n3'"), "those of them that are small")?;
    let link = page.eval("location.href")?;
    let tab = page.tab()?;
    tab.open(link.as_str().unwrap_or_default())?;
    tab.until(&format!("{NAMES}.join() === 'n3'"), "the same in another tab")?;
    page.eval("history.back()")?;
    page.until(&format!("{NAMES}.join() === 'n1,n3'"), "the filter before")?;

    page.click("remove all")?;
    page.fill("Name or UUID has", "N2")?;
    page.press("Enter")?;
    page.until(&format!("{NAMES}.join() === 'n2'"), "the node that was searched")?;
    page.is_clean()
}

#[test]
fn a_node_that_needs_an_operator_comes_first_with_the_way_out() -> Result<()> {
    let (controller, browser) = open()?;
    controller.enrol("good", &[])?;
    controller.enrol("bad", &[])?;
    let page = browser.page()?;
    page.open(&controller.url("nodes"))?;
    page.reads("No node needs you.")?;
    controller.does(&["node", "manage", "bad", "--wait"])?;
    fail_cleaning(&controller, "bad", "the fan is out of order")?;
    // The page hears of it by itself.
    page.reads("1 failed")?;
    page.reads("the fan is out of order")?;
    page.shows(".needs > li:first-child", &["bad", "clean failed", "ago"])?;
    assert!(!page.text(".needs")?.contains("good"));

    page.click("provide")?;
    page.reads("Type bad to go on")?;
    page.fill("Type bad to go on", "bad")?;
    page.click("provide")?;
    controller.reaches("bad", "available")?;
    page.reads("No node needs you.")?;
    page.is_clean()
}

#[test]
fn many_nodes_are_shown_in_pages() -> Result<()> {
    let (controller, browser) = open()?;
    // Names in the order of the list.
    let names: Vec<_> = (0..103).map(|number| format!("n{number:03}")).collect();
    let script =
        names.iter().map(|name| format!("post({})", json!({"driver": "fake-hardware", "name": name})));
    let page = browser.page()?;
    page.open(&controller.url("nodes"))?;
    page.eval(&format!(
        "(async () => {{ const post = (body) => fetch('/v1/nodes', {{ method: 'POST', body: JSON.stringify(body), headers: \
         {{ 'Content-Type': 'application/json', 'X-OpenStack-Ironic-API-Version': '1.81' }} }}); await Promise.all([{}]); }})()",
        script.collect::<Vec<_>>().join(",")
    ))?;
    page.reads("103 nodes")?;
    page.until(&format!("{NAMES}.length === 100"), "a page of a hundred")?;
    page.click("Next page")?;
    page.until(&format!("{NAMES}.join() === 'n100,n101,n102'"), "the rest")?;
    page.until("!anneal.find('button, a', 'Next page')", "no page after the last")?;
    page.click("First page")?;
    page.until(&format!("{NAMES}[0] === 'n000'"), "the first page")?;
    page.is_clean()
}
