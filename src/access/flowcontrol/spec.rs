//! Flow schemas and priority levels as this module knows them. Their objects are read by a [`ReadFlowControl`], since
//! the types of kinds lie above this crate.

use keelson_machinery::object::Object;

use crate::user::{GROUP_AUTHENTICATED, GROUP_MASTERS, GROUP_UNAUTHENTICATED};

/// The API group of both kinds.
pub const GROUP: &str = "flowcontrol.apiserver.k8s.io";
pub const SCHEMAS: &str = "flowschemas";
pub const LEVELS: &str = "prioritylevelconfigurations";

/// The level, and the schema, whose requests never wait.
pub const EXEMPT: &str = "exempt";
/// The level, and the schema, of what no other schema takes.
pub const CATCH_ALL: &str = "catch-all";

/// In lists of names: any.
pub const ANY: &str = "*";

/// Reads the typed objects, which this crate does not know. `None`: it is not the kind that was asked for.
pub trait ReadFlowControl: Send + Sync {
    fn schema(&self, object: &dyn Object) -> Option<Schema>;
    fn level(&self, object: &dyn Object) -> Option<LevelSpec>;
}

/// Which requests belong to a level, and what makes a flow among them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schema {
    pub name: String,
    /// "" for one that is not stored.
    pub uid: String,
    /// The name of its priority level.
    pub level: String,
    /// Lower ones are asked first.
    pub precedence: i32,
    pub distinguisher: Distinguisher,
    pub rules: Vec<Rule>,
}

/// What tells the flows of one schema apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Distinguisher {
    /// All requests are one flow.
    #[default]
    None,
    User,
    Namespace,
}

/// Who may ask for what, to be taken by the schema.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    pub subjects: Vec<Subject>,
    pub resources: Vec<ResourceRule>,
    pub paths: Vec<PathRule>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A user's name, or [`ANY`].
    User(String),
    /// A group's name, or [`ANY`].
    Group(String),
    /// The name may be [`ANY`].
    ServiceAccount { namespace: String, name: String },
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceRule {
    pub verbs: Vec<String>,
    pub groups: Vec<String>,
    /// `pods`, `pods/status`.
    pub resources: Vec<String>,
    /// Requests that name no namespace.
    pub cluster_scope: bool,
    pub namespaces: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathRule {
    pub verbs: Vec<String>,
    /// Paths, with everything below them; a star at the end changes nothing, alone it is everything.
    pub paths: Vec<String>,
}

/// A priority level as configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LevelSpec {
    pub name: String,
    /// "" for one that is not stored.
    pub uid: String,
    pub discipline: Discipline,
    /// The level's part of the server's seats.
    pub shares: u32,
    /// How much of its seats others may use, in percent.
    pub lendable_percent: u32,
    /// How many seats of others it may use, in percent of its own; `None`: any number.
    pub borrowing_percent: Option<u32>,
}

/// What becomes of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discipline {
    /// They are served at once.
    Exempt,
    /// They are turned away when no seat is free.
    Reject,
    /// They wait when no seat is free.
    Queue(Queuing),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queuing {
    pub queues: u32,
    /// How many queues a flow may use.
    pub hand_size: u32,
    /// How many requests may wait in each.
    pub length_limit: u32,
}

impl Rule {
    /// Whatever these ask.
    pub fn of_everything(subjects: Vec<Subject>) -> Rule {
        let any = || vec![ANY.to_owned()];
        Rule {
            subjects,
            resources: vec![ResourceRule {
                verbs: any(),
                groups: any(),
                resources: any(),
                cluster_scope: true,
                namespaces: any(),
            }],
            paths: vec![PathRule {
                verbs: any(),
                paths: any(),
            }],
        }
    }
}

impl Schema {
    /// The two schemas that are always there, whatever the store holds: who repairs a server gets through, and no
    /// request is without a level.
    pub fn mandatory() -> [Schema; 2] {
        let group = |name: &str| Subject::Group(name.to_owned());
        let schema = |name: &str, precedence, distinguisher, subjects| Schema {
            name: name.to_owned(),
            uid: String::new(),
            level: name.to_owned(),
            precedence,
            distinguisher,
            rules: vec![Rule::of_everything(subjects)],
        };
        let everybody = vec![group(GROUP_UNAUTHENTICATED), group(GROUP_AUTHENTICATED)];
        [
            schema(EXEMPT, 1, Distinguisher::None, vec![group(GROUP_MASTERS)]),
            schema(CATCH_ALL, 10_000, Distinguisher::User, everybody),
        ]
    }
}

impl LevelSpec {
    /// The two levels that are always there.
    pub fn mandatory() -> [LevelSpec; 2] {
        let level = |name: &str, discipline, shares| LevelSpec {
            name: name.to_owned(),
            uid: String::new(),
            discipline,
            shares,
            lendable_percent: 0,
            borrowing_percent: None,
        };
        [
            level(EXEMPT, Discipline::Exempt, 0),
            level(CATCH_ALL, Discipline::Reject, 5),
        ]
    }
}
