//! Starting and ending: no flag at all, mistakes, what is kept over a restart, open watches at SIGTERM.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use futures_util::TryStreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, PostParams, WatchParams};

use crate::support::{Server, bookings, command, free_port, keelson, widgets};

/// Every file below `folder`, with its mode.
fn files(folder: &Path) -> Vec<(String, u32)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap().map(Result::unwrap) {
            let path = entry.path();
            match path.is_dir() {
                true => folders.push(path),
                false => {
                    let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
                    found.push((path.strip_prefix(folder).unwrap().to_string_lossy().into_owned(), mode));
                }
            }
        }
    }
    found.sort();
    found
}

fn named(name: &str) -> ConfigMap {
    let mut object = ConfigMap::default();
    object.metadata.name = Some(name.to_owned());
    object
}

#[tokio::test]
async fn a_bare_start_makes_everything_and_a_restart_keeps_it() {
    let server = Server::start(keelson(), &[]).await;
    let data = server.folder().join("keelson");
    assert_eq!(server.kubeconfig, data.join("kubeconfig"));
    let made = files(&data);
    for secret in ["kubeconfig", "pki/ca.key", "pki/apiserver.key", "pki/sa.key"] {
        assert!(made.contains(&(secret.to_owned(), 0o600)), "{secret}: {made:?}");
    }
    let maps: Api<ConfigMap> = Api::namespaced(server.client().await, "default");
    maps.create(&PostParams::default(), &named("kept")).await.unwrap();
    let certificate = std::fs::read(data.join("pki/apiserver.crt")).unwrap();

    let (status, _, folder) = server.terminate();
    assert_eq!(status.code(), Some(0));
    let server = Server::start_in(keelson(), folder, &[]).await;
    assert_eq!(
        std::fs::read(server.folder().join("keelson/pki/apiserver.crt")).unwrap(),
        certificate
    );
    let maps: Api<ConfigMap> = Api::namespaced(server.client().await, "default");
    maps.get("kept").await.unwrap();
}

#[tokio::test]
async fn a_second_server_on_a_folder_leaves_the_first_ones_files_alone() {
    let server = Server::start(keelson(), &[]).await;
    let before = std::fs::read_to_string(&server.kubeconfig).unwrap();
    let port = before
        .split("127.0.0.1:")
        .nth(1)
        .and_then(|rest| rest.split('"').next())
        .unwrap();
    assert!(
        before.contains(&format!("\"current-context\": \"keelson-{port}\"")),
        "{before}"
    );
    let data = server.folder().join("keelson");
    let mut second = std::process::Command::new(keelson());
    second.arg(format!("--data-dir={}", data.display()));
    second.arg(format!("--secure-port={}", free_port()));
    let output = second.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8(output.stderr).unwrap();
    let expected = format!(
        "Error: --data-dir: opening the store: the store is unavailable: {} is in use by another process\n",
        data.join("store").display()
    );
    assert_eq!(told, expected);
    assert_eq!(std::fs::read_to_string(&server.kubeconfig).unwrap(), before);
}

