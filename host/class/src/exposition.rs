//! Metrics of several processes as those of one.
//!
//! OpenMetrics wants all samples of a family together, each series once (OpenMetrics
//! 1.0, sections "MetricFamily" and "Text Format"). So the samples of another process
//! go into the family of the same name, and get a label that says whose they are.
//!
//! The other process may be in somebody else's hands: what is no sample is left out,
//! so that it can spoil no figures but its own.

use std::collections::BTreeMap;

/// Whose a sample is.
const LABEL: &str = "class";
const END: &str = "# EOF";
/// What may stand behind `# TYPE name` (OpenMetrics 1.0, section "Metric Types").
const TYPES: [&str; 8] = ["unknown", "gauge", "counter", "stateset", "info", "histogram", "gaugehistogram", "summary"];

/// A family: its description, and its samples.
#[derive(Default)]
struct Family<'a> {
    head: Vec<&'a str>,
    samples: Vec<String>,
}

/// The metrics `own` with those of each class in `others`, which get the label `class`.
#[must_use]
pub fn joined<'a>(own: &'a str, others: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let mut order = Vec::new();
    let mut families: BTreeMap<&str, Family<'_>> = BTreeMap::new();
    let mut name = "";
    for line in own.lines().filter(|line| *line != END) {
        if let Some((of, _)) = description(line) {
            name = of;
        }
        let family = families.entry(name).or_insert_with(|| {
            order.push(name);
            Family::default()
        });
        match line.starts_with('#') {
            true => family.head.push(line),
            false => family.samples.push(line.to_owned()),
        }
    }
    for (class, text) in others {
        let (mut name, mut head) = ("", Vec::new());
        for line in text.lines() {
            if let Some((of, is_sound)) = description(line) {
                if of != name {
                    (name, head) = (of, Vec::new());
                }
                if is_sound {
                    head.push(line);
                }
            } else if let Some(sample) = labelled(line, name, class) {
                let family = families.entry(name).or_insert_with(|| {
                    order.push(name);
                    Family { head: head.clone(), samples: Vec::new() }
                });
                family.samples.push(sample);
            }
        }
    }
    let mut text = String::new();
    for family in order.iter().filter_map(|name| families.get(name)) {
        let samples = family.samples.iter().map(String::as_str);
        for line in family.head.iter().copied().chain(samples) {
            text.push_str(line);
            text.push('\n');
        }
    }
    text.push_str(END);
    text.push('\n');
    text
}

/// The name in a line that describes a family, and whether the line is as it must be.
fn description(line: &str) -> Option<(&str, bool)> {
    let mut words = line.strip_prefix("# ")?.splitn(3, ' ');
    let (kind, name, rest) = (words.next()?, words.next()?, words.next().unwrap_or_default());
    let is_sound = match kind {
        "TYPE" => TYPES.contains(&rest),
        "HELP" | "UNIT" => true,
        _ => return None,
    };
    Some((name, is_sound && is_name(name)))
}

fn is_name(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':');
    text.starts_with(|c: char| !c.is_ascii_digit()) && text.chars().all(allowed)
}

/// A sample of the family `name` with the label. None: it is no sample, or not of it.
fn labelled(line: &str, name: &str, class: &str) -> Option<String> {
    if name.is_empty() {
        return None;
    }
    let end = line.find(['{', ' '])?;
    let (of, rest) = line.split_at(end);
    if !(is_name(of) && of.starts_with(name)) {
        return None;
    }
    let (labels, value) = match rest.strip_prefix('{') {
        Some(rest) => split_labels(rest)?,
        None => ("", rest),
    };
    let value = value.strip_prefix(' ')?;
    let is_number = matches!(value, "NaN" | "+Inf" | "-Inf") || value.parse::<f64>().is_ok_and(f64::is_finite);
    let comma = if labels.is_empty() { "" } else { "," };
    is_number.then(|| format!("{of}{{{LABEL}=\"{class}\"{comma}{labels}}} {value}"))
}

/// Splits behind the brace that ends labels. None: they are none, or say a class.
fn split_labels(text: &str) -> Option<(&str, &str)> {
    let mut rest = text;
    loop {
        if let Some(behind) = rest.strip_prefix('}') {
            let length = text.len() - rest.len();
            return Some((text.get(..length)?, behind));
        }
        let (name, quoted) = rest.split_once("=\"")?;
        if !is_name(name) || name == LABEL {
            return None;
        }
        let mut escaped = false;
        let end = quoted.find(|c| {
            let is_end = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            is_end
        })?;
        rest = quoted.get(end + 1..)?;
        match rest.strip_prefix(',') {
            Some(more) if !more.starts_with('}') => rest = more,
            Some(_) => return None,
            None if rest.starts_with('}') => {}
            None => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = "# HELP nala_used What was used.\n# TYPE nala_used counter\n\
                       nala_used_total{tenant=\"a\"} 1\n# HELP nala_open Open.\n# TYPE nala_open gauge\nnala_open 2\n\
                       # EOF\n";

    #[test]
    fn samples_of_a_class_stand_in_their_family_with_its_label() {
        let other = "# HELP nala_used What was used.\n# TYPE nala_used counter\n\
                     nala_used_total{tenant=\"b\",what=\"a \\\"b\\\\\"} 3\n\
                     # HELP nala_new New.\n# TYPE nala_new histogram\nnala_new_bucket{le=\"+Inf\"} 4\nnala_new_sum 0.5\n\
                     # EOF\n";
        let expected = "# HELP nala_used What was used.\n# TYPE nala_used counter\nnala_used_total{tenant=\"a\"} 1\n\
                        nala_used_total{class=\"x\",tenant=\"b\",what=\"a \\\"b\\\\\"} 3\n\
                        # HELP nala_open Open.\n# TYPE nala_open gauge\nnala_open 2\n\
                        # HELP nala_new New.\n# TYPE nala_new histogram\n\
                        nala_new_bucket{class=\"x\",le=\"+Inf\"} 4\nnala_new_sum{class=\"x\"} 0.5\n# EOF\n";
        assert_eq!(joined(OWN, [("x", other)]), expected);
        assert_eq!(joined(OWN, []), OWN);
    }

    #[test]
    fn what_is_no_sample_of_the_class_is_left_out() {
        for line in [
            "nala_used_total{class=\"y\"} 1",
            "nala_used_total{a=\"b\"",
            "nala_used_total{a=\"b\"} 1 2 3",
            "nala_used_total{a=\"b\",} 1",
            "nala_used_total{a=\"b\"c=\"d\"} 1",
            "nala_used_total{a=b} 1",
            "nala_used_total{a=\"b\"}1",
            "nala_used_total{a=\"\\\"} 1",
            "nala_used_total one",
            "nala_used_total 1e999",
            "nala_used_total",
            "other 1",
            "{} 1",
            "",
            "nala used 1",
        ] {
            let other = format!("# TYPE nala_used counter\n{line}\n");
            assert_eq!(joined(OWN, [("x", &*other)]), OWN, "{line}");
        }
        assert_eq!(joined(OWN, [("x", "nala_used_total 1\n")]), OWN, "of no family");
        let odd = "# TYPE nala_odd nonsense\n# HELP nala\u{7}x Bell\nnala_odd 1\n# nothing\n# TYPE nala_odd gauge\nnala_odd 2\n";
        let text = joined(OWN, [("x", odd)]);
        assert!(text.ends_with("# TYPE nala_odd gauge\nnala_odd{class=\"x\"} 2\n# EOF\n"), "{text}");
        assert!(!text.contains("nonsense") && !text.contains('\u{7}'), "{text}");
    }
}
