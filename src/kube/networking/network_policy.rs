//! Network policies.

use keelson_api::networking_k8s_io::v1::{
    IPBlock, NetworkPolicy, NetworkPolicyPeer, NetworkPolicyPort, NetworkPolicySpec,
};
use keelson_machinery::field::{ErrorList, Path};
use keelson_machinery::intstr::IntOrString;
use keelson_registry::{Context, KindCode, Strategy};

use crate::cells;
use crate::cidr::{self, Cidr};
use crate::faults::{self, Faults};
use crate::metadata;

const INGRESS: &str = "Ingress";
const EGRESS: &str = "Egress";

/// Registers the rules of network policies.
pub fn register(code: &mut KindCode) {
    code.kind::<NetworkPolicy>()
        .strategy(NetworkPolicyStrategy)
        .defaults(defaults)
        .metadata_checks(metadata::CHANGE)
        .cells(cells::networking::NETWORK_POLICY);
}

/// The rules of network policies.
struct NetworkPolicyStrategy;

impl Strategy for NetworkPolicyStrategy {
    type Object = NetworkPolicy;

    fn warnings(&self, new: &NetworkPolicy, _old: Option<&NetworkPolicy>) -> Vec<String> {
        let mut found = Vec::new();
        for (path, block) in blocks(&new.spec) {
            found.extend(cidr::warnings(&block.cidr, &path.child("cidr")));
            for (place, except) in block.except.iter().enumerate() {
                found.extend(cidr::warnings(except, &path.child("except").index(place)));
            }
        }
        found
    }

    fn validate(&self, _context: &Context, new: &NetworkPolicy, old: Option<&NetworkPolicy>) -> ErrorList {
        let stored = old.map_or_else(Stored::default, |old| Stored::of(&old.spec));
        faults::of_spec(|f| check(f, &new.spec, &stored))
    }
}

/// What is let through since it was before.
#[derive(Default)]
struct Stored<'a> {
    /// Values of labels that are none.
    bad_values: bool,
    /// Ranges of addresses, however they are written.
    ranges: Vec<&'a str>,
}

