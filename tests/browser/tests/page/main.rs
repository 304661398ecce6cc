//! The page of a real controller in Debian's Chromium. Each test has a controller and a browser of its own.

mod access;
mod bundles;
mod connection;
mod first_use;
mod fleet;
mod keyboard;
mod login;
mod node;
mod open_pages;
mod other_pages;
mod plan;
mod progress;
mod pure;
mod rights;
mod screenshots;
mod size;
mod strangers;
mod verbs;

use anyhow::Result;
use browser::{Browser, Controller, Login, Page};
use serde_json::{Value, json};

/// A controller whose page asks for no login, and a browser.
fn open() -> Result<(Controller, Browser)> {
    Ok((Controller::start(Login::Open)?, Browser::start()?))
}

/// Logs in on the page of the login.
fn log_in(page: &Page<'_>, controller: &Controller, (user, password): (&str, &str)) -> Result<()> {
    page.open(&controller.url("nodes"))?;
    page.reads("Log in to Anneal")?;
    page.fill("User", user)?;
    page.fill("Password", password)?;
    page.click("Log in")?;
    page.reads("Needs you")
}

/// The texts of the cells of the first table in an element, row by row.
fn rows(page: &Page<'_>, within: &str) -> Result<Vec<Vec<String>>> {
    let cells = format!(
        "[...document.querySelectorAll({} + ' tbody tr')].map((row) => [...row.cells].map((cell) => anneal.text(cell)))",
        json!(within)
    );
    Ok(serde_json::from_value(page.eval(&cells)?)?)
}

/// The texts of all buttons that can be seen.
fn buttons(page: &Page<'_>) -> Result<Vec<String>> {
    let texts = "[...document.querySelectorAll('main button')].filter(anneal.isSeen).map(anneal.text)";
    Ok(serde_json::from_value(page.eval(texts)?)?)
}

/// A step that fails with this message.
fn fails(message: &str) -> String {
    json!([{"interface": "management", "step": "fake_fail", "args": {"message": message}}]).to_string()
}

/// Leaves a manageable node of fake-hardware in `clean failed`.
fn fail_cleaning(controller: &Controller, name: &str, message: &str) -> Result<()> {
    controller.does(&["node", "clean", name, "--clean-steps", &fails(message)])?;
    controller.reaches(name, "clean failed")
}

/// A text member.
fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
