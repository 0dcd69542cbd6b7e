use super::*;

fn lark(text: &str) -> Result<String, String> {
    to_lark(text, &ConstraintLimits::default()).map_err(|error| error.to_string())
}

fn refused(text: &str) -> String {
    lark(text).unwrap_err()
}
