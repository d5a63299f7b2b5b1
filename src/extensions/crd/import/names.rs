//! Names in definition files.

/// The package of a group and version: `com.example.v1`.
pub fn package(group: &str, version: &str) -> String {
    let mut parts: Vec<String> = group.rsplit('.').map(|part| part.replace('-', "_")).collect();
    parts.push(version.to_owned());
    let parts = parts
        .into_iter()
        .map(|part| match part.starts_with(|c: char| c.is_ascii_digit()) {
            true => format!("n{part}"),
            false => part,
        });
    parts.collect::<Vec<_>>().join(".")
}

/// The name of a field by its JSON name: `clusterIP` → `cluster_ip`.
pub fn snake(json: &str) -> String {
    let letters: Vec<char> = json.chars().collect();
    let mut out = String::new();
    for (at, c) in letters.iter().enumerate() {
        let is_upper = |at: usize| letters.get(at).is_some_and(char::is_ascii_uppercase);
        let is_lower = |at: usize| {
            letters
                .get(at)
                .is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
        };
        let starts = is_upper(at) && at > 0 && (is_lower(at - 1) || (is_upper(at - 1) && is_lower(at + 1)));
        if starts && !out.ends_with('_') {
            out.push('_');
        }
        match c.is_ascii_alphanumeric() {
            true => out.push(c.to_ascii_lowercase()),
            false if !out.is_empty() && !out.ends_with('_') => out.push('_'),
            false => {}
        }
    }
    let out = out.trim_end_matches('_');
    match out.chars().next() {
        None => "field".to_owned(),
        Some('0'..='9') => format!("n{out}"),
        Some(_) => out.to_owned(),
    }
}

/// The JSON name that follows from the name of a field.
pub fn json_name(field: &str) -> String {
    let mut out = String::new();
    let mut raise = false;
    for c in field.chars() {
        match c {
            '_' => raise = true,
            c if std::mem::take(&mut raise) => out.push(c.to_ascii_uppercase()),
            c => out.push(c),
        }
    }
    out
}

/// As part of the name of a message: `pod_template` → `PodTemplate`.
pub fn pascal(json: &str) -> String {
    let name = json_name(&format!("_{}", snake(json)));
    name.replace(|c: char| !c.is_ascii_alphanumeric(), "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_from_json_names() {
        for (json, field, follows, message) in [
            ("size", "size", true, "Size"),
            ("podTemplate", "pod_template", true, "PodTemplate"),
            ("clusterIP", "cluster_ip", false, "ClusterIp"),
            ("HTTPPort", "http_port", false, "HttpPort"),
            ("a-b.c", "a_b_c", false, "ABC"),
            ("$ref", "ref", false, "Ref"),
            ("2nd", "n2nd", false, "N2nd"),
            ("-", "field", false, "Field"),
            ("under_score", "under_score", false, "UnderScore"),
        ] {
            assert_eq!(
                (snake(json).as_str(), pascal(json).as_str()),
                (field, message),
                "{json}"
            );
            assert_eq!(json_name(field) == json, follows, "{json}");
        }
        assert_eq!(package("k8s.my-site.example", "v1"), "example.my_site.k8s.v1");
    }
}
