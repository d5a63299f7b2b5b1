//! Tables of pods and what checks say of them.

use keelson_api::core::v1::Pod;

use super::*;
use crate::testing::read;

fn told(demand: Demand, pod: &str) -> String {
    let pod: Pod = read(pod);
    let subject = Subject {
        metadata: &pod.metadata,
        spec: &pod.spec,
    };
    details(&findings(demand, &subject))
}

fn demand(level: Level, version: Version) -> Demand {
    Demand { level, version }
}

/// A pod of one container.
fn with(spec: &str, container: &str) -> String {
    format!(r#"{{"spec":{{"containers":[{{"name":"c"{container}}}]{spec}}}}}"#)
}

#[test]
fn baseline_pods_stay_in_their_containers() {
    let latest = demand(Level::Baseline, Version::Latest);
    for (spec, container, expected) in [
        ("", "", ""),
        (
            r#","hostNetwork":true,"hostIPC":true"#,
            "",
            "host namespaces (hostNetwork=true, hostIPC=true)",
        ),
        (
            r#","volumes":[{"name":"v","hostPath":{"path":"/"}},{"name":"w","emptyDir":{}}]"#,
            "",
            "hostPath volumes (volume \"v\")",
        ),
        (
            "",
            r#","ports":[{"containerPort":1,"hostPort":80},{"containerPort":2,"hostPort":443}]"#,
            "hostPort (container \"c\" uses hostPorts 443, 80)",
        ),
        (
            "",
            r#","securityContext":{"privileged":true,"procMount":"Unmasked","capabilities":{"add":["SYS_ADMIN","KILL"]}}"#,
            "non-default capabilities (container \"c\" must not include \"SYS_ADMIN\" in securityContext.capabilities.add), \
             privileged (container \"c\" must not set securityContext.privileged=true), \
             procMount (container \"c\" must not set securityContext.procMount to \"Unmasked\")",
        ),
        (
            r#","securityContext":{"seLinuxOptions":{"type":"x","user":"u"},"sysctls":[{"name":"a"},{"name":"b"}]}"#,
            "",
            "seLinuxOptions (pod set forbidden securityContext.seLinuxOptions: type \"x\"; user may not be set), \
             forbidden sysctls (a, b)",
        ),
        (
            r#","securityContext":{"seccompProfile":{"type":"Unconfined"},"appArmorProfile":{"type":"Unconfined"}}"#,
            r#","securityContext":{"windowsOptions":{"hostProcess":true},"appArmorProfile":{"type":"X"}}"#,
            "forbidden AppArmor profiles (pod and container \"c\" must not set AppArmor profile type to \"Unconfined\", \
             \"X\"), seccompProfile (pod must not set securityContext.seccompProfile.type to \"Unconfined\"), \
             hostProcess (container \"c\" must not set securityContext.windowsOptions.hostProcess=true)",
        ),
        (
            "",
            r#","livenessProbe":{"httpGet":{"host":"b","port":1}},"lifecycle":{"preStop":{"tcpSocket":{"host":"a","port":1}}}"#,
            "probe or lifecycle host (container \"c\" uses probe or lifecycle hosts \"a\", \"b\")",
        ),
        (
            r#","hostUsers":false"#,
            r#","securityContext":{"procMount":"Unmasked"}"#,
            "",
        ),
    ] {
        assert_eq!(told(latest, &with(spec, container)), expected, "{spec} {container}");
        assert_eq!(told(Demand::NOTHING, &with(spec, container)), "");
    }
}

#[test]
fn restricted_pods_say_that_they_need_nothing() {
    let latest = demand(Level::Restricted, Version::Latest);
    let fine = r#","securityContext":{"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]},
                   "runAsNonRoot":true,"seccompProfile":{"type":"RuntimeDefault"}}"#;
    assert_eq!(told(latest, &with("", fine)), "");
    assert_eq!(
        told(latest, &with("", "")),
        "allowPrivilegeEscalation != false (container \"c\" must set securityContext.allowPrivilegeEscalation=false), \
         unrestricted capabilities (container \"c\" must set securityContext.capabilities.drop=[\"ALL\"]), \
         runAsNonRoot != true (pod or container \"c\" must set securityContext.runAsNonRoot=true), \
         seccompProfile (pod or container \"c\" must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \
         \"Localhost\")"
    );
    let volumes = r#","volumes":[{"name":"v","hostPath":{"path":"/"}},{"name":"w","nfs":{"server":"s","path":"/"}},{"name":"x"}]"#;
    assert_eq!(
        told(latest, &with(volumes, fine)),
        "restricted volume types (volumes \"v\", \"w\", \"x\" use restricted volume types \"hostPath\", \"nfs\", \"unknown\")"
    );
    let root = r#","securityContext":{"runAsUser":0,"runAsNonRoot":false}"#;
    let users = told(latest, &with(root, fine));
    assert_eq!(
        users,
        "runAsNonRoot != true (pod must not set securityContext.runAsNonRoot=false), \
         runAsUser=0 (pod must not set runAsUser=0)"
    );
    let own = format!(r#"{root},"hostUsers":false"#);
    assert_eq!(told(latest, &with(&own, fine)), "", "users of the pod's own");
    let windows = told(latest, &with(r#","os":{"name":"windows"}"#, ""));
    assert_eq!(
        windows,
        "runAsNonRoot != true (pod or container \"c\" must set securityContext.runAsNonRoot=true)"
    );
    let adds = r#","securityContext":{"allowPrivilegeEscalation":false,"capabilities":{"add":["KILL","NET_BIND_SERVICE"]},
                   "runAsNonRoot":true,"seccompProfile":{"type":"RuntimeDefault"}}"#;
    assert_eq!(
        told(latest, &with("", adds)),
        "unrestricted capabilities (container \"c\" must set securityContext.capabilities.drop=[\"ALL\"]; container \"c\" must \
         not include \"KILL\" in securityContext.capabilities.add)"
    );
}

#[test]
fn rules_are_those_of_their_version() {
    for (version, level, spec, expected) in [
        (7, Level::Restricted, "", "runAsNonRoot != true"),
        (
            8,
            Level::Restricted,
            "",
            "allowPrivilegeEscalation != false, runAsNonRoot != true",
        ),
        (
            22,
            Level::Restricted,
            "",
            "allowPrivilegeEscalation != false, unrestricted capabilities, runAsNonRoot != true, seccompProfile",
        ),
        (
            18,
            Level::Baseline,
            r#","securityContext":{"seccompProfile":{"type":"Unconfined"}}"#,
            "",
        ),
        (
            19,
            Level::Baseline,
            r#","securityContext":{"seccompProfile":{"type":"Unconfined"}}"#,
            "seccompProfile",
        ),
        (
            26,
            Level::Baseline,
            r#","securityContext":{"sysctls":[{"name":"net.ipv4.ip_local_reserved_ports"}]}"#,
            "forbidden sysctls",
        ),
        (
            27,
            Level::Baseline,
            r#","securityContext":{"sysctls":[{"name":"net.ipv4.ip_local_reserved_ports"}]}"#,
            "",
        ),
        (
            30,
            Level::Baseline,
            r#","securityContext":{"seLinuxOptions":{"type":"container_engine_t"}}"#,
            "seLinuxOptions",
        ),
        (
            99,
            Level::Baseline,
            r#","securityContext":{"seLinuxOptions":{"type":"container_engine_t"}}"#,
            "",
        ),
    ] {
        let pod: Pod = read(&with(spec, ""));
        let subject = Subject {
            metadata: &pod.metadata,
            spec: &pod.spec,
        };
        let found = findings(demand(level, Version::Minor(version)), &subject);
        assert_eq!(reasons(&found), expected, "v1.{version} {spec}");
    }
}

#[test]
fn annotations_of_old_count_as_long_as_they_did() {
    let pod = r#"{"metadata":{"annotations":{
        "container.apparmor.security.beta.kubernetes.io/c":"unconfined",
        "seccomp.security.alpha.kubernetes.io/pod":"unconfined",
        "container.seccomp.security.alpha.kubernetes.io/c":"localhost/x"}},"spec":{"containers":[{"name":"c"}]}}"#;
    let app_armor = "forbidden AppArmor profile (annotation must not set AppArmor profile type to \
                     \"container.apparmor.security.beta.kubernetes.io/c=\"unconfined\"\")";
    assert_eq!(told(demand(Level::Baseline, Version::Latest), pod), app_armor);
    assert_eq!(
        told(demand(Level::Baseline, Version::Minor(18)), pod),
        format!(
            "{app_armor}, seccompProfile (forbidden annotation seccomp.security.alpha.kubernetes.io/pod=\"unconfined\")"
        )
    );
}

#[test]
fn every_container_counts() {
    let bad = r#""securityContext":{"privileged":true}"#;
    let pod = format!(
        r#"{{"spec":{{"containers":[{{"name":"c",{bad}}}],"initContainers":[{{"name":"i",{bad}}}],
            "ephemeralContainers":[{{"name":"e",{bad}}}]}}}}"#
    );
    assert_eq!(
        told(demand(Level::Baseline, Version::Latest), &pod),
        "privileged (containers \"i\", \"c\", \"e\" must not set securityContext.privileged=true)"
    );
}
