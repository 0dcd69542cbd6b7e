//! The answer to a request for vectors.

use super::{Form, Vectors, base64};
use crate::json;

/// Writes OpenAI's list of `embedding` objects.
#[must_use]
pub fn write(model: &str, form: Form, vectors: &Vectors) -> Vec<u8> {
    let mut out = b"{\"object\":\"list\",\"data\":[".to_vec();
    for (index, vector) in vectors.vectors.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(format!("{{\"object\":\"embedding\",\"index\":{index},\"embedding\":").as_bytes());
        match form {
            Form::Numbers => {
                let numbers: Vec<String> = vector.iter().map(f32::to_string).collect();
                out.extend_from_slice(format!("[{}]", numbers.join(",")).as_bytes());
            }
            Form::Base64 => {
                let bytes: Vec<u8> = vector.iter().flat_map(|value| value.to_le_bytes()).collect();
                out.push(b'"');
                base64::write(&bytes, &mut out);
                out.push(b'"');
            }
        }
        out.push(b'}');
    }
    out.extend_from_slice(b"],\"model\":");
    json::string(model, &mut out);
    let tokens = vectors.tokens;
    out.extend_from_slice(format!(",\"usage\":{{\"prompt_tokens\":{tokens},\"total_tokens\":{tokens}}}}}").as_bytes());
    out
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn vectors_are_written_in_both_forms() {
        let vectors = Vectors { vectors: vec![vec![0.6, -0.8], vec![1.0, 1e-20]], tokens: 7 };
        let body = |form| serde_json::from_slice::<Value>(&write("m", form, &vectors)).unwrap();
        let numbers = body(Form::Numbers);
        assert_eq!((&numbers["object"], &numbers["model"]), (&json!("list"), &json!("m")));
        assert_eq!(numbers["usage"], json!({"prompt_tokens": 7, "total_tokens": 7}));
        let read = |value: &Value| -> Vec<f32> { serde_json::from_value(value.clone()).unwrap() };
        for (index, vector) in vectors.vectors.iter().enumerate() {
            let entry = &numbers["data"][index];
            assert_eq!((&entry["object"], &entry["index"]), (&json!("embedding"), &json!(index)));
            assert_eq!(&read(&entry["embedding"]), vector);
        }
        // 0x3f19999a and 0xbf4ccccd, the lowest byte first.
        assert_eq!(body(Form::Base64)["data"][0]["embedding"], "mpkZP83MTL8=");
    }
}
