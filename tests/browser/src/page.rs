//! A page, as a person uses it: by the mouse, by the keyboard, by what can be read.

use crate::browser::Browser;
use anyhow::{Context, Result, bail, ensure};
use base64::Engine;
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};

const FIND: &str = include_str!("find.js");
/// How long a test waits for what it expects: the machine may be busy with other tests.
const LIMIT: Duration = Duration::from_secs(45);
const LOOK: Duration = Duration::from_millis(40);
/// What can be clicked.
const CLICKABLE: &str = "button, a, summary";

/// A page of a browser.
pub struct Page<'a> {
    browser: &'a Browser,
    context: Value,
    session: String,
}

impl<'a> Page<'a> {
    pub(crate) fn of(browser: &'a Browser, context: Value, session: String) -> Result<Self> {
        let page = Self { browser, context, session };
        for domain in ["Page", "Runtime", "Log", "Network"] {
            page.call(&format!("{domain}.enable"), json!({}))?;
        }
        page.call("Page.addScriptToEvaluateOnNewDocument", json!({ "source": FIND }))?;
        page.size(1280, 900)?;
        Ok(page)
    }

    /// Another tab of the same user.
    ///
    /// # Errors
    /// When the browser has ended.
    pub fn tab(&self) -> Result<Page<'a>> {
        self.browser.page_in(&self.context)
    }

    /// A method of the DevTools protocol.
    ///
    /// # Errors
    /// When it fails.
    pub fn call(&self, method: &str, params: Value) -> Result<Value> {
        self.browser.call(Some(&self.session), method, params)
    }

    /// Goes to a URL, and waits until the document is loaded.
    ///
    /// # Errors
    /// When it cannot be loaded.
    pub fn open(&self, url: &str) -> Result<()> {
        let gone = self.call("Page.navigate", json!({ "url": url }))?;
        ensure!(gone["errorText"].is_null(), "{url}: {}", gone["errorText"]);
        self.until("document.readyState === 'complete' && document.querySelector('h1')", url).map(drop)
    }

    /// Loads it anew.
    ///
    /// # Errors
    /// When it cannot be loaded.
    pub fn reload(&self) -> Result<()> {
        self.eval("globalThis.isOld = true")?;
        self.call("Page.reload", json!({}))?;
        self.until("!globalThis.isOld && document.querySelector('h1')", "the page loaded anew").map(drop)
    }

    /// The value of an expression, or of the promise that it is.
    ///
    /// # Errors
    /// When it throws.
    pub fn eval(&self, expression: &str) -> Result<Value> {
        let params = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let answer = self.call("Runtime.evaluate", params)?;
        let thrown = &answer["exceptionDetails"];
        ensure!(thrown.is_null(), "{expression}: {} {}", thrown["text"], thrown["exception"]["description"]);
        Ok(answer["result"]["value"].clone())
    }

    /// Waits until an expression is true, and gives its value.
    ///
    /// # Errors
    /// When it is not true in time; the error has the text of the page.
    pub fn until(&self, expression: &str, what: &str) -> Result<Value> {
        let begun = Instant::now();
        // An element has no value that could be sent.
        let asked = format!("((value) => value instanceof Node || value)({expression})");
        loop {
            // While a document is replaced, what is in it cannot be asked.
            let value = self.eval(&asked);
            match value {
                Ok(value) if is_true(&value) => return Ok(value),
                _ if begun.elapsed() < LIMIT => std::thread::sleep(LOOK),
                Ok(_) => {
                    bail!("{what}: not within {} s. The page has:\n{}", LIMIT.as_secs(), self.text("body")?)
                }
                Err(error) => return Err(error.context(what.to_owned())),
            }
        }
    }

    /// The text that can be read in the first element of a selector.
    ///
    /// # Errors
    /// When the page is gone.
    pub fn text(&self, selector: &str) -> Result<String> {
        let text = self.eval(&format!("document.querySelector({})?.innerText ?? ''", json!(selector)))?;
        Ok(text.as_str().unwrap_or_default().to_owned())
    }

    /// Waits until a text can be read in the page.
    ///
    /// # Errors
    /// When it cannot be read in time.
    pub fn reads(&self, text: &str) -> Result<()> {
        let seen = format!("document.body.innerText.replace(/\\s+/g, ' ').includes({})", json!(text));
        self.until(&seen, text).map(drop)
    }

    /// Waits until the first element of a selector has all of these texts.
    ///
    /// # Errors
    /// When it does not have them in time.
    pub fn shows(&self, selector: &str, texts: &[&str]) -> Result<()> {
        let element = format!("document.querySelector({})", json!(selector));
        let seen = format!("{}.every((text) => {element}?.innerText.includes(text))", json!(texts));
        self.until(&seen, &format!("{texts:?} in {selector}")).map(drop)
    }

    /// Waits until a text can be read in the page no more.
    ///
    /// # Errors
    /// When it can still be read.
    pub fn reads_no(&self, text: &str) -> Result<()> {
        let gone = format!("!document.body.innerText.replace(/\\s+/g, ' ').includes({})", json!(text));
        self.until(&gone, &format!("{text:?} gone")).map(drop)
    }

    /// Clicks on a button or link with this text, in the open dialog if there is one.
    ///
    /// # Errors
    /// When there is none in time that can be clicked.
    pub fn click(&self, text: &str) -> Result<()> {
        self.click_at(&format!("anneal.find({}, {})", json!(CLICKABLE), json!(text)), text)
    }

    /// Clicks on the element that an expression gives, again if the page moved away below the click.
    ///
    /// # Errors
    /// When it cannot be clicked in time.
    pub fn click_at(&self, element: &str, what: &str) -> Result<()> {
        let begun = Instant::now();
        loop {
            let at =
                self.until(&format!("anneal.aim({element})"), &format!("a place to click on {what:?}"))?;
            for kind in ["mousePressed", "mouseReleased"] {
                let params =
                    json!({ "type": kind, "x": at["x"], "y": at["y"], "button": "left", "clickCount": 1 });
                self.call("Input.dispatchMouseEvent", params)?;
            }
            match self.eval("anneal.met") {
                Ok(met) if met == "nothing" || met == "another" => {
                    ensure!(begun.elapsed() < LIMIT, "a click on {what:?} meets {met}");
                }
                // It met the element; or there is another document by now, to which the click has led.
                _ => return Ok(()),
            }
        }
    }

    /// Whether a button or link with this text can be seen now.
    ///
    /// # Errors
    /// When the page is gone.
    pub fn has(&self, text: &str) -> Result<bool> {
        Ok(self.eval(&format!("anneal.find({}, {}) !== null", json!(CLICKABLE), json!(text)))? == true)
    }

    /// Whether the button with this text can be pressed.
    ///
    /// # Errors
    /// When there is none in time.
    pub fn is_ready(&self, text: &str) -> Result<bool> {
        let button = format!("anneal.find('button', {})", json!(text));
        let state = self.until(&format!("{button} && ({button}.disabled ? 'disabled' : 'ready')"), text)?;
        Ok(state == "ready")
    }

    /// Types into the field with this label, in the place of what is there.
    ///
    /// # Errors
    /// When there is no such field in time.
    pub fn fill(&self, label: &str, text: &str) -> Result<()> {
        let field = format!("anneal.field({})", json!(label));
        self.until(&format!("{field} !== null"), &format!("a field {label:?}"))?;
        self.eval(&format!("{field}.focus(), {field}.select()"))?;
        self.enter(text)
    }

    /// Chooses an option of the list with this label.
    ///
    /// # Errors
    /// When it does not have it.
    pub fn choose(&self, label: &str, option: &str) -> Result<()> {
        let list = format!("anneal.field({})", json!(label));
        let found = format!("[...({list}?.options ?? [])].find((one) => one.text === {})", json!(option));
        self.until(&format!("{found} !== undefined"), &format!("option {option:?} of {label:?}"))?;
        let change = format!(
            "{list}.value = {found}.value, {list}.dispatchEvent(new Event('change', {{ bubbles: true }}))"
        );
        self.eval(&change).map(drop)
    }

    /// Types a text where the focus is.
    ///
    /// # Errors
    /// When the page is gone.
    pub fn enter(&self, text: &str) -> Result<()> {
        self.call("Input.insertText", json!({ "text": text })).map(drop)
    }

    /// Presses a key: `Tab`, `Enter`, `Escape`, `Space`.
    ///
    /// # Errors
    /// When the page is gone.
    pub fn press(&self, key: &str) -> Result<()> {
        let (key, code, text) = match key {
            "Tab" => ("Tab", 9, ""),
            "Enter" => ("Enter", 13, "\r"),
            "Escape" => ("Escape", 27, ""),
            "Space" => (" ", 32, " "),
            other => bail!("{other} is no key that is known here"),
        };
        let params = |kind| {
            json!({ "type": kind, "key": key, "code": if key == " " { "Space" } else { key }, "text": text,
                    "windowsVirtualKeyCode": code })
        };
        self.call("Input.dispatchKeyEvent", params("keyDown"))?;
        self.call("Input.dispatchKeyEvent", params("keyUp")).map(drop)
    }

    /// Presses Tab until what has the focus has this text or label.
    ///
    /// # Errors
    /// When no hundred times lead there.
    pub fn tab_to(&self, text: &str) -> Result<()> {
        const FOCUSED: &str = "((one) => one.labels?.[0] ? anneal.text(one.labels[0]) : anneal.text(one))(document.activeElement)";
        let mut passed = Vec::new();
        for _ in 0..100 {
            self.press("Tab")?;
            let focused = self.eval(FOCUSED)?;
            if focused == text {
                let ring = self.eval("getComputedStyle(document.activeElement).outlineStyle")?;
                ensure!(ring != "none", "nothing shows that {text:?} has the focus");
                return Ok(());
            }
            passed.push(focused.to_string());
        }
        bail!("Tab does not lead to {text:?}, but to {}", passed.join(", "))
    }

    /// The size of the window in pixels.
    ///
    /// # Errors
    /// When the page is gone.
    pub fn size(&self, width: u32, height: u32) -> Result<()> {
        let params = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", params).map(drop)
    }

    /// Dark colours, or light ones.
    ///
    /// # Errors
    /// When the page is gone.
    pub fn dark(&self, dark: bool) -> Result<()> {
        let value = if dark { "dark" } else { "light" };
        let params = json!({ "features": [{ "name": "prefers-color-scheme", "value": value }] });
        self.call("Emulation.setEmulatedMedia", params).map(drop)
    }

    /// Writes what is seen to a file of PNG.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn screenshot(&self, file: &Path) -> Result<()> {
        let shot =
            self.call("Page.captureScreenshot", json!({ "format": "png", "optimizeForSpeed": false }))?;
        let data = shot["data"].as_str().context("a picture")?;
        Ok(std::fs::write(file, base64::engine::general_purpose::STANDARD.decode(data)?)?)
    }

    /// Fails if something went wrong in the page: an exception, a violation of the content security policy, a dialog of a script,
    /// an error on the console other than of answers that the page handles.
    ///
    /// # Errors
    /// See above.
    pub fn is_clean(&self) -> Result<()> {
        let mut reports: Vec<String> = Vec::new();
        for report in self.eval("anneal.reports")?.as_array().into_iter().flatten() {
            reports.push(report.as_str().unwrap_or_default().to_owned());
        }
        for event in self.browser.events(&self.session) {
            let (method, params) = (event["method"].as_str().unwrap_or_default(), &event["params"]);
            let is_wrong = match method {
                "Page.javascriptDialogOpening" | "Runtime.exceptionThrown" => true,
                "Runtime.consoleAPICalled" => params["type"] == "error",
                // `network`: a status such as 401 or 404, which the page shows as a sentence.
                "Log.entryAdded" => {
                    params["entry"]["level"] == "error" && params["entry"]["source"] != "network"
                }
                _ => false,
            };
            if is_wrong {
                reports.push(format!("{method} {params}"));
            }
        }
        ensure!(reports.is_empty(), "the page reports:\n{}", reports.join("\n"));
        Ok(())
    }
}

/// As scripts see it.
fn is_true(value: &Value) -> bool {
    !matches!(value, Value::Null | Value::Bool(false)) && *value != "" && *value != 0
}
