//! Promises that no run can show, looked for in the sources: secrets are compared in one place, which takes as long
//! wherever they differ, the server's own identity never leaves the process, and documents fit on a screen.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "what fails here fails a test, as it should"
)]

mod reading;

use reading::{root, sources};

/// The files that have the text.
fn holders<'a>(sources: &'a [(String, String)], text: &str) -> Vec<&'a str> {
    let holders = sources.iter().filter(|(_, code)| code.contains(text));
    holders.map(|(name, _)| name.as_str()).collect()
}

/// Where something that a client shows as a secret is judged by what the server knows. Signatures are ring's to check,
/// and what is looked up by its digest or its keyed hash tells nothing by its timing.
const JUDGES: [(&str, &str); 6] = [
    ("src/access/authn/basic.rs", "is_same("),
    ("src/access/authn/bootstrap_token.rs", "is_same("),
    ("src/access/authn/service_account/legacy.rs", "is_same("),
    ("src/access/authn/token_file.rs", "digest(token)"),
    ("src/access/authn/token_cache.rs", "hmac::Context::with_key"),
    ("src/storage/encryption/secretbox.rs", "ct_eq("),
];

#[test]
fn secrets_are_compared_in_one_place() {
    let sources = sources(&root().join("src"));
    let mut comparing = holders(&sources, "ConstantTimeEq");
    comparing.sort_unstable();
    assert_eq!(
        comparing,
        ["src/access/authn/secret.rs", "src/storage/encryption/secretbox.rs"]
    );
    for (file, how) in JUDGES {
        assert!(
            holders(&sources, how).contains(&file),
            "{file} does not compare by {how}"
        );
    }
    // An authenticator that is new is one more judge of secrets, or takes what others judged.
    let known = [
        "src/access/authn/anonymous.rs",
        "src/access/authn/bearer.rs",
        "src/access/authn/certificate.rs",
        "src/access/authn/oidc/mod.rs",
        "src/access/authn/request_header.rs",
        "src/access/authn/service_account/mod.rs",
        "src/access/authn/tokens.rs",
        "src/access/authn/union.rs",
        "src/access/authn/webhook.rs",
    ];
    let authenticators = [" Authenticator for ", " TokenAuthenticator for "]
        .map(|text| holders(&sources, text))
        .concat();
    assert!(authenticators.len() > 5);
    for file in authenticators {
        assert!(
            known.contains(&file) || JUDGES.iter().any(|(judge, _)| *judge == file),
            "{file} judges secrets: how?"
        );
    }
    // What is compared byte by byte until it differs, by the names that secrets have; those of the objects are none.
    let words = ["token", "secret", "password"];
    let comparisons = words.map(|word| ["==", "!="].map(|op| [format!("{word} {op}"), format!("{op} {word}")]));
    for (file, code) in sources.iter().filter(|(file, _)| file.starts_with("src/access/authn/")) {
        for line in code.lines().filter(|line| !line.contains("name")) {
            let compares = comparisons
                .iter()
                .flatten()
                .flatten()
                .any(|text| line.contains(text.as_str()));
            assert!(!compares, "{file} compares secrets: {line}");
        }
    }
}

/// It has no token and no certificate: who knows its name knows nothing.
#[test]
fn the_identity_of_the_server_is_made_in_process() {
    let sources = sources(&root().join("src"));
    assert_eq!(
        holders(&sources, "\"system:apiserver\""),
        ["src/registry/generic/client.rs"]
    );
    let (_, code) = sources
        .iter()
        .find(|(name, _)| name.ends_with("generic/client.rs"))
        .unwrap();
    for word in ["Connection", "AUTHORIZATION", "Bearer", "keelson_net", "rustls"] {
        assert!(!code.contains(word), "{word}");
    }
}

/// The most characters of a line of a document or a definition. Rows of tables and blocks of code can't be broken.
const WIDTH: usize = 120;
/// Definitions that are wrong on purpose, whose lines errors name.
const WRONG: &str = "codegen/tests/bad";

#[test]
fn documents_and_definitions_are_narrow() {
    let root = root();
    let (mut folders, mut count) = (vec![root.clone()], 0);
    let mut wide = Vec::new();
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            let name = path.strip_prefix(&root).unwrap().to_string_lossy().into_owned();
            let last = path.file_name().unwrap_or_default().to_string_lossy();
            if path.is_dir() {
                if !matches!(&*last, "target" | "node_modules" | ".git") && name != WRONG {
                    folders.push(path);
                }
                continue;
            }
            if last.ends_with(".md") || last.ends_with(".proto") {
                count += 1;
                wide.extend(wide_lines(&std::fs::read_to_string(&path).unwrap()).map(|line| format!("{name}:{line}")));
            }
        }
    }
    assert!(count > 50, "{count} files");
    assert!(wide.is_empty(), "{wide:#?}");
}

/// The numbers of the lines that are too wide.
fn wide_lines(text: &str) -> impl Iterator<Item = usize> {
    let mut in_code = false;
    let wide = text.lines().zip(1..).filter(move |(line, _)| {
        in_code ^= line.trim_start().starts_with("```");
        !in_code && !line.starts_with('|') && line.chars().count() > WIDTH
    });
    wide.map(|(_, number)| number)
}
