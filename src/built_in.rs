//! Groups of built-in kinds that a server of other kinds may have, by one line each.

use std::sync::Arc;

use keelson_access::authz::rbac::Rbac;
use keelson_extensions::ConversionMetrics;
use keelson_kube::{BuiltIn, CodeOptions, builtin, coordination};
use keelson_machinery::scheme::Scheme;
use keelson_options::Settings;
use keelson_server::server::ShowMetrics;

use crate::Server;

impl Server {
    /// Adds namespaces, with `default` and those of the system. Without them every name of one is as good as any other.
    /// What is in a namespace that is deleted goes with it.
    #[must_use]
    pub fn namespaces(mut self) -> Server {
        self.elects = true;
        self.with(BuiltIn::Namespaces)
    }

    /// Adds roles and bindings, with the default ones, and has them decide. Without them (and without another
    /// `--authorization-mode`) administrators may do everything, and others read what the server says of itself.
    #[must_use]
    pub fn rbac(self) -> Server {
        self.with(BuiltIn::Rbac)
    }

    /// Adds the reviews of authentication and authorization: `kubectl auth whoami` and `kubectl auth can-i`.
    #[must_use]
    pub fn reviews(self) -> Server {
        self.with(BuiltIn::Reviews)
    }

    /// Adds leases, by which controllers outside of the server elect a leader.
    #[must_use]
    pub fn leases(self) -> Server {
        self.with(BuiltIn::Leases)
    }

    /// Adds events, as controllers report them.
    #[must_use]
    pub fn events(self) -> Server {
        self.with(BuiltIn::Events)
    }

    /// Adds CustomResourceDefinitions, and serves what they define.
    #[must_use]
    pub fn custom_resources(mut self) -> Server {
        self.elects = true;
        self.with(BuiltIn::CustomResources)
    }

    fn with(mut self, group: BuiltIn) -> Server {
        if !self.built_in.contains(&group) {
            self.built_in.push(group);
        }
        self
    }

    /// The kinds of all builds, and those that are built in.
    pub(crate) fn schemes(&self) -> Vec<&'static Scheme> {
        let chosen = (self.kubernetes.is_none() && !self.built_in.is_empty()).then(|| builtin::scheme(&self.built_in));
        let whole = self.kubernetes.map(|all| all.scheme);
        whole
            .into_iter()
            .chain(self.schemes.iter().copied())
            .chain(chosen)
            .collect()
    }

    /// What reads roles, on a server that has them.
    pub(crate) fn roles(&self) -> Option<Arc<Rbac>> {
        let has_roles = self.kubernetes.is_some() || self.built_in.contains(&BuiltIn::Rbac);
        has_roles.then(|| Arc::new(Rbac::new(keelson_kube::rbac::Reader)))
    }

    /// Registers the code of built-in kinds.
    pub(crate) fn register_built_in(&mut self, options: &CodeOptions) {
        match self.kubernetes {
            Some(all) => self.code.merge((all.code)(options)),
            None if self.built_in.is_empty() => {}
            None => self.code.merge(builtin::code(&self.built_in, options)),
        }
        if self.has_custom_resources() {
            self.code.merge(keelson_extensions::code());
        }
    }

    fn has_custom_resources(&self) -> bool {
        self.kubernetes.is_some() || self.built_in.contains(&BuiltIn::CustomResources)
    }

    /// Adds what built-in kinds need when the server starts, in front of what others want; shows what that counts.
    /// `is_shared`: several servers may have the store.
    pub(crate) fn install_built_in(&mut self, settings: &Settings, is_shared: bool) -> Vec<ShowMetrics> {
        if self.elects && is_shared && !coordination::is_among(&self.schemes()) {
            self.built_in.push(BuiltIn::Leases);
        }
        self.register_built_in(&CodeOptions {
            event_time_to_live: settings.kubernetes.event_time_to_live,
            services: settings.services(),
        });
        let mut hooks = match self.kubernetes {
            Some(all) => (all.hooks)(&settings.bootstrap()),
            None => builtin::hooks(&self.built_in),
        };
        let mut metrics: Vec<ShowMetrics> = Vec::new();
        if self.has_custom_resources() {
            let conversions = ConversionMetrics::default();
            let webhooks = settings.egress.cluster.clone();
            hooks.extend(keelson_extensions::hooks(webhooks, conversions.clone()));
            metrics.push(Box::new(move |registry| conversions.register(registry)));
        }
        self.hooks.splice(0..0, hooks);
        metrics
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestServer;

    fn empty() -> Server {
        Server::new("own")
    }

    /// A server is started when all that its groups make is there.
    #[test]
    fn groups_start_alone_and_together() {
        let alone: [fn(Server) -> Server; 6] = [
            Server::namespaces,
            Server::rbac,
            Server::reviews,
            Server::leases,
            Server::events,
            Server::custom_resources,
        ];
        for add in alone {
            TestServer::start(move || add(empty())).unwrap();
        }
        let all = move || alone.into_iter().fold(empty(), |server, add| add(server));
        TestServer::start(all).unwrap();
        // What all kinds of Kubernetes have is not there twice.
        TestServer::start(|| empty().kubernetes().rbac().namespaces()).unwrap();
    }

    #[test]
    fn roles_decide_where_they_are() {
        assert!(empty().roles().is_none() && empty().rbac().roles().is_some());
        let names: Vec<&str> = empty()
            .leases()
            .schemes()
            .iter()
            .flat_map(|s| s.groups)
            .map(|g| g.name)
            .collect();
        assert_eq!(names, ["coordination.k8s.io"]);
    }
}
