//! What the page computes by itself is what the command line computes: the same values as in its tests.

use crate::open;
use anyhow::Result;
use serde_json::{Value, json};

#[test]
fn numbers_times_and_neighbours_are_those_of_the_command_line() -> Result<()> {
    let (controller, browser) = open()?;
    let page = browser.page()?;
    page.open(&controller.url("nodes"))?;
    let ask = |module: &str, expression: &str| -> Result<Value> {
        page.eval(&format!("import('/ui/{module}').then((of) => {expression})"))
    };
    // cli/src/output.rs; JavaScript has no whole numbers above 2^53.
    let counts = ask("format.js", "[0, 1023, 1024, 1536 * 1024 ** 3, 1024 ** 5].map(of.bytes)")?;
    assert_eq!(counts, json!(["0 B", "1023 B", "1.0 KiB", "1.5 TiB", "1.0 PiB"]));
    let times = ask("format.js", "[0, 59, 65, 7620, 273600].map(of.duration)")?;
    assert_eq!(times, json!(["0s", "59s", "1m05s", "2h07m", "3d04h"]));
    let now = "new Date('2026-11-26T10:00:00Z').getTime()";
    let distances = ask(
        "format.js",
        &format!("['2026-11-26T09:56:55Z', '2026-11-26T10:00:42Z'].map((at) => of.distance(at, {now}))"),
    )?;
    assert_eq!(distances, json!(["3m05s ago", "in 42s"]));

    // cli/src/node/inventory/lldp.rs
    let tlvs = json!([
        [1, "04020000000001"],
        [2, "05457468312f37"],
        [3, "0078"],
        [4, "7570206c696e6b"],
        [5, "6c6561662d33"],
        [8, "0501c0000201020000000100"],
        [127, "0080c2010064"],
        [127, "00120f01"],
        [99, "xx"],
        "nonsense",
        [5]
    ]);
    let found = ask("node/lldp.js", &format!("of.neighbour({tlvs})"))?;
    let neighbour = json!({"system": "leaf-3", "chassis": "02:00:00:00:00:01", "port": "Eth1/7", "description": "up link",
                           "vlan": 100, "address": "192.0.2.1"});
    assert_eq!(found, neighbour);
    for nothing in [json!([]), json!(null), json!([[0, ""]]), json!([[1, "zz"]])] {
        assert_eq!(ask("node/lldp.js", &format!("of.neighbour({nothing})"))?, Value::Null, "{nothing}");
    }

    // Each state is at one place of the way of a node, and its name is there.
    for state in [
        "enroll",
        "clean hold",
        "wait call-back",
        "service failed",
        "rescue",
        "unrescuing",
        "error",
        "adopting",
    ] {
        let here = ask(
            "states.js",
            &format!("of.way('{state}').filter((one) => one.here).map((one) => one.label)"),
        )?;
        assert_eq!(here, json!([state]));
    }
    page.is_clean()
}

/// What a description may say: no listener as a text, no address of another site, no attribute that runs something.
#[test]
fn a_description_sets_nothing_that_runs() -> Result<()> {
    let (controller, browser) = open()?;
    let page = browser.page()?;
    page.open(&controller.url("nodes"))?;
    let drawn = page.eval(
        "import('/ui/dom.js').then(({ h, patch }) => { const host = document.createElement('div'); \
         const links = ['#/nodes', '/v1/x', '//evil/', 'https://evil/', 'javascript:alert(1)', '/\\\\evil']; \
         patch(host, links.map((href) => h('a', { href }, '<b>text</b>'))); \
         return [...host.children].map((one) => [one.getAttribute('href'), one.children.length, one.textContent]); })",
    )?;
    let text = "<b>text</b>";
    let expected = json!([
        ["#/nodes", 0, text],
        ["/v1/x", 0, text],
        [null, 0, text],
        [null, 0, text],
        [null, 0, text],
        [null, 0, text]
    ]);
    assert_eq!(drawn, expected);
    for attribute in ["srcdoc", "src", "style", "formaction", "innerHTML"] {
        let thrown = page.eval(&format!(
            "import('/ui/dom.js').then(({{ h, patch }}) => {{ try {{ patch(document.createElement('div'), h('p', {{ {attribute}: 'x' }})); \
             return 'set'; }} catch (error) {{ return error.message; }} }})"
        ))?;
        assert_eq!(thrown, format!("attribute {attribute} is not one that this page sets"));
    }
    page.is_clean()
}
