//! Tools that answer questions about data that a model has at hand: JSON by jq, and CSV by
//! what is asked of a table.
//!
//! Both read text that comes with the call and change nothing. What they take and give is
//! bounded, and an answer that was cut says so. How long a query computes and how much
//! memory it takes is for the host to bound.

use nala_sdk::tools::{Answer, Error, Tool};

mod csv;
mod json;
mod limits;

fn tools() -> Vec<Tool> {
    vec![json::tool(), csv::tool()]
}

fn call(name: &str, arguments: &str) -> Result<Answer, Error> {
    match name {
        json::NAME => json::call(arguments),
        csv::NAME => csv::call(arguments),
        _ => Err(Error::UnknownTool(name.to_owned())),
    }
}

nala_sdk::provider!(tools, call);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tools_are_described() {
        let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        for tool in tools() {
            let input = read(&tool.input_schema);
            assert_eq!(input["type"], "object");
            for name in input["required"].as_array().unwrap() {
                assert!(input["properties"].get(name.as_str().unwrap()).is_some(), "{name}");
            }
            let output = read(tool.output_schema.as_deref().unwrap());
            for name in output["required"].as_array().unwrap() {
                assert!(output["properties"].get(name.as_str().unwrap()).is_some(), "{name}");
            }
            assert_eq!(tool.annotations.read_only, Some(true));
            assert_eq!(tool.annotations.open_world, Some(false));
            assert!(tool.description.contains("8 MiB") && tool.description.contains("256 KiB"));
        }
    }

    #[test]
    fn a_tool_is_called_by_its_name() {
        assert!(call("query_json", r#"{"data": 1, "query": "."}"#).is_ok());
        assert!(call("query_csv", r#"{"csv": "a\n1"}"#).is_ok());
        assert!(matches!(call("query_xml", "{}"), Err(Error::UnknownTool(_))));
        assert!(matches!(call("query_json", "[]"), Err(Error::InvalidArguments(_))));
        assert!(matches!(call("query_csv", r#"{"csv": 1}"#), Err(Error::InvalidArguments(_))));
    }
}
