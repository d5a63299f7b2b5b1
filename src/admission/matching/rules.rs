//! Rules: groups, versions, resources, operations and scope of the requests that are meant.

use keelson_api::admissionregistration_k8s_io::v1::{NamedRuleWithOperations, RuleWithOperations};
use keelson_machinery::scheme::KindRef;
use keelson_registry::admission::Operation;

const ALL: &str = "*";

/// What rules see of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    pub operation: Operation,
    pub group: &'a str,
    pub version: &'a str,
    pub plural: &'a str,
    /// "": the resource itself.
    pub subresource: &'a str,
    /// It names a namespace, be it the one that it is about.
    pub in_namespace: bool,
}

impl Asked<'_> {
    fn is_of_namespaces(&self) -> bool {
        (self.group, self.version, self.plural) == ("", "v1", "namespaces")
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Scope {
    All,
    Cluster,
    Namespaced,
    /// It says something else, and means nothing.
    Other,
}

/// One rule.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    operations: Vec<Operation>,
    groups: Vec<String>,
    versions: Vec<String>,
    /// Resources and subresources.
    resources: Vec<(String, String)>,
    scope: Scope,
    /// Empty: objects of any name.
    names: Vec<String>,
}

impl Rule {
    pub fn new(rule: &RuleWithOperations) -> Rule {
        let says = |operation: &Operation| {
            let mut words = rule.operations.iter();
            words.any(|word| word == ALL || word == operation.word())
        };
        let split = |name: &String| match name.split_once('/') {
            Some((resource, subresource)) => (resource.to_owned(), subresource.to_owned()),
            None => (name.clone(), String::new()),
        };
        let rule_ = &rule.rule;
        Rule {
            operations: Operation::ALL.into_iter().filter(says).collect(),
            groups: rule_.api_groups.clone(),
            versions: rule_.api_versions.clone(),
            resources: rule_.resources.iter().map(split).collect(),
            scope: match rule_.scope.as_deref() {
                None | Some(ALL) => Scope::All,
                Some("Cluster") => Scope::Cluster,
                Some("Namespaced") => Scope::Namespaced,
                Some(_) => Scope::Other,
            },
            names: Vec::new(),
        }
    }

    pub fn named(rule: &NamedRuleWithOperations) -> Rule {
        Rule {
            names: rule.resource_names.clone(),
            ..Rule::new(&rule.rule_with_operations)
        }
    }

    fn matches(&self, asked: &Asked<'_>) -> bool {
        let one = |items: &[String], wanted: &str| items.iter().any(|item| item == ALL || item == wanted);
        let part = |said: &str, wanted: &str| said == ALL || said == wanted;
        let mut resources = self.resources.iter();
        let scope = match self.scope {
            Scope::All => true,
            Scope::Namespaced => !asked.is_of_namespaces() && asked.in_namespace,
            Scope::Cluster => asked.is_of_namespaces() || !asked.in_namespace,
            Scope::Other => false,
        };
        scope
            && self.operations.contains(&asked.operation)
            && one(&self.groups, asked.group)
            && one(&self.versions, asked.version)
            && resources.any(|(resource, sub)| part(resource, asked.plural) && part(sub, asked.subresource))
    }
}

/// The rules of one configuration.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    /// What is meant; `None`: everything.
    pub include: Option<Vec<Rule>>,
    /// What of that is not meant.
    pub exclude: Vec<Rule>,
    /// Requests of other versions of the same objects are meant too.
    pub equivalent: bool,
}

/// What rules say about requests of one kind: it may hang on the name of the object.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    excluded: Vec<Vec<String>>,
    /// In their order, each with the kind in whose version the object is to be shown.
    included: Vec<(Vec<String>, KindRef)>,
}

impl Outcome {
    /// The kind in whose version an object of this name is to be shown; `None`: it is not meant.
    pub fn of(&self, name: &str) -> Option<&KindRef> {
        let has = |names: &[String]| names.is_empty() || names.iter().any(|known| known == name);
        if self.excluded.iter().any(|names| has(names)) {
            return None;
        }
        let found = self.included.iter().find(|(names, _)| has(names));
        found.map(|(_, kind)| kind)
    }
}

impl Rules {
    /// What they say about requests of a kind; `None`: none is meant. `others` are the kinds that show the same
    /// objects.
    pub fn outcome(&self, asked: &Asked<'_>, own: &KindRef, others: &[KindRef]) -> Option<Outcome> {
        let excluded: Vec<Vec<String>> = self
            .matching(&self.exclude, asked, own, others)
            .map(|(names, _)| names)
            .collect();
        if excluded.iter().any(Vec::is_empty) {
            return None;
        }
        let included: Vec<_> = match &self.include {
            None => vec![(Vec::new(), own.clone())],
            Some(rules) => self.matching(rules, asked, own, others).collect(),
        };
        (!included.is_empty()).then_some(Outcome { excluded, included })
    }

    /// The rules that match: first those that name the kind of the request itself.
    fn matching<'a>(
        &self,
        rules: &'a [Rule],
        asked: &'a Asked<'a>,
        own: &'a KindRef,
        others: &'a [KindRef],
    ) -> impl Iterator<Item = (Vec<String>, KindRef)> + use<'a> {
        let direct = rules.iter().filter(|rule| rule.matches(asked));
        let direct = direct.map(|rule| (rule.names.clone(), own.clone()));
        let others = if self.equivalent { others } else { &[] };
        let as_other = |kind: &'a KindRef| Asked {
            group: &kind.group,
            version: &kind.version,
            plural: &kind.plural,
            ..*asked
        };
        let indirect = rules.iter().flat_map(move |rule| {
            let fitting = others.iter().filter(move |kind| rule.matches(&as_other(kind)));
            fitting.map(|kind| (rule.names.clone(), kind.clone()))
        });
        direct.chain(indirect)
    }
}

