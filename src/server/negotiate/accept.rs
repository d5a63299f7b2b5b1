//! The clauses of an `Accept` header, in the order in which kube-apiserver tries them.

/// The most clauses of one header that are looked at.
const MAX_CLAUSES: usize = 64;

/// One clause: `application/json;as=Table;v=v1;g=meta.k8s.io;q=0.9`.
#[derive(Clone, PartialEq, Debug)]
pub struct Clause<'a> {
    /// `application`, or `*`.
    main: &'a str,
    /// `json`, or `*`.
    sub: &'a str,
    /// Any number; one that cannot be read is 0. A weight of 0 forbids nothing: it only comes last.
    quality: f64,
    /// All but `q`; those without a value are left out.
    params: Vec<(&'a str, &'a str)>,
}

impl<'a> Clause<'a> {
    /// Whether the clause takes this media type, whatever its parameters say. `*/json` takes nothing.
    pub fn takes(&self, media_type: &str) -> bool {
        let (main, sub) = media_type.split_once('/').unwrap_or_default();
        match (self.main, self.sub) {
            ("*", "*") => true,
            (m, "*") => m == main,
            (m, s) => m == main && s == sub,
        }
    }

    /// The value of a parameter, of several the last; empty if it is absent.
    pub fn param(&self, name: &str) -> &'a str {
        self.params
            .iter()
            .rfind(|(n, _)| *n == name)
            .map_or("", |(_, value)| value)
    }

    fn parse(text: &'a str) -> Option<Clause<'a>> {
        let mut parts = text.split(';').map(str::trim);
        let (main, sub) = match parts.next()? {
            "*" => ("*", "*"),
            essence => essence.split_once('/')?,
        };
        if sub.contains('/') {
            return None;
        }
        let mut clause = Clause {
            main: main.trim(),
            sub: sub.trim(),
            quality: 1.0,
            params: Vec::new(),
        };
        for (name, value) in parts.filter_map(|p| p.split_once('=')) {
            match (name.trim(), value.trim()) {
                (_, "") => {}
                // Not trimmed: with a blank in front it is no number.
                ("q", _) => clause.quality = value.parse().unwrap_or(0.0),
                pair => clause.params.push(pair),
            }
        }
        Some(clause)
    }

    /// Not an order of mathematics: a type that is named goes before a wildcard also when its weight is less. Clients
    /// see this, so it is kept as it is.
    fn goes_before(&self, other: &Clause<'_>) -> bool {
        self.quality > other.quality || (self.main != "*" && other.main == "*") || (self.sub != "*" && other.sub == "*")
    }
}

/// The clauses of a header's text. An empty header takes everything.
pub fn clauses(header: &str) -> Vec<Clause<'_>> {
    let text = if header.trim().is_empty() { "*/*" } else { header };
    let mut clauses: Vec<Clause<'_>> = Vec::new();
    for clause in text.split(',').take(MAX_CLAUSES).filter_map(Clause::parse) {
        // Since `goes_before` is no order, the way of sorting shows: each clause moves up past its neighbours.
        let stays = clauses.iter().rposition(|earlier| !clause.goes_before(earlier));
        clauses.insert(stays.map_or(0, |place| place + 1), clause);
    }
    clauses
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_that_of_the_original() {
        for (header, want) in [
            ("", "*/*"),
            (
                "application/json, application/yaml",
                "application/json application/yaml",
            ),
            (
                "*/*;q=0.1, application/json;q=0.5, text/html",
                "text/html application/json */*",
            ),
            (
                "*/*, application/*, application/json",
                "application/json application/* */*",
            ),
            ("*/*,application/yaml;q=0.5", "application/yaml */*"),
            ("application/yaml;q=0,*/*", "*/* application/yaml"),
            (
                "application/*;q=1,application/yaml;q=0.5,*/*;q=0.7",
                "application/yaml application/* */*",
            ),
            (
                "application/yaml;q=abc,application/json;q=0.5",
                "application/json application/yaml",
            ),
            (
                "application/json; q = 0.5,application/yaml;q=0.1",
                "application/yaml application/json",
            ),
            (
                "application/json;q=,application/yaml;q=0.9",
                "application/json application/yaml",
            ),
            (
                "application/json;q=1.5,application/yaml;q=1.7",
                "application/yaml application/json",
            ),
            ("*, nonsense, a/b/c, ;", "*/*"),
        ] {
            let got: Vec<String> = clauses(header)
                .iter()
                .map(|c| format!("{}/{}", c.main, c.sub))
                .collect();
            assert_eq!(got.join(" "), want, "{header}");
        }
    }

    #[test]
    fn parameters_keep_their_quotes_and_the_last_counts() {
        let found = clauses("application/json; as = Table ;v=\"v1\";v=v2;flag;g=");
        let params = ["as", "v", "flag", "g"].map(|name| found[0].param(name));
        assert_eq!(params, ["Table", "v2", "", ""]);
        assert_eq!(clauses("a/b;v=\"v1\"")[0].param("v"), "\"v1\"");
    }

    #[test]
    fn wildcards_take_a_whole_type() {
        for (clause, media_type, want) in [
            ("*/*", "application/json", true),
            ("application/*", "application/json", true),
            ("*/json", "application/json", false),
            ("Application/JSON", "application/json", false),
        ] {
            assert_eq!(clauses(clause)[0].takes(media_type), want, "{clause}");
        }
    }
}