/// What a program says that does not start with these flags.
fn refusal(program: &Path, flags: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let port = format!("--secure-port={}", free_port());
    let output = command(program, folder.path()).arg(port).args(flags).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{flags:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_folder_that_can_not_be_made_is_told_with_its_flag() {
    for backend in ["embedded", "memory"] {
        let told = refusal(
            keelson(),
            &["--data-dir=/proc/foo", &format!("--storage-backend={backend}")],
        );
        assert!(
            told.starts_with("Error: --data-dir: ") && told.contains("/proc/foo/"),
            "{told}"
        );
        assert_eq!(told.lines().count(), 1, "{told}");
    }
}

/// Servers of one's own, without roles and nodes, and one that is built without etcd.
#[test]
fn a_server_of_other_kinds_refuses_what_it_can_not_work_with() {
    let etcd = "--etcd-servers: this program was built without etcd: turn on the feature `etcd` of the crate keelson";
    let modes = "--authorization-mode, --authorization-config: mode";
    for (program, flag, error) in [
        (bookings(), "--etcd-servers=http://127.0.0.1:1", etcd.to_owned()),
        (
            widgets(),
            "--authorization-mode=RBAC",
            format!(
                "{modes} RBAC needs roles, and this server has none: leave it out (administrators may do everything \
                 then, others read what the server says of itself), take ABAC or Webhook, or add `.rbac()` to the server"
            ),
        ),
        (
            widgets(),
            "--authorization-mode=Node",
            format!("{modes} Node needs nodes, and this server has none: leave it out"),
        ),
    ] {
        assert_eq!(refusal(program, &[flag]), format!("Error: {error}\n"), "{flag}");
    }
}

/// Reliability, file permissions: a careless umask gives nobody a key, a stored object or a recorded request.
#[tokio::test]
async fn what_is_written_is_for_its_owner_whatever_the_umask() {
    let tools = tempfile::tempdir().unwrap();
    let program = tools.path().join("careless");
    let script = format!("#!/bin/sh\numask 000\nexec {} \"$@\"\n", keelson().display());
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
    let data = tempfile::tempdir().unwrap();
    let policy = data.path().join("policy.yaml");
    std::fs::write(
        &policy,
        "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n",
    )
    .unwrap();
    let flags = [
        format!("--audit-policy-file={}", policy.display()),
        format!("--audit-log-path={}", data.path().join("events/audit.log").display()),
    ];
    let server = Server::start(&program, &[&flags[0], &flags[1]]).await;
    let maps: Api<ConfigMap> = Api::namespaced(server.client().await, "default");
    maps.create(&PostParams::default(), &named("one")).await.unwrap();
    let mut made = files(&server.folder().join("keelson"));
    made.extend(files(&data.path().join("events")));
    assert!(made.len() > 8, "{made:?}");
    for (name, mode) in &made {
        let public = name.ends_with(".crt") || name.ends_with(".pub");
        assert_eq!(*mode, if public { 0o644 } else { 0o600 }, "{name}: {made:?}");
    }
    for folder in ["keelson", "keelson/pki"]
        .map(|name| server.folder().join(name))
        .into_iter()
        .chain([data.path().join("events")])
    {
        let mode = folder.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o700, "{}", folder.display());
    }
}

#[tokio::test]
async fn sigterm_ends_open_watches_and_the_server() {
    let server = Server::start(keelson(), &["--storage-backend=memory"]).await;
    let maps: Api<ConfigMap> = Api::namespaced(server.client().await, "default");
    let mut watches = Vec::new();
    for _ in 0..5 {
        let mut watch = Box::pin(maps.watch(&WatchParams::default().timeout(290), "0").await.unwrap());
        // Something must have arrived, or the request might not have reached the server yet.
        if watches.is_empty() {
            maps.create(&PostParams::default(), &named("seen")).await.unwrap();
        }
        watch.try_next().await.unwrap().unwrap();
        watches.push(watch);
    }
    let (status, took, _folder) = server.terminate();
    assert_eq!(status.code(), Some(0));
    assert!(took < Duration::from_secs(10), "took {took:?}");
    for mut watch in watches {
        while let Ok(Some(_)) = watch.try_next().await {}
    }
}

#[tokio::test]
async fn a_snapshot_of_a_folder_starts_elsewhere() {
    let server = Server::start(keelson(), &[]).await;
    let maps: Api<ConfigMap> = Api::namespaced(server.client().await, "default");
    maps.create(&PostParams::default(), &named("kept")).await.unwrap();
    let store = |folder: &std::path::Path, arguments: &[&std::ffi::OsStr]| {
        // The default data folder below the one that the server was started with.
        let data = folder.join("keelson");
        let mut command = std::process::Command::new(keelson());
        command.arg("store").args(arguments).arg("--data-dir").arg(data);
        let output = command.output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(text).unwrap())
    };
    let (status, _, folder) = server.terminate();
    assert_eq!(status.code(), Some(0));
    let (code, text) = store(folder.path(), &["check".as_ref()]);
    assert!(code == Some(0) && text.contains("is whole"), "{text}");
    let file = folder.path().join("snapshot");
    let (code, text) = store(folder.path(), &["snapshot".as_ref(), file.as_ref()]);
    assert_eq!(code, Some(0), "{text}");
    let elsewhere = tempfile::tempdir().unwrap();
    for (code, words) in [(0, "restored"), (1, "holds a store already")] {
        let (found, text) = store(elsewhere.path(), &["restore".as_ref(), file.as_ref()]);
        assert!(found == Some(code) && text.contains(words), "{text}");
    }
    let server = Server::start_in(keelson(), elsewhere, &[]).await;
    let maps: Api<ConfigMap> = Api::namespaced(server.client().await, "default");
    maps.get("kept").await.unwrap();
}

