use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;

use super::{configuration, keyed};
use crate::encryption::{Encryption, ForResource, Opened, Provider, Reload, TransformError, Transformer};

const IDENTITY: &Provider = &Provider::Identity;
const KEY: &str = "/registry/secrets/default/one";

fn secrets(providers: &[&Provider]) -> ForResource {
    Encryption::new(configuration(&[("secrets", providers)]))
        .unwrap()
        .resource("", "secrets")
}

fn open(with: &ForResource, stored: &[u8]) -> Result<Opened, TransformError> {
    with.open(&Bytes::copy_from_slice(stored), KEY)
}

fn refusal(with: &ForResource, stored: &[u8]) -> String {
    open(with, stored).err().unwrap().to_string()
}

/// Kind of provider, key, key in the store, stored value and what it holds; all but the first and third in base64.
/// Written by kube-apiserver v1.36.3 under keys called `key1`.
const RECORDED: &str = include_str!("recorded.tsv");

#[test]
fn values_of_kube_apiserver_are_read() {
    for line in RECORDED.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let [kind, secret, key, stored, value] = fields[..] else {
            panic!("{line}")
        };
        let secret = STANDARD.decode(secret).unwrap();
        let with = secrets(&[&keyed(kind, &[("key1", secret[0], secret.len())])]);
        let opened = with.open(&STANDARD.decode(stored).unwrap().into(), key).unwrap();
        assert_eq!(STANDARD.encode(&opened.value), value, "{key}");
        assert!(!opened.stale);
    }
}

#[test]
fn values_come_back_as_they_were() {
    for (kind, lengths) in [
        ("aescbc", &[16, 24, 32][..]),
        ("aesgcm", &[16, 24, 32]),
        ("secretbox", &[32]),
    ] {
        for length in lengths {
            let with = secrets(&[&keyed(kind, &[("k", 7, *length)])]);
            for size in [0, 1, 15, 16, 17, 1000] {
                let value = vec![b'v'; size];
                let stored = with.seal(&value, KEY).unwrap();
                assert!(stored.starts_with(format!("k8s:enc:{kind}:v1:k:").as_bytes()));
                assert_ne!(stored, with.seal(&value, KEY).unwrap(), "each has its own nonce");
                let opened = open(&with, &stored).unwrap();
                assert_eq!(
                    (&opened.value[..], opened.stale),
                    (&value[..], false),
                    "{kind} {length} {size}"
                );
            }
        }
    }
}

#[test]
fn what_was_changed_or_moved_does_not_open() {
    for (kind, bound) in [("aesgcm", true), ("secretbox", false)] {
        let with = secrets(&[&keyed(kind, &[("k", 7, 32)])]);
        let stored = with.seal(b"value", KEY).unwrap();
        for n in format!("k8s:enc:{kind}:v1:k:").len()..stored.len() {
            let mut changed = stored.clone();
            changed[n] ^= 1;
            assert!(open(&with, &changed).is_err(), "{kind}: byte {n}");
        }
        assert_eq!(with.open(&stored.into(), "/elsewhere").is_err(), bound);
    }
}

#[test]
fn values_that_would_be_written_otherwise_today_are_stale() {
    let (old, new) = (("old", 1, 32), ("new", 2, 32));
    let only = |key| secrets(&[&keyed("aescbc", &[key])]);
    let cases = [
        (only(old), secrets(&[&keyed("aescbc", &[old, new])]), false),
        (only(old), secrets(&[&keyed("aescbc", &[new, old])]), true),
        (only(old), secrets(&[IDENTITY, &keyed("aescbc", &[old])]), true),
        (
            only(old),
            secrets(&[&keyed("aesgcm", &[old]), &keyed("aescbc", &[old])]),
            true,
        ),
        (
            secrets(&[IDENTITY]),
            secrets(&[&keyed("aescbc", &[old]), IDENTITY]),
            true,
        ),
        (
            secrets(&[IDENTITY]),
            secrets(&[IDENTITY, &keyed("aescbc", &[old])]),
            false,
        ),
        (
            only(("same", 1, 32)),
            secrets(&[
                &keyed("aescbc", &[("same", 2, 32)]),
                &keyed("aescbc", &[("same", 1, 32)]),
            ]),
            true,
        ),
    ];
    for (n, (before, now, stale)) in cases.into_iter().enumerate() {
        let stored = before.seal(b"a value of some length", KEY).unwrap();
        assert_eq!(open(&now, &stored).map(|opened| opened.stale), Ok(stale), "case {n}");
    }
}

