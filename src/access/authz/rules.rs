//! Rules of a user, for SelfSubjectRulesReview.

/// Verbs on resources.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ResourceRule {
    pub verbs: Vec<String>,
    pub groups: Vec<String>,
    pub resources: Vec<String>,
    /// Empty: objects of any name.
    pub names: Vec<String>,
}

/// Verbs on paths that are no resources; a path may end in `*`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PathRule {
    pub verbs: Vec<String>,
    pub paths: Vec<String>,
}

/// The permissions of a user in a namespace.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Rules {
    pub resources: Vec<ResourceRule>,
    pub paths: Vec<PathRule>,
    /// There may be more than the lists say.
    pub incomplete: bool,
    /// What went wrong while the lists were made.
    pub errors: Vec<String>,
}

impl Rules {
    /// All verbs on everything.
    pub fn everything() -> Rules {
        let any = || vec!["*".to_owned()];
        Rules {
            resources: vec![ResourceRule {
                verbs: any(),
                groups: any(),
                resources: any(),
                names: Vec::new(),
            }],
            paths: vec![PathRule {
                verbs: any(),
                paths: any(),
            }],
            ..Rules::default()
        }
    }

    /// Adds the rules of another authorizer.
    pub fn append(&mut self, mut other: Rules) {
        self.resources.append(&mut other.resources);
        self.paths.append(&mut other.paths);
        self.errors.append(&mut other.errors);
        self.incomplete |= other.incomplete;
    }
}
