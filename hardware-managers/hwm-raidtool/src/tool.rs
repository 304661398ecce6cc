//! Running the vendor's tool: `PROGRAM ARGUMENTS… J`, which answers in JSON.

use hwm_sdk::StepError;
use serde_json::{Value, json};
use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A tool that takes longer is hung: long work goes on in the controller, and is asked about.
const DEADLINE: Duration = Duration::from_secs(60);
/// How often it is looked whether it has ended.
const LOOK: Duration = Duration::from_millis(5);
/// Most bytes of an answer.
const ANSWER_MAX: u64 = 8 << 20;

/// The tool.
#[derive(Debug, Clone)]
pub struct Tool {
    program: PathBuf,
    deadline: Duration,
}

/// What a controller answered.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Number of the controller.
    pub controller: u64,
    /// `Response Data`.
    pub data: Value,
}

impl Tool {
    /// The one at this path.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into(), deadline: DEADLINE }
    }

    /// The same with another deadline.
    pub fn with_deadline(self, deadline: Duration) -> Self {
        Self { deadline, ..self }
    }

    /// Whether there is such a program.
    pub fn is_there(&self) -> bool {
        self.program.is_file()
    }

    /// What every controller that was addressed answers to `words`.
    ///
    /// # Errors
    /// When the tool cannot be run, hangs, says something else than its JSON, or says that it failed: in its own words.
    pub fn ask(&self, words: &[&str]) -> Result<Vec<Answer>, StepError> {
        let text = self.output(words)?;
        let answer: Value = serde_json::from_slice(&text)
            .map_err(|error| self.failed(words, &format!("its answer is no JSON: {error}")))?;
        let controllers = answer["Controllers"].as_array().filter(|controllers| !controllers.is_empty());
        let controllers = controllers.ok_or_else(|| self.failed(words, "its answer has no Controllers"))?;
        controllers.iter().map(|controller| self.judge(words, controller)).collect()
    }

    fn judge(&self, words: &[&str], answer: &Value) -> Result<Answer, StepError> {
        let status = &answer["Command Status"];
        if status["Status"] == "Success" {
            let controller = status["Controller"].as_u64().unwrap_or_default();
            return Ok(Answer { controller, data: answer["Response Data"].clone() });
        }
        let details = status["Detailed Status"].as_array().into_iter().flatten();
        let details: Vec<&str> = details.filter_map(|detail| detail["ErrMsg"].as_str()).collect();
        let description = status["Description"].as_str().unwrap_or("no reason is given");
        Err(self.failed(
            words,
            if details.is_empty() { description.to_owned() } else { details.join("; ") }.trim(),
        ))
    }

    fn output(&self, words: &[&str]) -> Result<Vec<u8>, StepError> {
        let mut command = Command::new(&self.program);
        command.args(words).arg("J").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().map_err(|error| self.failed(words, &error.to_string()))?;
        let pipe = child.stdout.take();
        // Read while waiting: a tool that writes more than a pipe holds would never end.
        let reader = thread::spawn(move || {
            let mut text = Vec::new();
            let read = pipe.map(|pipe| pipe.take(ANSWER_MAX).read_to_end(&mut text));
            read.transpose().map(|_| text)
        });
        self.wait(words, &mut child)?;
        let text = reader.join().map_err(|_| self.failed(words, "reading its answer broke"))?;
        text.map_err(|error| self.failed(words, &error.to_string()))
    }

    /// Its exit status says nothing that its answer does not.
    fn wait(&self, words: &[&str], child: &mut Child) -> Result<(), StepError> {
        let began = Instant::now();
        loop {
            match child.try_wait() {
                Ok(Some(_)) => return Ok(()),
                Ok(None) if began.elapsed() < self.deadline => thread::sleep(LOOK),
                Ok(None) => {
                    let killed = child.kill().and_then(|()| child.wait());
                    let end = if killed.is_ok() { "killed" } else { "and cannot be killed" };
                    let seconds = self.deadline.as_secs_f32();
                    return Err(self.failed(words, &format!("it did not end within {seconds} s; {end}")));
                }
                Err(error) => return Err(self.failed(words, &error.to_string())),
            }
        }
    }

    fn failed(&self, words: &[&str], why: &str) -> StepError {
        let program = self.program.file_name().unwrap_or_default().to_string_lossy();
        let reason = format!("{program} {}: {why}", words.join(" "));
        StepError::Failed { reason, report: json!(null) }
    }
}
