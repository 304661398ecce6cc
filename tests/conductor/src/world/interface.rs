//! Steps of interfaces, which the controller runs.

use super::fault::Fault;
use super::setup::World;
use conductor::decision::{ActionError, Outcome};
use model::PlannedStep;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, sleep};

impl World {
    /// A step of an interface: takes `step_time`; with the argument `slowly` it continues in the background.
    pub async fn run_step(&self, step: &PlannedStep, polling: bool) -> Outcome {
        if polling {
            let over = self.slow_until.lock().unwrap().is_some_and(|until| until <= Instant::now());
            return if over { Outcome::StepDone(json!("done")) } else { Outcome::StepRunning("half".into()) };
        }
        self.ran.lock().unwrap().push(step.step.step.clone());
        let fault = self.next_fault();
        if step.given.contains_key("slowly") {
            *self.slow_until.lock().unwrap() = Some(Instant::now() + self.step_time);
            return Outcome::StepRunning("begun".into());
        }
        sleep(self.step_time).await;
        match fault {
            Fault::StepFails(text) => {
                Outcome::Failed(ActionError { text: text.into(), retryable: false, unreachable: false })
            }
            Fault::Kill => {
                if let Some(conductor) = self.running.lock().unwrap().take() {
                    conductor.abort();
                }
                sleep(Duration::from_secs(3600)).await;
                Outcome::StepDone(Value::Null)
            }
            _ => Outcome::StepDone(json!({"by": "the interface"})),
        }
    }
}
