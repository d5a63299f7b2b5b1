//! The graph of nodes, their pods, and the objects that these need.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::lister::Place;

/// What a pod may refer to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum ReferenceKind {
    Secret,
    ConfigMap,
    Claim,
    ResourceClaim,
    ServiceAccount,
}

/// An object in the namespace of the pod that refers to it.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Reference {
    pub kind: ReferenceKind,
    pub name: String,
}

/// A pod that is on a node.
#[derive(Clone, Debug)]
pub struct PodNeeds {
    pub node: String,
    /// May name an object twice. Those of a pod that mirrors a file of its node are empty: nobody has checked it.
    pub references: Vec<Reference>,
}

/// A volume that is bound to a claim.
#[derive(Clone, Debug, Default)]
pub struct VolumeNeeds {
    /// Namespace and name.
    pub claim: Option<(String, String)>,
    /// Namespaces and names of the secrets that a node needs to mount it.
    pub secrets: Vec<(String, String)>,
}

/// Namespace and name.
type Key = (Box<str>, Box<str>);
/// Nodes, and how many of their pods.
type Nodes = BTreeMap<Box<str>, usize>;

#[derive(Default)]
pub(super) struct Graph {
    pods: HashMap<Key, PodNeeds>,
    needed: HashMap<ReferenceKind, HashMap<Key, Nodes>>,
    volumes: HashMap<Box<str>, VolumeNeeds>,
    /// The volumes that need a secret.
    secrets: HashMap<Key, BTreeSet<Box<str>>>,
    pub attachments: HashMap<Box<str>, String>,
    pub slices: HashMap<Box<str>, String>,
}

fn key(namespace: &str, name: &str) -> Key {
    (namespace.into(), name.into())
}

impl Graph {
    pub fn put_pod(&mut self, place: &Place, needs: PodNeeds) {
        self.remove_pod(place);
        for reference in distinct(&needs) {
            let of_kind = self.needed.entry(reference.kind).or_default();
            let nodes = of_kind.entry(key(&place.namespace, &reference.name)).or_default();
            *nodes.entry(needs.node.as_str().into()).or_default() += 1;
        }
        self.pods.insert(key(&place.namespace, &place.name), needs);
    }

    pub fn remove_pod(&mut self, place: &Place) {
        let Some(needs) = self.pods.remove(&key(&place.namespace, &place.name)) else {
            return;
        };
        for reference in distinct(&needs) {
            let object = key(&place.namespace, &reference.name);
            let Some(of_kind) = self.needed.get_mut(&reference.kind) else {
                continue;
            };
            let Some(nodes) = of_kind.get_mut(&object) else {
                continue;
            };
            if let Some(count) = nodes.get_mut(needs.node.as_str()) {
                *count -= 1;
                if *count == 0 {
                    nodes.remove(needs.node.as_str());
                }
            }
            if nodes.is_empty() {
                of_kind.remove(&object);
            }
        }
    }

    pub fn clear_pods(&mut self) {
        self.pods.clear();
        self.needed.clear();
    }

    pub fn put_volume(&mut self, name: &str, needs: VolumeNeeds) {
        self.remove_volume(name);
        for (namespace, secret) in &needs.secrets {
            self.secrets
                .entry(key(namespace, secret))
                .or_default()
                .insert(name.into());
        }
        self.volumes.insert(name.into(), needs);
    }

    pub fn remove_volume(&mut self, name: &str) {
        let Some(needs) = self.volumes.remove(name) else { return };
        for (namespace, secret) in &needs.secrets {
            let secret = key(namespace, secret);
            if let Some(volumes) = self.secrets.get_mut(&secret) {
                volumes.remove(name);
                if volumes.is_empty() {
                    self.secrets.remove(&secret);
                }
            }
        }
    }

    pub fn clear_volumes(&mut self) {
        self.volumes.clear();
        self.secrets.clear();
    }

    pub fn has_pod(&self, node: &str, namespace: &str, name: &str) -> bool {
        self.pods
            .get(&key(namespace, name))
            .is_some_and(|needs| needs.node == node)
    }

    /// Whether a pod of the node refers to the object, or to a volume that does.
    pub fn needs(&self, node: &str, kind: ReferenceKind, namespace: &str, name: &str) -> bool {
        let object = key(namespace, name);
        if self.refers(node, kind, &object) {
            return true;
        }
        let volumes = self.secrets.get(&object).filter(|_| kind == ReferenceKind::Secret);
        volumes.into_iter().flatten().any(|volume| self.mounts(node, volume))
    }

    /// Whether a pod of the node has a claim that is bound to the volume.
    pub fn mounts(&self, node: &str, volume: &str) -> bool {
        let claim = self.volumes.get(volume).and_then(|needs| needs.claim.as_ref());
        claim.is_some_and(|(namespace, name)| self.refers(node, ReferenceKind::Claim, &key(namespace, name)))
    }

    fn refers(&self, node: &str, kind: ReferenceKind, object: &Key) -> bool {
        let nodes = self.needed.get(&kind).and_then(|of_kind| of_kind.get(object));
        nodes.is_some_and(|nodes| nodes.contains_key(node))
    }
}

fn distinct(needs: &PodNeeds) -> BTreeSet<&Reference> {
    needs.references.iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(name: &str) -> Place {
        Place {
            namespace: "n".into(),
            name: name.into(),
        }
    }

    fn pod(node: &str, references: &[(ReferenceKind, &str)]) -> PodNeeds {
        let references = references.iter().map(|(kind, name)| Reference {
            kind: *kind,
            name: (*name).to_owned(),
        });
        PodNeeds {
            node: node.into(),
            references: references.collect(),
        }
    }

    #[test]
    fn a_node_needs_what_its_pods_refer_to() {
        use ReferenceKind::{Claim, ConfigMap, Secret};
        let mut graph = Graph::default();
        graph.put_pod(&place("p"), pod("a", &[(Secret, "s"), (Secret, "s"), (Claim, "c")]));
        graph.put_pod(&place("q"), pod("a", &[(Secret, "s")]));
        graph.put_volume(
            "v",
            VolumeNeeds {
                claim: Some(("n".into(), "c".into())),
                secrets: vec![("m".into(), "deep".into())],
            },
        );
        assert!(graph.needs("a", Secret, "n", "s") && !graph.needs("b", Secret, "n", "s"));
        assert!(!graph.needs("a", ConfigMap, "n", "s") && !graph.needs("a", Secret, "m", "s"));
        assert!(graph.mounts("a", "v") && graph.needs("a", Secret, "m", "deep"));
        assert!(graph.has_pod("a", "n", "p") && !graph.has_pod("b", "n", "p"));
        graph.remove_pod(&place("p"));
        assert!(graph.needs("a", Secret, "n", "s"), "another pod needs it");
        assert!(!graph.mounts("a", "v") && !graph.needs("a", Secret, "m", "deep"));
        graph.put_pod(&place("q"), pod("b", &[(Claim, "c")]));
        assert!(!graph.needs("a", Secret, "n", "s") && graph.needs("b", Secret, "m", "deep"));
        graph.remove_volume("v");
        assert!(!graph.needs("b", Secret, "m", "deep"));
    }
}