#[test]
fn mistakes_are_one_line_and_make_nothing() {
    let busy = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let busy_port = format!("--secure-port={}", busy.local_addr().unwrap().port());
    let port = format!("--secure-port={}", free_port());
    for (flags, names) in [
        (&["--no-such-flag"][..], "unknown flag: --no-such-flag"),
        (&["--secure-port=70000"], "--secure-port"),
        (&["--storage-backend=paper"], "--storage-backend"),
        (&["--client-ca-file=absent.crt"], "--client-ca-file: absent.crt"),
        (
            &["--tls-cert-file=absent.crt", "--tls-private-key-file=absent.key"],
            "--tls-cert-file: absent.crt",
        ),
        (&["--token-auth-file=absent.csv"], "--token-auth-file: absent.csv"),
        (&["--authorization-mode=Sometimes"], "--authorization-mode"),
        (&["--runtime-config=no.such.group/v1=true"], "--runtime-config"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let output = command(keelson(), folder.path())
            .arg(&port)
            .args(flags)
            .output()
            .unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{flags:?}: {text}");
        assert!(text.lines().count() == 1 && text.contains(names), "{flags:?}: {text}");
        assert_eq!(files(folder.path()), [], "{flags:?}");
    }
    let folder = tempfile::tempdir().unwrap();
    let output = command(keelson(), folder.path()).arg(&busy_port).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(
        output.status.code() == Some(1) && text.contains("--secure-port"),
        "{text}"
    );
}

#[test]
fn help_and_version_are_answered_without_a_start() {
    for (flag, part) in [
        ("--help", "\n      --etcd-servers strings "),
        ("-h", "Etcd flags:"),
        ("--version", "Kubernetes v1.36"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let output = command(keelson(), folder.path()).arg(flag).output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        assert!(String::from_utf8(output.stdout).unwrap().contains(part), "{flag}");
        assert_eq!(files(folder.path()), []);
    }
}

#[tokio::test]
async fn tokens_of_a_file_are_users() {
    let tokens = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(
        tokens.path(),
        "secret,alice,uid-alice,\"system:masters\"\nother,bob,uid-bob\n",
    )
    .unwrap();
    let flag = format!("--token-auth-file={}", tokens.path().display());
    let server = Server::start(keelson(), &["--storage-backend=memory", &flag]).await;
    for (token, status) in [("secret", 200), ("other", 403), ("wrong", 401)] {
        let mut file = kube::config::Kubeconfig::read_from(&server.kubeconfig).unwrap();
        file.auth_infos[0].auth_info = serde_json::from_value(serde_json::json!({ "token": token })).unwrap();
        let config = kube::Config::from_custom_kubeconfig(file, &Default::default())
            .await
            .unwrap();
        let maps: Api<ConfigMap> = Api::namespaced(kube::Client::try_from(config).unwrap(), "default");
        let got = match maps.list(&Default::default()).await {
            Ok(_) => 200,
            Err(kube::Error::Api(answer)) => answer.code,
            Err(other) => panic!("{other}"),
        };
        assert_eq!(got, status, "{token}");
    }
}