#[cfg(test)]
mod tests {
    use keelson_api::SCHEME;

    use super::*;

    fn rule(operations: &[&str], group: &str, version: &str, resource: &str, scope: Option<&str>) -> Rule {
        let mut rule = RuleWithOperations {
            operations: operations.iter().map(|word| (*word).to_owned()).collect(),
            ..RuleWithOperations::default()
        };
        rule.rule.api_groups = vec![group.to_owned()];
        rule.rule.api_versions = vec![version.to_owned()];
        rule.rule.resources = vec![resource.to_owned()];
        rule.rule.scope = scope.map(str::to_owned);
        Rule::new(&rule)
    }

    const PODS: Asked<'_> = Asked {
        operation: Operation::Create,
        group: "",
        version: "v1",
        plural: "pods",
        subresource: "",
        in_namespace: true,
    };

    #[test]
    fn rules_match_requests() {
        let status = Asked {
            subresource: "status",
            ..PODS
        };
        let cluster = Asked {
            plural: "nodes",
            in_namespace: false,
            ..PODS
        };
        let namespace = Asked {
            plural: "namespaces",
            ..PODS
        };
        for (rule, asked, want) in [
            (rule(&["CREATE"], "", "v1", "pods", None), PODS, true),
            (rule(&["UPDATE", "DELETE"], "", "v1", "pods", None), PODS, false),
            (rule(&["*"], "*", "*", "*", Some("*")), PODS, true),
            (rule(&["*"], "*", "*", "*", None), status, false),
            (rule(&["*"], "*", "*", "*/*", None), status, true),
            (rule(&["*"], "*", "*", "*/*", None), PODS, true),
            (rule(&["*"], "", "v1", "pods/*", None), PODS, true),
            (rule(&["*"], "", "v1", "pods/status", None), PODS, false),
            (rule(&["*"], "", "v1", "*/status", None), status, true),
            (rule(&["*"], "apps", "v1", "*", None), PODS, false),
            (rule(&["*"], "", "v2", "*", None), PODS, false),
            (rule(&["*"], "", "v1", "*", Some("Namespaced")), PODS, true),
            (rule(&["*"], "", "v1", "*", Some("Cluster")), PODS, false),
            (rule(&["*"], "", "v1", "*", Some("Cluster")), cluster, true),
            (rule(&["*"], "", "v1", "*", Some("Namespaced")), cluster, false),
            (rule(&["*"], "", "v1", "*", Some("Cluster")), namespace, true),
            (rule(&["*"], "", "v1", "*", Some("Namespaced")), namespace, false),
            (rule(&["*"], "", "v1", "*", Some("x")), PODS, false),
        ] {
            assert_eq!(rule.matches(&asked), want, "{rule:?} {asked:?}");
        }
    }

    fn autoscalers() -> (KindRef, KindRef) {
        let group = SCHEME.groups.iter().find(|group| group.name == "autoscaling").unwrap();
        let kind = |version: &str| {
            let version = group.versions.iter().find(|known| known.version == version).unwrap();
            let kind = version
                .kinds
                .iter()
                .find(|kind| kind.plural == "horizontalpodautoscalers");
            KindRef::from(kind.unwrap())
        };
        (kind("v2"), kind("v1"))
    }

    #[test]
    fn the_kind_of_the_request_comes_before_others() {
        let (own, other) = autoscalers();
        let asked = Asked {
            group: "autoscaling",
            version: "v2",
            plural: "horizontalpodautoscalers",
            ..PODS
        };
        let of = |versions: &[&str], equivalent: bool| {
            let rules = versions
                .iter()
                .map(|version| rule(&["*"], "autoscaling", version, "*", None));
            let rules = Rules {
                include: Some(rules.collect()),
                exclude: Vec::new(),
                equivalent,
            };
            let outcome = rules.outcome(&asked, &own, std::slice::from_ref(&other));
            outcome.map(|outcome| outcome.of("a").unwrap().version.to_string())
        };
        assert_eq!(of(&["v1"], true).as_deref(), Some("v1"));
        assert_eq!(of(&["v1"], false), None);
        assert_eq!(of(&["v1", "v2"], true).as_deref(), Some("v2"));
        assert_eq!(of(&[], true), None);
    }

    #[test]
    fn names_narrow_rules_and_exclusions() {
        let (own, _) = autoscalers();
        let named = |names: &[&str]| Rule {
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            ..rule(&["*"], "", "v1", "pods", None)
        };
        let of = |include: Option<Vec<Rule>>, exclude: Vec<Rule>, name: &str| {
            let rules = Rules {
                include,
                exclude,
                equivalent: false,
            };
            let outcome = rules.outcome(&PODS, &own, &[]);
            outcome.is_some_and(|outcome| outcome.of(name).is_some())
        };
        assert!(of(None, Vec::new(), "a"));
        assert!(!of(Some(Vec::new()), Vec::new(), "a"));
        assert!(of(Some(vec![named(&["a"])]), Vec::new(), "a"));
        assert!(!of(Some(vec![named(&["a"])]), Vec::new(), "b"));
        assert!(!of(None, vec![named(&["a"])], "a"));
        assert!(of(None, vec![named(&["a"])], "b"));
        assert!(!of(None, vec![named(&[])], "b"));
    }
}
