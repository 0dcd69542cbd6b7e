//! Tools that tell how far they have got, and what goes on.

use std::time::Duration;

use nala_sdk::tools::{self, Answer, Error, Severity};
use serde_json::Value;

use crate::{Known, NOTHING};

/// Between two reports, so that each is seen.
const PAUSE: Duration = Duration::from_millis(50);

pub(crate) const TOOLS: &[Known] = &[
    Known { name: "test_tool_with_progress", description: "Tells how far it is.", schema: NOTHING, call: progress },
    Known { name: "test_tool_with_logging", description: "Tells what goes on.", schema: NOTHING, call: logging },
    Known { name: "test_logging_tool", description: "Tells what goes on.", schema: NOTHING, call: logging },
];

fn progress(_: &Value) -> Result<Answer, Error> {
    for done in [0.0, 50.0, 100.0] {
        tools::report(done, Some(100.0), None);
        std::thread::sleep(PAUSE);
    }
    Ok(Answer::text("Tool with progress executed successfully"))
}

fn logging(_: &Value) -> Result<Answer, Error> {
    for said in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
        tools::log(Severity::Info, None, &Value::from(said).to_string());
        std::thread::sleep(PAUSE);
    }
    Ok(Answer::text("Tool with logging executed successfully"))
}