#[test]
fn what_can_not_be_read_is_explained_as_kube_apiserver_does() {
    let cbc = secrets(&[&keyed("aescbc", &[("key1", 1, 32)])]);
    let gcm = secrets(&[&keyed("aesgcm", &[("key1", 1, 32)]), IDENTITY]);
    let boxed = secrets(&[&keyed("secretbox", &[("key1", 1, 32)])]);
    let none = Encryption::none().resource("", "secrets");
    let junk = |prefix: &str, n: usize| [prefix.as_bytes(), &vec![b'a'; n]].concat();
    for (with, stored, text) in [
        (
            &cbc,
            junk("k8s:enc:aescbc:v1:key2:", 48),
            "no matching key was found for the provided AES transformer",
        ),
        (
            &gcm,
            junk("k8s:enc:aesgcm:v1:key2:", 48),
            "no matching key was found for the provided AES transformer",
        ),
        (
            &boxed,
            junk("k8s:enc:secretbox:v1:key2:", 48),
            "no matching key was found for the provided Secretbox transformer",
        ),
        (
            &cbc,
            junk("k8s:enc:aescbc:v1:key1:", 3),
            "the stored data was shorter than the required size",
        ),
        (
            &gcm,
            junk("k8s:enc:aesgcm:v1:key1:", 3),
            "the stored data was shorter than the required size",
        ),
        (
            &boxed,
            junk("k8s:enc:secretbox:v1:key1:", 3),
            "the stored data was shorter than the required size",
        ),
        (
            &cbc,
            junk("k8s:enc:aescbc:v1:key1:", 33),
            "the stored data is not a multiple of the block size",
        ),
        (
            &cbc,
            junk("k8s:enc:aescbc:v1:key1:", 16),
            "invalid PKCS7 data (empty or not padded)",
        ),
        (
            &gcm,
            junk("k8s:enc:aesgcm:v1:key1:", 48),
            "cipher: message authentication failed",
        ),
        (
            &boxed,
            junk("k8s:enc:secretbox:v1:key1:", 48),
            "output array was not large enough for encryption",
        ),
        (&gcm, junk("k8s:enc:aescbc:v1:key1:", 48), "no matching prefix found"),
        (&cbc, junk("k8s\0", 9), "no matching prefix found"),
        (
            &none,
            junk("k8s:enc:aescbc:v1:key1:", 48),
            "identity transformer tried to read encrypted data",
        ),
    ] {
        assert_eq!(refusal(with, &stored), text);
    }
    let both = secrets(&[&keyed("aesgcm", &[("k", 1, 32)]), &keyed("aescbc", &[("k", 1, 32)])]);
    assert_eq!(
        refusal(&both, &junk("k8s:enc:aesgcm:v1:k:", 5)),
        "the stored data was shorter than the required size"
    );
    let twice = secrets(&[&keyed("aescbc", &[("k", 1, 32)]), &keyed("aescbc", &[("x", 1, 32)])]);
    assert_eq!(
        refusal(&twice, &junk("k8s:enc:aescbc:v1:k:", 5)),
        "[the stored data was shorter than the required size, no matching key was found for the provided AES transformer]"
    );
}

#[test]
fn the_most_exact_rule_holds() {
    let gcm = |name: &str| keyed("aesgcm", &[(name, 1, 32)]);
    let rules = [
        ("secrets,deployments.apps", gcm("exact")),
        ("*.apps", gcm("group")),
        ("*.", gcm("core")),
        ("*.*", gcm("all")),
    ];
    let with = |count: usize| {
        let rules: Vec<(&str, [&Provider; 1])> = rules[..count]
            .iter()
            .map(|(names, provider)| (*names, [provider]))
            .collect();
        let rules: Vec<(&str, &[&Provider])> = rules.iter().map(|(names, all)| (*names, &all[..])).collect();
        Encryption::new(configuration(&rules)).unwrap()
    };
    let encryption = with(4);
    for (group, resource, name) in [
        ("", "secrets", "exact"),
        ("apps", "deployments", "exact"),
        ("apps", "replicasets", "group"),
        ("", "configmaps", "core"),
        ("batch", "jobs", "all"),
        ("batch", "secrets", "all"),
    ] {
        let stored = encryption.resource(group, resource).seal(b"v", KEY).unwrap();
        let prefix = format!("k8s:enc:aesgcm:v1:{name}:");
        assert!(stored.starts_with(prefix.as_bytes()), "{resource}.{group}");
    }
    let some = with(2);
    assert_eq!(some.resource("batch", "jobs").seal(b"v", KEY).unwrap(), b"v");
}

#[tokio::test]
async fn a_configuration_is_replaced_while_it_is_used() {
    let encryption = Encryption::none();
    let resource = encryption.resource("", "secrets");
    let plain = resource.seal(b"v", KEY).unwrap();
    let next = Ok::<_, String>(configuration(&[(
        "secrets",
        &[&keyed("aesgcm", &[("k", 1, 32)]), IDENTITY],
    )]));
    assert_eq!(encryption.reload(next.clone()).await, Reload::Replaced);
    assert!(open(&resource, &plain).unwrap().stale);
    let stored = resource.seal(b"v", KEY).unwrap();
    assert_eq!(encryption.reload(next).await, Reload::Unchanged);
    assert_eq!(encryption.reload(Err("no file".to_owned())).await, Reload::Failed);
    assert_eq!(open(&resource, &stored).unwrap().value, "v", "the old one stays");
    use std::sync::atomic::Ordering::Relaxed;
    let reloads = encryption.reloads();
    assert_eq!((reloads.succeeded.load(Relaxed), reloads.failed.load(Relaxed)), (1, 1));
}
