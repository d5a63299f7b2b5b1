//! The Accept header, in the order in which the client prefers.

use http::HeaderMap;
use http::header::ACCEPT;

/// The most clauses of one header that are looked at.
const MAX_CLAUSES: usize = 64;

/// One clause: `application/json;g=apidiscovery.k8s.io;v=v2;q=0.9`.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Clause {
    /// `application`, or `*`.
    pub(crate) main: String,
    /// `json`, or `*`.
    pub(crate) sub: String,
    /// All but `q`.
    pub(crate) params: Vec<(String, String)>,
    /// Weight, 0 to 1.
    q: f32,
}

impl Clause {
    /// Whether the clause takes the type `main/sub`, whatever its parameters say.
    pub(crate) fn takes(&self, main: &str, sub: &str) -> bool {
        (self.main == "*" || self.main.eq_ignore_ascii_case(main))
            && (self.sub == "*" || self.sub.eq_ignore_ascii_case(sub))
    }

    /// The value of a parameter; empty if it is absent.
    pub(crate) fn param(&self, name: &str) -> &str {
        self.params
            .iter()
            .find(|(n, _)| n == name)
            .map_or("", |(_, value)| value)
    }
}

/// The clauses by weight, then by how exactly they name a type, then as sent. No header takes everything.
pub(crate) fn clauses(headers: &HeaderMap) -> Vec<Clause> {
    let sent: Vec<&str> = headers.get_all(ACCEPT).iter().filter_map(|v| v.to_str().ok()).collect();
    let sent = sent.join(",");
    let text = if sent.trim().is_empty() { "*/*" } else { sent.as_str() };
    let mut clauses: Vec<Clause> = text.split(',').take(MAX_CLAUSES).filter_map(parse).collect();
    clauses.sort_by(|a, b| b.q.total_cmp(&a.q).then_with(|| precision(b).cmp(&precision(a))));
    clauses
}

fn precision(clause: &Clause) -> u8 {
    u8::from(clause.main != "*") + u8::from(clause.sub != "*")
}

fn parse(text: &str) -> Option<Clause> {
    let mut parts = text.split(';').map(str::trim);
    let (main, sub) = match parts.next()? {
        "" => return None,
        "*" => ("*", "*"),
        name => name.split_once('/')?,
    };
    let mut clause = Clause {
        main: main.trim().to_owned(),
        sub: sub.trim().to_owned(),
        params: Vec::new(),
        q: 1.0,
    };
    for part in parts {
        let (name, value) = part.split_once('=')?;
        let (name, value) = (name.trim(), value.trim().trim_matches('"'));
        if name == "q" {
            clause.q = value.parse().unwrap_or(1.0);
        } else {
            clause.params.push((name.to_owned(), value.to_owned()));
        }
    }
    (clause.q > 0.0).then_some(clause)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preference() {
        let cases = [
            ("", vec!["*/*"]),
            (
                "application/json, application/yaml",
                vec!["application/json", "application/yaml"],
            ),
            (
                "*/*;q=0.1, application/json;q=0.5, text/html",
                vec!["text/html", "application/json", "*/*"],
            ),
            (
                "*/*, application/*, application/json",
                vec!["application/json", "application/*", "*/*"],
            ),
            ("application/json;q=0, nonsense", vec![]),
        ];
        for (header, want) in cases {
            let headers: HeaderMap = [(ACCEPT, header.parse().unwrap())].into_iter().collect();
            let got: Vec<String> = clauses(&headers)
                .iter()
                .map(|c| format!("{}/{}", c.main, c.sub))
                .collect();
            assert_eq!(got, want, "{header}");
        }
    }

    #[test]
    fn parameters() {
        let headers: HeaderMap = [(
            ACCEPT,
            "application/json;g=apidiscovery.k8s.io;v=\"v2\"".parse().unwrap(),
        )]
        .into_iter()
        .collect();
        let clause = &clauses(&headers)[0];
        assert_eq!(
            (clause.param("g"), clause.param("v"), clause.param("as")),
            ("apidiscovery.k8s.io", "v2", "")
        );
    }
}
