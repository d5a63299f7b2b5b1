//! Tests of whole command lines.

use keelson_access::authn::Anonymous;

use super::*;

fn arguments(line: &str) -> Vec<OsString> {
    line.split_whitespace().map(OsString::from).collect()
}

fn options(line: &str) -> Options {
    match parse("keelson", "", arguments(line)).unwrap() {
        Invocation::Serve(options) => *options,
        other => panic!("{other:?}"),
    }
}

fn error(line: &str) -> String {
    let parsed = parse("keelson", "", arguments(line)).and_then(|invocation| match invocation {
        Invocation::Serve(options) => options.complete("keelson", &[], |_| Some("/nonexistent".into())),
        other => panic!("{other:?}"),
    });
    parsed.unwrap_err().to_string()
}

#[test]
fn flags_are_written_as_go_programs_take_them() {
    for line in [
        "--secure-port=7",
        "--secure-port 7",
        "--secure_port=7",
        "--secure-port=1 --secure-port=7",
    ] {
        assert_eq!(options(line).secure_serving.secure_port, 7, "{line}");
    }
    for (line, v) in [
        ("-v=2", 2),
        ("-v 2", 2),
        ("-v2", 2),
        ("--v=2", 2),
        ("--v 2", 2),
        ("", 0),
    ] {
        assert_eq!(options(line).logs.v, v, "{line}");
    }
    for (line, allow) in [
        ("--allow-privileged", Some(true)),
        ("--allow-privileged=false", Some(false)),
        ("--allow_privileged=T", Some(true)),
    ] {
        assert_eq!(options(line).misc.allow_privileged, allow, "{line}");
    }
    assert_eq!(options("").authentication.anonymous_auth, None);
    assert_eq!(
        options("--anonymous-auth=false").authentication.anonymous_auth,
        Some(false)
    );
}

#[test]
fn lists_and_maps_may_be_repeated() {
    let line = "--etcd-servers=http://a:1,http://b:1 --etcd-servers http://c:1";
    assert_eq!(
        options(line).etcd.etcd_servers,
        ["http://a:1", "http://b:1", "http://c:1"]
    );
    let line = "--runtime-config=api/all=false,v1=true --runtime-config=apps/v1";
    let want = ["api/all=false", "v1=true", "apps/v1"];
    assert_eq!(options(line).api_enablement.runtime_config, want);
    let line = "--service-account-issuer=https://a,b --service-account-issuer=https://c";
    assert_eq!(
        options(line).authentication.service_account.service_account_issuer,
        ["https://a,b", "https://c"]
    );
}

