//! Files that are right, and all that can be wrong with one, in the words of the original.

use super::*;

fn read(json: &str) -> Result<Configuration, EncryptionFileError> {
    super::read(json.as_bytes())
}

/// A configuration with these rules: `resource,resource` and the providers as JSON.
fn configuration(rules: &[(&str, &str)]) -> Result<Configuration, EncryptionFileError> {
    let rules = rules.iter().map(|(resources, providers)| {
        let resources: Vec<&str> = resources.split(',').collect();
        format!(r#"{{"resources":{resources:?},"providers":[{providers}]}}"#)
    });
    let rules: Vec<String> = rules.collect();
    read(&format!(
        r#"{{"apiVersion":"apiserver.config.k8s.io/v1","kind":"EncryptionConfiguration","resources":[{}]}}"#,
        rules.join(",")
    ))
}

/// A provider with keys `name` of `length` times this byte.
fn keyed(kind: &str, keys: &[(&str, u8, usize)]) -> String {
    let keys = keys.iter().map(|(name, byte, length)| {
        let secret = STANDARD.encode(vec![*byte; *length]);
        format!(r#"{{"name":"{name}","secret":"{secret}"}}"#)
    });
    let keys: Vec<String> = keys.collect();
    format!(r#"{{"{kind}":{{"keys":[{}]}}}}"#, keys.join(","))
}

fn mistake(rules: &[(&str, &str)]) -> String {
    configuration(rules).unwrap_err().to_string()
}

const PROVIDER: &str = "resources[0].providers[0]";

#[test]
fn secrets_do_not_show() {
    let configuration = configuration(&[("secrets", &keyed("aescbc", &[("k", b'S', 32)]))]).unwrap();
    let shown = format!("{configuration:?}");
    assert!(
        shown.contains("***") && !shown.contains("83, 83") && !shown.contains("U1NT"),
        "{shown}"
    );
    // Nor what a file says that does not say what it is.
    let error = super::read(br#"{"kind":"EncryptionConfiguration","resources":["U1NT"]}"#).unwrap_err();
    assert!(!format!("{error} {error:?}").contains("U1NT"), "{error:?}");
}

#[test]
fn everything_that_may_be_said_is_read() {
    let kms = r#"{"kms":{"apiVersion":"v2","name":"vault","endpoint":"unix:///run/kms.sock","timeout":"5s"}}"#;
    let providers = [
        keyed("aescbc", &[("a", 1, 16), ("b", 2, 24)]),
        keyed("aesgcm", &[("a", 1, 32)]),
        keyed("secretbox", &[("a", 1, 32)]),
        kms.to_owned(),
        r#"{"identity":{}}"#.to_owned(),
    ];
    let Configuration { rules } = configuration(&[("secrets,*.apps", &providers.join(","))]).unwrap();
    assert_eq!(rules[0].resources, ["secrets", "*.apps"]);
    let [
        Provider::AesCbc(keys),
        Provider::AesGcm(_),
        Provider::Secretbox(_),
        Provider::Kms(kms),
        Provider::Identity,
    ] = &rules[0].providers[..]
    else {
        panic!("{rules:?}")
    };
    assert_eq!((keys[1].name.as_str(), keys[1].secret.bytes()), ("b", &[2; 24][..]));
    assert_eq!(
        (kms.name.as_str(), kms.endpoint.to_str()),
        ("vault", Some("/run/kms.sock"))
    );
    assert_eq!(kms.timeout.as_secs(), 5);
}

#[test]
fn documents_of_another_kind_are_refused() {
    for (json, text) in [
        (
            r#"{"apiVersion":"apiserver.config.k8s.io/v1"}"#,
            "Object 'Kind' is missing",
        ),
        (
            r#"{"kind":"EncryptionConfiguration"}"#,
            "Object 'apiVersion' is missing",
        ),
        (
            r#"{"apiVersion":"apiserver.config.k8s.io/v2","kind":"EncryptionConfiguration"}"#,
            "no kind \"EncryptionConfiguration\" is registered for version \"apiserver.config.k8s.io/v2\"",
        ),
        (
            r#"{"apiVersion":"apiserver.config.k8s.io/v1","kind":"EncryptionConfiguration"}"#,
            "resources: Required value: at least one resources is required",
        ),
        (
            r#"{"apiVersion":"apiserver.config.k8s.io/v1","kind":"EncryptionConfiguration","foo":1,"bar":2}"#,
            "strict decoding error: unknown field \"bar\", unknown field \"foo\"",
        ),
    ] {
        assert_eq!(read(json).unwrap_err().to_string(), text, "{json}");
    }
}

#[test]
fn mistakes_in_providers_name_their_place() {
    let key = |secret: &str| format!(r#"{{"aescbc":{{"keys":[{{"name":"k","secret":"{secret}"}}]}}}}"#);
    for (provider, text) in [
        (
            "{}".to_owned(),
            ": Invalid value: provider does not contain any of the expected providers: KMS, AESGCM, AESCBC, Secretbox, Identity",
        ),
        (
            r#"{"identity":{},"kms":{}}"#.to_owned(),
            ": Invalid value: more than one provider specified in a single element, should split into different list elements",
        ),
        (
            r#"{"aescbc":{"keys":[]}}"#.to_owned(),
            ".aescbc.keys: Required value: at least one keys is required",
        ),
        (
            keyed("aescbc", &[("", 1, 16)]),
            ".aescbc.keys[0].name: Required value: name is a mandatory field for a key",
        ),
        (
            key(""),
            ".aescbc.keys[0].secret: Required value: secret is a mandatory field for a key",
        ),
        (
            key("***"),
            ".aescbc.keys[0].secret: Invalid value: \"REDACTED\": secrets must be base64 encoded",
        ),
        (
            key("AAAA"),
            ".aescbc.keys[0].secret: Invalid value: \"REDACTED\": \
             secret is not of the expected length, got 3, expected one of [16 24 32]",
        ),
        (
            keyed("secretbox", &[("k", 1, 16)]),
            ".secretbox.keys[0].secret: Invalid value: \"REDACTED\": \
             secret is not of the expected length, got 16, expected one of [32]",
        ),
    ] {
        assert_eq!(mistake(&[("secrets", &provider)]), format!("{PROVIDER}{text}"));
    }
    assert_eq!(
        mistake(&[("secrets", r#"{"aescbc":{"keys":5}}"#)]),
        "json: cannot unmarshal number into Go struct field AESConfiguration.resources.providers.aescbc.keys of type \
         []v1.Key"
    );
    assert_eq!(
        mistake(&[("secrets", r#"{"aesgcm":{"keys":[{"name":"a","secret":"b","more":1}]}}"#)]),
        format!("strict decoding error: unknown field \"{PROVIDER}.aesgcm.keys[0].more\"")
    );
}

#[test]
fn mistakes_in_key_management_services_name_their_place() {
    let good = r#""apiVersion":"v2","name":"a","endpoint":"unix:///x""#;
    for (fields, text) in [
        (
            r#""apiVersion":"v2","endpoint":"unix:///x""#,
            ".name: Required value: name is a mandatory field for a provider",
        ),
        (
            r#""apiVersion":"v2","name":"a:b","endpoint":"unix:///x""#,
            ".name: Invalid value: \"a:b\": invalid KMS provider name a:b, must not contain ':'",
        ),
        (
            r#""apiVersion":"v2","name":"a""#,
            ".endpoint: Invalid value: \"\": endpoint is a mandatory field for a kms",
        ),
        (
            r#""apiVersion":"v2","name":"a","endpoint":"tcp://x""#,
            ".endpoint: Invalid value: \"tcp://x\": unsupported scheme \"tcp\" for KMS provider, only unix is supported",
        ),
        (
            r#""apiVersion":"v2","name":"a","endpoint":":foo""#,
            ".endpoint: Invalid value: \":foo\": invalid endpoint for kms provider, error: parse \":foo\": missing protocol scheme",
        ),
        (
            &format!(r#"{good},"timeout":"0s""#),
            ".timeout: Invalid value: \"0s\": timeout should be a positive value",
        ),
        (
            &format!(r#"{good},"cachesize":10"#),
            ".cachesize: Invalid value: 10: cachesize is not supported in v2",
        ),
        (
            r#""name":"a","endpoint":"unix:///x""#,
            ".apiVersion: KMSv1 is deprecated and not supported. Use KMSv2 instead: apiVersion: v2",
        ),
    ] {
        let provider = format!(r#"{{"kms":{{{fields}}}}}"#);
        assert_eq!(mistake(&[("secrets", &provider)]), format!("{PROVIDER}.kms{text}"));
    }
    let kms = format!(r#"{{"kms":{{{good}}}}}"#);
    assert_eq!(
        mistake(&[("secrets", &kms), ("pods", &kms)]),
        "resources[1].providers[0].kms.name: Invalid value: \"a\": duplicate KMS provider name a, names must be unique"
    );
}

#[test]
fn names_of_resources_are_checked() {
    let masking = "using overlapping resources such as 'secrets' and '*.' in the same resource list is not allowed \
                   as they will be masked";
    for (names, text) in [
        (
            "*",
            "[0]: Invalid value: \"*\": use '*.' to encrypt all the resources from core API group or *.* to encrypt all resources",
        ),
        (
            "Secrets",
            "[0]: Invalid value: \"Secrets\": resource name should not contain capital letters",
        ),
        (
            "secrets.*",
            "[0]: Invalid value: \"secrets.*\": encrypting the same resource across groups is not supported",
        ),
        (
            "events.events.k8s.io",
            "[0]: Invalid value: \"events.events.k8s.io\": '*.events.k8s.io' objects are stored using the 'events' API \
             group in etcd. Use 'events' instead in the config file",
        ),
        (
            "*.extensions",
            "[0]: Invalid value: \"*.extensions\": 'extensions' group has been removed and cannot be used for encryption",
        ),
        (
            "serviceipallocations",
            "[0]: Invalid value: \"serviceipallocations\": resources which do not have REST API/s cannot be encrypted",
        ),
        (
            "secrets,secrets",
            ": Invalid value: [\"secrets\",\"secrets\"]: the same resource cannot be specified multiple times",
        ),
        (
            "secrets,*.",
            &format!(": Invalid value: [\"secrets\",\"*.\"]: {masking}"),
        ),
        (
            "*.apps,*.*",
            &format!(": Invalid value: [\"*.apps\",\"*.*\"]: {masking}"),
        ),
    ] {
        assert_eq!(
            mistake(&[(names, r#"{"identity":{}}"#)]),
            format!("resources[0].resources{text}")
        );
    }
}

#[test]
fn rules_that_would_never_hold_are_refused() {
    let identity = r#"{"identity":{}}"#;
    for (first, second, masked) in [
        ("*.", "secrets", true),
        ("*.*", "*.apps", true),
        ("*.apps", "*.apps", true),
        ("secrets", "secrets", false),
        ("*.apps", "secrets", false),
        ("secrets", "*.", false),
    ] {
        let read = configuration(&[(first, identity), (second, identity)]);
        let text = format!("resource {second:?} is masked by earlier rule {first:?}");
        assert_eq!(read.err().map(|error| error.to_string()), masked.then_some(text));
    }
}