impl<'a> Stored<'a> {
    fn of(old: &'a NetworkPolicySpec) -> Stored<'a> {
        let blocks = blocks(old).into_iter().map(|(_, block)| block);
        let ranges = blocks.flat_map(|block| std::iter::once(&block.cidr).chain(&block.except));
        Stored {
            bad_values: faults::are_in(|f| f.selector("", Some(&old.pod_selector))),
            ranges: ranges.map(String::as_str).collect(),
        }
    }
}

/// The blocks of addresses of a policy, each of them with its path.
fn blocks(spec: &NetworkPolicySpec) -> Vec<(Path, &IPBlock)> {
    let path = Path::new("spec");
    let ingress = spec.ingress.iter().map(|rule| &rule.from).enumerate();
    let ingress = ingress.map(|(i, peers)| (path.child("ingress").index(i).child("from"), peers));
    let egress = spec.egress.iter().map(|rule| &rule.to).enumerate();
    let egress = egress.map(|(i, peers)| (path.child("egress").index(i).child("to"), peers));
    let mut found = Vec::new();
    for (path, peers) in ingress.chain(egress) {
        let blocks = peers
            .iter()
            .enumerate()
            .filter_map(|(i, peer)| Some((i, peer.ip_block.as_deref()?)));
        found.extend(blocks.map(|(i, block)| (path.index(i).child("ipBlock"), block)));
    }
    found
}

fn check(f: &mut Faults<'_>, spec: &NetworkPolicySpec, stored: &Stored<'_>) {
    f.selector_as_stored("podSelector", Some(&spec.pod_selector), stored.bad_values);
    f.each("ingress", &spec.ingress, |f, rule| {
        f.each("ports", &rule.ports, port);
        f.each("from", &rule.from, |f, one| peer(f, one, stored));
    });
    f.each("egress", &spec.egress, |f, rule| {
        f.each("ports", &rule.ports, port);
        f.each("to", &rule.to, |f, one| peer(f, one, stored));
    });
    if spec.policy_types.len() > 2 {
        let types = spec.policy_types.as_slice();
        f.at("policyTypes")
            .invalid(types, "may not specify more than two policyTypes");
        return;
    }
    f.each("policyTypes", &spec.policy_types, |f, name| {
        f.one_of(name, &[INGRESS, EGRESS])
    });
}

fn port(f: &mut Faults<'_>, port: &NetworkPolicyPort) {
    if let Some(protocol) = port.protocol.as_deref() {
        f.at("protocol").one_of(protocol, &["TCP", "UDP", "SCTP"]);
    }
    // kube-apiserver looks at the port itself before the other end, but for a name.
    if let Some(first @ IntOrString::Int(_)) = &port.port {
        f.at("port").port_or_name(first);
    }
    if let Some(last) = port.end_port {
        end_port(&mut f.at("endPort"), last, port.port.as_ref());
    }
    if let Some(first @ IntOrString::String(_)) = &port.port {
        f.at("port").port_or_name(first);
    }
}

fn end_port(f: &mut Faults<'_>, last: i32, first: Option<&IntOrString>) {
    match first {
        Some(IntOrString::Int(first)) => {
            f.invalid_if(last < *first, *first, "must be greater than or equal to `port`");
            f.port(last);
        }
        Some(IntOrString::String(_)) => f.invalid(last, "may not be specified when `port` is non-numeric"),
        None => f.invalid(last, "may not be specified when `port` is not specified"),
    }
}

fn peer(f: &mut Faults<'_>, peer: &NetworkPolicyPeer, stored: &Stored<'_>) {
    let selectors = [
        ("podSelector", peer.pod_selector.as_deref()),
        ("namespaceSelector", peer.namespace_selector.as_deref()),
    ];
    for (name, selector) in selectors {
        f.selector_as_stored(name, selector, stored.bad_values);
    }
    f.some("ipBlock", peer.ip_block.as_deref(), |f, block| {
        ip_block(f, block, stored)
    });
    let has_selector = selectors.iter().any(|(_, selector)| selector.is_some());
    match (has_selector, peer.ip_block.is_some()) {
        (false, false) => f.required("must specify a peer"),
        (true, true) => f.forbidden("may not specify both ipBlock and another peer"),
        _ => {}
    }
}

/// A range of addresses but for some that it has.
fn ip_block(f: &mut Faults<'_>, block: &IPBlock, stored: &Stored<'_>) {
    if !f.at("cidr").filled(&block.cidr) {
        return;
    }
    f.at("cidr").range(&block.cidr, &stored.ranges);
    let Some(range) = Cidr::parse(&block.cidr) else { return };
    f.each("except", &block.except, |f, text| {
        f.range(text, &stored.ranges);
        if Cidr::parse(text).is_some_and(|except| !is_within(except, range)) {
            f.invalid(text, "must be a strict subset of `cidr`");
        }
    });
}

/// Whether all of a range lies in another, larger one.
fn is_within(range: Cidr, outer: Cidr) -> bool {
    let widened = Cidr {
        bits: outer.bits,
        ..range.masked()
    };
    range.address.is_ipv4() == outer.address.is_ipv4()
        && range.bits > outer.bits
        && widened.masked().address == outer.masked().address
}

/// Defaults in code of network policies: a policy is always about what comes in, and about what goes out if it has
/// rules for that.
fn defaults(o: &mut NetworkPolicy) {
    let spec = &mut o.spec;
    if spec.policy_types.is_empty() {
        spec.policy_types.push(INGRESS.to_owned());
        if !spec.egress.is_empty() {
            spec.policy_types.push(EGRESS.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{context, lines, read};

    #[test]
    fn types_follow_the_rules() {
        for (spec, expected) in [
            ("{}", vec![INGRESS]),
            (r#"{"egress":[]}"#, vec![INGRESS]),
            (r#"{"egress":[{}]}"#, vec![INGRESS, EGRESS]),
            (r#"{"policyTypes":["Egress"],"ingress":[{}]}"#, vec![EGRESS]),
        ] {
            let mut o: NetworkPolicy = read(&format!(r#"{{"spec":{spec}}}"#));
            defaults(&mut o);
            assert_eq!(o.spec.policy_types, expected, "{spec}");
        }
    }

    #[test]
    fn peers_and_ports_fit_together() {
        let policy = |rule: &str| read::<NetworkPolicy>(&format!(r#"{{"spec":{{"ingress":[{rule}]}}}}"#));
        for (rule, expected) in [
            (
                r#"{"from":[{"podSelector":{},"namespaceSelector":{}}],"ports":[{"port":80,"endPort":90}]}"#,
                "",
            ),
            (r#"{"from":[{}]}"#, "from[0]: Required value: must specify a peer"),
            (
                r#"{"from":[{"podSelector":{},"ipBlock":{"cidr":"10.0.0.0/8"}}]}"#,
                "from[0]: Forbidden: may not specify both ipBlock and another peer",
            ),
            (
                r#"{"from":[{"ipBlock":{"cidr":"10.0.0.0/8","except":["10.1.0.0/16","10.0.0.0/8","11.1.0.0/16"]}}]}"#,
                "from[0].ipBlock.except[1]: Invalid value: \"10.0.0.0/8\": must be a strict subset of `cidr`\n\
                 from[0].ipBlock.except[2]: Invalid value: \"11.1.0.0/16\": must be a strict subset of `cidr`",
            ),
            (
                r#"{"ports":[{"port":"http","endPort":3},{"endPort":3},{"port":5,"endPort":3,"protocol":"x"}]}"#,
                "ports[0].endPort: Invalid value: 3: may not be specified when `port` is non-numeric\n\
                 ports[1].endPort: Invalid value: 3: may not be specified when `port` is not specified\n\
                 ports[2].protocol: Unsupported value: \"x\": supported values: \"TCP\", \"UDP\", \"SCTP\"\n\
                 ports[2].endPort: Invalid value: 5: must be greater than or equal to `port`",
            ),
        ] {
            let found = lines(&NetworkPolicyStrategy.validate(&context(), &policy(rule), None));
            assert_eq!(found.replace("spec.ingress[0].", ""), expected, "{rule}");
        }
        let old = policy(r#"{"from":[{"ipBlock":{"cidr":"10.0.0.1/8"}}]}"#);
        assert_eq!(NetworkPolicyStrategy.warnings(&old, None).len(), 1);
        assert!(!NetworkPolicyStrategy.validate(&context(), &old, None).is_empty());
        assert!(NetworkPolicyStrategy.validate(&context(), &old, Some(&old)).is_empty());
    }
}
