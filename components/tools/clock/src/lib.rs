//! A tool that tells the time, in any time zone.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use nala_sdk::tools::{Answer, Error, Tool};
use serde::{Deserialize, Serialize};

const INPUT: &str = r#"{
  "type": "object",
  "properties": {
    "timezone": {
      "type": "string",
      "description": "A time zone of the IANA database, such as Europe/Berlin; UTC if it is left out"
    }
  },
  "additionalProperties": false
}"#;

const OUTPUT: &str = r#"{
  "type": "object",
  "properties": {
    "time": {"type": "string", "description": "Date, time and offset (RFC 3339)"},
    "timezone": {"type": "string"},
    "weekday": {"type": "string"},
    "unix": {"type": "integer", "description": "Seconds since 1970-01-01 in UTC"}
  },
  "required": ["time", "timezone", "weekday", "unix"],
  "additionalProperties": false
}"#;

#[derive(Deserialize)]
struct Arguments {
    timezone: Option<String>,
}

#[derive(Serialize)]
struct Time {
    time: String,
    timezone: String,
    weekday: String,
    unix: i64,
}

fn tools() -> Vec<Tool> {
    let what = "Tells the current date, time and weekday in a time zone.";
    vec![Tool::new("current_time", what, INPUT).titled("Clock").answering(OUTPUT).read_only()]
}

fn call(_name: &str, arguments: &str) -> Result<Answer, Error> {
    let arguments: Arguments =
        serde_json::from_str(arguments).map_err(|error| Error::InvalidArguments(error.to_string()))?;
    Ok(tell(Timestamp::now(), arguments.timezone.as_deref().unwrap_or("UTC")))
}

/// What is to be said of a time.
fn tell(now: Timestamp, timezone: &str) -> Answer {
    let Ok(zone) = TimeZone::get(timezone) else {
        return Answer::error(format!(
            "there is no time zone `{timezone}`; name one of the IANA database, such as Europe/Berlin or UTC"
        ));
    };
    let name = zone.iana_name().unwrap_or("UTC").to_owned();
    let there = now.to_zoned_datetime(zone);
    let time = Time {
        time: there.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
        timezone: name,
        weekday: there.strftime("%A").to_string(),
        unix: now.as_second(),
    };
    match serde_json::to_string(&time) {
        Ok(json) => Answer::structured(json),
        Err(error) => Answer::error(error.to_string()),
    }
}

nala_sdk::provider!(tools, call);

#[cfg(test)]
mod tests {
    use super::*;

    fn told(timezone: &str) -> serde_json::Value {
        let answer = tell(Timestamp::new(1_772_323_200, 0).unwrap(), timezone);
        assert!(!answer.is_error, "{answer:?}");
        serde_json::from_str(answer.structured.as_deref().unwrap()).unwrap()
    }

    #[test]
    fn a_time_is_told_where_it_is_asked_for() {
        let utc = serde_json::json!({
            "time": "2026-03-01T00:00:00+00:00", "timezone": "UTC", "weekday": "Sunday", "unix": 1_772_323_200,
        });
        assert_eq!(told("UTC"), utc);
        assert_eq!(told("Asia/Kolkata")["time"], "2026-03-01T05:30:00+05:30");
        assert_eq!(told("america/new_york")["weekday"], "Saturday");
    }

    #[test]
    fn what_is_no_time_zone_is_told() {
        for timezone in ["", "Mars/Olympus", "../../etc/passwd", "UTC\0"] {
            assert!(tell(Timestamp::UNIX_EPOCH, timezone).is_error, "{timezone:?}");
        }
    }

    #[test]
    fn the_schemas_are_json() {
        for tool in tools() {
            let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
            assert_eq!(read(&tool.input_schema)["type"], "object");
            read(tool.output_schema.as_deref().unwrap());
        }
    }
}