#[test]
fn mistakes_are_one_line_that_names_the_flag() {
    for (line, want) in [
        ("--nope", "unknown flag: --nope"),
        (
            "--secure-prot=1",
            "unknown flag: --secure-prot (did you mean --secure-port?)",
        ),
        ("-x", "unknown shorthand flag: -x"),
        ("serve", r#""keelson" does not take any arguments, got ["serve"]"#),
        ("--secure-port", "flag needs an argument: --secure-port"),
        (
            "--secure-port=x",
            r#"invalid argument "x" for "--secure-port" flag: strconv.ParseInt: parsing "x": invalid syntax"#,
        ),
        (
            "--allow-privileged=maybe",
            r#"invalid argument "maybe" for "--allow-privileged" flag: strconv.ParseBool: parsing "maybe": invalid syntax"#,
        ),
        (
            "--bind-address=here",
            r#"invalid argument "here" for "--bind-address" flag: failed to parse IP: "here""#,
        ),
        (
            "--secure-port=0",
            "--secure-port: 0 must be between 1 and 65535, inclusive. It cannot be turned off with 0",
        ),
        (
            "--logging-format=xml",
            r#"--logging-format: Invalid value: "xml": Unsupported log format"#,
        ),
        (
            "--tls-cert-file=/nonexistent/a.crt",
            "--tls-cert-file: needs --tls-private-key-file",
        ),
        (
            "--client-ca-file=/nonexistent/ca.crt",
            "--client-ca-file: /nonexistent/ca.crt: No such file or directory (os error 2)",
        ),
        (
            "--token-auth-file=/nonexistent/tokens",
            "--token-auth-file: /nonexistent/tokens: No such file or directory (os error 2)",
        ),
        (
            "--service-account-key-file=/dev/null",
            "--service-account-key-file: /dev/null: data does not contain any valid RSA or ECDSA public keys",
        ),
        (
            "--service-account-signing-key-file=/dev/null",
            "--service-account-signing-key-file: /dev/null: data does not contain a valid RSA or ECDSA private key",
        ),
        (
            "--service-account-max-token-expiration=1m",
            "--service-account-max-token-expiration: must be between 1 hour and 2^32 seconds",
        ),
        (
            "--service-account-jwks-uri=http://a",
            "--service-account-jwks-uri: requires https scheme, parsed as: http://a",
        ),
        (
            "--requestheader-username-headers=,X-Remote-User",
            r#"--requestheader-username-headers: empty value in "requestheader-username-headers""#,
        ),
        (
            "--requestheader-client-ca-file=/nonexistent/ca.crt",
            "--requestheader-client-ca-file: /nonexistent/ca.crt: No such file or directory (os error 2)",
        ),
        (
            "--runtime-config=nope/v1=true",
            "--runtime-config: unknown api groups nope",
        ),
        ("--data-dir=/dev/null", "--data-dir: /dev/null: is not a folder"),
        (
            "--goaway-chance=0.5",
            "--goaway-chance: can not be less than 0 or greater than 0.02",
        ),
        (
            "--goaway-chance=NaN",
            "--goaway-chance: can not be less than 0 or greater than 0.02",
        ),
        (
            "--goaway-chance=x",
            r#"invalid argument "x" for "--goaway-chance" flag: strconv.ParseFloat: parsing "x": invalid syntax"#,
        ),
        (
            "--request-timeout=x",
            r#"invalid argument "x" for "--request-timeout" flag: time: invalid duration "x""#,
        ),
        ("--request-timeout=-1s", "--request-timeout: can not be negative value"),
        ("--request-timeout=0", "--request-timeout: must be greater than 0"),
        (
            "--max-requests-inflight=-1",
            "--max-requests-inflight: can not be negative value",
        ),
        (
            "--min-request-timeout=-1",
            "--min-request-timeout: can not be negative value",
        ),
        (
            "--shutdown-delay-duration=-1s",
            "--shutdown-delay-duration: can not be negative value",
        ),
        (
            "--strict-transport-security-directives=foo",
            "--strict-transport-security-directives: invalid, allowed values: max-age=expireTime, includeSubDomains, \
             preload. see https://tools.ietf.org/html/rfc6797#section-6.1 for more information",
        ),
        (
            "--cors-allowed-origins=example.com",
            "--cors-allowed-origins: has an invalid regular expression: example.com: regular expression does not pin to \
             start/end of host in the origin header",
        ),
        (
            "--cors-allowed-origins=((",
            "--cors-allowed-origins: has an invalid regular expression: ((: error: unclosed group",
        ),
        (
            "--tls-min-version=VersionTLS99",
            r#"--tls-min-version: unknown tls version "VersionTLS99""#,
        ),
        (
            "--tls-cipher-suites=TLS_AES_128_GCM_SHA256,TLS_FOO",
            "--tls-cipher-suites: Cipher suite TLS_FOO not supported or doesn't exist",
        ),
        (
            "--tls-sni-cert-key=foo",
            "invalid argument \"foo\" for \"--tls-sni-cert-key\" flag: expected comma separated certificate and key file \
             paths",
        ),
        (
            "--tls-sni-cert-key=/nonexistent/a,/nonexistent/b:x.example.com",
            "--tls-sni-cert-key: /nonexistent/a: No such file or directory (os error 2)",
        ),
        (
            "--enable-admission-plugins=a,b --disable-admission-plugins=c,b",
            "--enable-admission-plugins: [b] in enable-admission-plugins and disable-admission-plugins overlapped",
        ),
        (
            "--http2-max-streams-per-connection=-1",
            "--http2-max-streams-per-connection: can not be negative value",
        ),
    ] {
        assert_eq!(error(line), want, "{line}");
    }
}

#[test]
fn help_has_each_flag_at_the_start_of_a_line() {
    let Invocation::Help(help) = parse("keelson", "About.", arguments("--help")).unwrap() else {
        panic!()
    };
    assert!(
        help.starts_with("About.\n\nUsage:\n  keelson [flags]\n  keelson store --help\n  keelson crd --help\n\nData folder flags:\n\n"),
        "{help}"
    );
    for argument in command("keelson", "").get_arguments() {
        let name = format!("--{}", argument.get_long().unwrap());
        let at_start = |line: &str| {
            let line = line.trim_start();
            let line = line
                .strip_prefix("-v, ")
                .or_else(|| line.strip_prefix("-h, "))
                .unwrap_or(line);
            line == name || line.starts_with(&format!("{name} "))
        };
        assert_eq!(help.lines().filter(|line| at_start(line)).count(), 1, "{name}");
    }
    assert!(help.lines().all(|line| line.len() <= 120));
}

#[test]
fn settings_tell_what_is_not_effective_yet() {
    let options = options("--authorization-mode=Node,RBAC --allow-privileged --service-cluster-ip-range=10.0.0.0/24");
    let settings = options
        .complete("keelson", &[], |_| Some("/nonexistent".into()))
        .unwrap();
    assert_eq!(settings.unused, ["--allow-privileged"]);
    assert!(
        settings.kubernetes.allow_privileged
            && settings.authentication.anonymous == Anonymous::Everywhere
            && settings.warnings.is_empty()
    );
}

#[test]
fn the_address_for_others_is_of_the_family_of_services() {
    let settled = |line: &str| options(line).complete("keelson", &[], |_| Some("/x".into()));
    let settings = settled("--advertise-address=192.0.2.7 --endpoint-reconciler-type=none").unwrap();
    assert_eq!(settings.serving.advertised, Some("192.0.2.7".parse().unwrap()));
    assert_eq!(settled("--advertise-address=0.0.0.0").unwrap().serving.advertised, None);
    let of_v6 = "--service-cluster-ip-range=fd00::/112 --advertise-address=192.0.2.7";
    assert_eq!(
        settled(of_v6).unwrap_err().to_string(),
        "--advertise-address: service IP family \"fd00::/112\" must match public address family \"192.0.2.7\""
    );
    assert!(settled(&format!("{of_v6} --endpoint-reconciler-type=none")).is_ok());
}

#[test]
fn what_is_served_and_how_is_settled() {
    let line = "--tls-min-version=VersionTLS10 --tls-cipher-suites=TLS_RSA_WITH_RC4_128_SHA --goaway-chance=0.02 \
                --strict-transport-security-directives=max-age=1,preload --request-timeout=1m30s --disable-http2-serving \
                --cors-allowed-origins=^https://a$,//b: --http2-max-streams-per-connection=7";
    let settings = options(line).complete("keelson", &[], |_| Some("/x".into())).unwrap();
    assert_eq!(settings.warnings.len(), 2);
    assert_eq!(
        (settings.serving.goaway_chance, settings.serving.http2_max_streams),
        (Some(0.02), Some(7))
    );
    assert!(!settings.serving.tls.http2);
    let requests = settings.requests;
    assert_eq!(requests.strict_transport.unwrap(), "max-age=1; preload");
    assert_eq!(requests.timeout, std::time::Duration::from_secs(90));
    assert_eq!(requests.allowed_origins.len(), 2);
    let named = &options("--tls-sni-cert-key=a.crt,a.key:x.example.com,*.example.com --tls-sni-cert-key=b,c")
        .secure_serving
        .tls_sni_cert_key;
    let names: Vec<_> = named.iter().map(|n| n.names.as_slice()).collect();
    assert_eq!(
        names,
        [&["x.example.com".to_owned(), "*.example.com".to_owned()][..], &[]]
    );
}

#[test]
fn always_allow_shuts_out_anonymous_requests() {
    let settings = options("--authorization-mode=AlwaysAllow")
        .complete("keelson", &[], |_| Some("/x".into()))
        .unwrap();
    assert_eq!(settings.authentication.anonymous, Anonymous::Nowhere);
    assert!(settings.warnings[0].starts_with("AnonymousAuth is not allowed with the AlwaysAllow authorizer."));
    assert!(settings.unused.is_empty());
}
