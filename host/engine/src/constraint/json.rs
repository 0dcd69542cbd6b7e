//! JSON Schema, before it is compiled.

use llguidance::JsonCompileOptions;
use llguidance::api::TopLevelGrammar;
use serde_json::{Map, Value};

use super::limits::ConstraintLimits;
use super::regex;
use crate::error::Error;

/// Whitespace between the parts of a JSON text: enough for compact and for
/// indented text, and not more.
const WHITESPACE: &str = r"\x20{1,2}|\r?\n[\x20\x09]{0,40}";
/// The most `patternProperties` of one schema. Each pair of patterns is compared.
const MAX_PATTERN_PROPERTIES: usize = 32;
/// The most warnings that are gathered.
const MAX_WARNINGS: usize = 20;
/// Where the grammar library looks for options beside the schema.
const OPTIONS: &str = "x-guidance";

/// The grammar of what is valid under a schema, and what was ignored in it.
pub(super) fn schema(text: &str, limits: &ConstraintLimits) -> Result<(TopLevelGrammar, Vec<String>), Error> {
    let schema: Value = serde_json::from_str(text)
        .map_err(|error| Error::Constraint(format!("the JSON schema is not JSON: {error}")))?;
    let mut schema = match schema {
        Value::Bool(true) => Value::Object(Map::new()),
        Value::Bool(false) => return Err(Error::Constraint("the JSON schema `false` allows nothing".to_owned())),
        Value::Object(_) => schema,
        _ => return Err(Error::Constraint("a JSON schema is an object or a boolean".to_owned())),
    };
    if schema.get(OPTIONS).is_some() {
        return Err(Error::Constraint(format!("\"{OPTIONS}\" is not a keyword of JSON Schema; leave it out")));
    }
    let warnings = check(&schema, limits)?;
    let options =
        JsonCompileOptions { whitespace_pattern: Some(WHITESPACE.to_owned()), ..JsonCompileOptions::default() };
    options.apply_to(&mut schema);
    Ok((TopLevelGrammar::from_json_schema(schema), warnings))
}

/// Refuses what costs too much, and tells what is not understood.
pub(super) fn check(schema: &Value, limits: &ConstraintLimits) -> Result<Vec<String>, Error> {
    let mut walk = Walk { limits, warnings: Vec::new(), path: String::new(), pattern_properties: 0 };
    walk.depth(schema, 0)?;
    walk.schema(schema)?;
    Ok(walk.warnings)
}

/// Keywords that the compiler enforces, refuses, or that only describe.
const KEYWORDS: &[&str] = &[
    "$anchor",
    "$comment",
    "$defs",
    "$dynamicAnchor",
    "$dynamicRef",
    "$id",
    "$recursiveAnchor",
    "$recursiveRef",
    "$ref",
    "$schema",
    "$vocabulary",
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "contains",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "default",
    "definitions",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "deprecated",
    "description",
    "else",
    "enum",
    "examples",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "id",
    "if",
    "items",
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "oneOf",
    "pattern",
    "patternProperties",
    "prefixItems",
    "properties",
    "propertyNames",
    "readOnly",
    "required",
    "then",
    "title",
    "type",
    "unevaluatedItems",
    "unevaluatedProperties",
    "uniqueItems",
    "writeOnly",
];

/// Goes through a schema, by what each keyword holds.
struct Walk<'a> {
    limits: &'a ConstraintLimits,
    warnings: Vec<String>,
    /// Where we are, as a JSON pointer.
    path: String,
    pattern_properties: usize,
}

impl Walk<'_> {
    /// The parser of JSON has a limit of its own, so this recursion has one too.
    fn depth(&self, value: &Value, depth: usize) -> Result<(), Error> {
        if depth > self.limits.nesting {
            return Err(Error::Constraint(format!(
                "the JSON schema is nested deeper than {}; use $defs and $ref",
                self.limits.nesting
            )));
        }
        match value {
            Value::Array(values) => values.iter().try_for_each(|value| self.depth(value, depth + 1)),
            Value::Object(map) => map.values().try_for_each(|value| self.depth(value, depth + 1)),
            _ => Ok(()),
        }
    }

    /// Its depth was checked.
    fn schema(&mut self, schema: &Value) -> Result<(), Error> {
        let Value::Object(schema) = schema else { return Ok(()) };
        for (keyword, value) in schema {
            self.at(keyword, |this| this.keyword(keyword, value))?;
        }
        Ok(())
    }

    fn keyword(&mut self, keyword: &str, value: &Value) -> Result<(), Error> {
        match (keyword, value) {
            ("pattern", Value::String(pattern)) => self.pattern(pattern),
            ("patternProperties", Value::Object(map)) => {
                self.pattern_properties += map.len();
                if self.pattern_properties > MAX_PATTERN_PROPERTIES {
                    return Err(Error::Constraint(format!(
                        "a schema may have at most {MAX_PATTERN_PROPERTIES} patternProperties"
                    )));
                }
                map.keys().try_for_each(|pattern| self.pattern(pattern))?;
                self.named(map)
            }
            ("properties" | "$defs" | "definitions" | "dependentSchemas" | "dependencies", Value::Object(map)) => {
                self.named(map)
            }
            ("allOf" | "anyOf" | "oneOf" | "prefixItems" | "items", Value::Array(schemas)) => schemas
                .iter()
                .enumerate()
                .try_for_each(|(n, schema)| self.at(&n.to_string(), |this| this.schema(schema))),
            (
                "items"
                | "additionalItems"
                | "additionalProperties"
                | "not"
                | "if"
                | "then"
                | "else"
                | "contains"
                | "propertyNames"
                | "unevaluatedItems"
                | "unevaluatedProperties",
                schema,
            ) => self.schema(schema),
            (keyword, _) if !KEYWORDS.contains(&keyword) => {
                if self.warnings.len() < MAX_WARNINGS {
                    self.warnings.push(format!("ignored: {} is no keyword of JSON Schema", self.path));
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn named(&mut self, schemas: &Map<String, Value>) -> Result<(), Error> {
        schemas.iter().try_for_each(|(name, schema)| self.at(name, |this| this.schema(schema)))
    }

    fn at(&mut self, step: &str, then: impl FnOnce(&mut Self) -> Result<(), Error>) -> Result<(), Error> {
        let length = self.path.len();
        self.path.push('/');
        self.path.push_str(step);
        let result = then(self);
        self.path.truncate(length);
        result
    }

    fn pattern(&self, pattern: &str) -> Result<(), Error> {
        regex::check(pattern, self.limits).map_err(|error| Error::Constraint(format!("{}: {error}", self.path)))
    }
}
