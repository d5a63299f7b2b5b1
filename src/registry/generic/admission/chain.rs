//! The admission chain: the plug-ins of a server in their order, and those of them that handle one operation.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use keelson_access::lister::Listers;
use keelson_machinery::scheme::{KindRef, Name};
use keelson_machinery::status::StatusError;

use prometheus_client::registry::Registry as MetricRegistry;

use super::super::Verbs;
use super::metrics::{AdmissionMetrics, Done, PluginSeries, Step};
use super::{Attributes, ConfigureError, Handles, Operation, Plugin, Scope};

/// The plug-ins of a server, in the order in which they are called.
#[derive(Clone, Default)]
pub struct Admission {
    plugins: Vec<Arc<dyn Plugin>>,
    metrics: Arc<AdmissionMetrics>,
}

impl fmt::Debug for Admission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

/// A name that no plug-in has.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("plugin {0:?} is unknown")]
pub struct UnknownPlugin(pub String);

/// A plug-in that can't do with its configuration.
#[derive(Debug, thiserror::Error)]
#[error("couldn't init admission plugin {name:?}: {reason}")]
pub struct PluginError {
    /// Of the plug-in.
    pub name: &'static str,
    /// What is wrong with its configuration.
    pub reason: ConfigureError,
}

impl Admission {
    fn of(plugins: Vec<Arc<dyn Plugin>>) -> Admission {
        Admission {
            plugins,
            metrics: Arc::default(),
        }
    }

    /// These plug-ins, as far as they are on where nobody says anything.
    pub fn new(plugins: Vec<Arc<dyn Plugin>>) -> Admission {
        let plugins = plugins.into_iter().filter(|one| one.enabled_by_default());
        Admission::of(plugins.collect())
    }

    /// These plug-ins, with some switched on and others off beside what is the default.
    ///
    /// # Errors
    /// A name is that of no plug-in.
    pub fn switched(plugins: Vec<Arc<dyn Plugin>>, on: &[String], off: &[String]) -> Result<Admission, UnknownPlugin> {
        let is_known = |name: &&String| plugins.iter().any(|one| one.name() == name.as_str());
        if let Some(unknown) = on.iter().chain(off).find(|name| !is_known(name)) {
            return Err(UnknownPlugin(unknown.clone()));
        }
        let names = |list: &[String], one: &Arc<dyn Plugin>| list.iter().any(|name| name == one.name());
        let plugins = plugins
            .into_iter()
            .filter(|one| names(on, one) || (one.enabled_by_default() && !names(off, one)));
        Ok(Admission::of(plugins.collect()))
    }

    /// Those of these plug-ins that have one of these names.
    ///
    /// # Errors
    /// A name is that of no plug-in.
    pub fn exactly(plugins: Vec<Arc<dyn Plugin>>, names: &[String]) -> Result<Admission, UnknownPlugin> {
        let is_known = |name: &&String| plugins.iter().any(|one| one.name() == name.as_str());
        if let Some(unknown) = names.iter().find(|name| !is_known(name)) {
            return Err(UnknownPlugin(unknown.clone()));
        }
        let chosen = plugins
            .into_iter()
            .filter(|one| names.iter().any(|name| name == one.name()));
        Ok(Admission::of(chosen.collect()))
    }

    /// Gives each plug-in its configuration, by name.
    ///
    /// # Errors
    /// The first plug-in that can't do with it, and why.
    pub fn configure<E: Into<ConfigureError>>(
        &self,
        of: impl Fn(&str) -> Result<Option<String>, E>,
    ) -> Result<(), PluginError> {
        for plugin in &self.plugins {
            let name = plugin.name();
            let configuration = of(name).map_err(Into::into);
            let done = configuration.and_then(|configuration| plugin.configure(configuration.as_deref()));
            done.map_err(|reason| PluginError { name, reason })?;
        }
        Ok(())
    }

    /// With one more plug-in, behind all others.
    #[must_use]
    pub fn with(self, plugin: impl Plugin + 'static) -> Admission {
        self.with_shared(Arc::new(plugin))
    }

    /// The same with a plug-in that others hold too.
    #[must_use]
    pub fn with_shared(mut self, plugin: Arc<dyn Plugin>) -> Admission {
        self.plugins.push(plugin);
        self
    }

    /// The names of the plug-ins, in their order.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.plugins.iter().map(|one| one.name())
    }

    /// Hands the objects of the server to all plug-ins.
    pub fn attach(&self, listers: &dyn Listers, verbs: &Arc<Verbs>) {
        self.plugins.iter().for_each(|one| one.attach(listers, verbs));
    }

    /// Shows the metrics of the chain and of its plug-ins.
    pub fn register(&self, registry: &mut MetricRegistry) {
        self.metrics.register(registry);
        self.plugins.iter().for_each(|one| one.register(registry));
    }

    /// What the plug-ins look at with each request, by group and plural; one may stand there twice.
    pub fn follows(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.plugins.iter().flat_map(|one| one.follows().iter().copied())
    }

    /// Those of the plug-ins that handle something of a resource, or of a subresource that it has in any of its
    /// versions. `needs_namespace` is asked about each subresource; see [`Scope::needs_namespace`].
    pub(crate) fn chains_of(&self, versions: &[KindRef], needs_namespace: impl Fn(&str) -> bool) -> Chains {
        let subresources = versions.iter().flat_map(|kind| &kind.subresources);
        let mut names: Vec<_> = subresources.map(|subresource| subresource.name.clone()).collect();
        names.push(Name::default());
        names.sort_unstable();
        names.dedup();
        let scopes = names.iter().filter_map(|subresource| {
            let kind = versions.first()?;
            let scope = Scope {
                operation: Operation::Create,
                group: &kind.group,
                plural: &kind.plural,
                subresource,
                namespaced: kind.namespaced,
                needs_namespace: needs_namespace(subresource),
            };
            Some((subresource.clone(), scope))
        });
        self.chains(scopes)
    }

    /// Each scope is one of a subresource, whatever its operation.
    fn chains<'a>(&self, scopes: impl Iterator<Item = (Name, Scope<'a>)>) -> Chains {
        let of = |scope: Scope<'_>| Operation::ALL.map(|operation| self.chain(&Scope { operation, ..scope }));
        Chains {
            by_subresource: scopes.map(|(name, scope)| (name, of(scope))).collect(),
        }
    }

    fn chain(&self, scope: &Scope<'_>) -> Chain {
        let those = |which: fn(Handles) -> bool| {
            let fitting = self.plugins.iter().filter(|one| which(one.handles(scope)));
            let observed = fitting.map(|plugin| Observed {
                plugin: plugin.clone(),
                series: self.metrics.of(plugin.name()),
            });
            observed.collect()
        };
        Chain {
            mutating: those(|handles| handles.mutates),
            validating: those(|handles| handles.validates),
            metrics: self.metrics.clone(),
        }
    }
}

/// A plug-in whose time is taken.
pub(crate) struct Observed {
    plugin: Arc<dyn Plugin>,
    series: Arc<PluginSeries>,
}

/// The plug-ins that handle one operation of a resource or subresource.
pub(crate) struct Chain {
    /// In their order.
    pub mutating: Box<[Observed]>,
    /// In their order.
    pub validating: Box<[Observed]>,
    metrics: Arc<AdmissionMetrics>,
}

impl Chain {
    /// No plug-in handles it.
    pub fn is_empty(&self) -> bool {
        self.mutating.is_empty() && self.validating.is_empty()
    }

    /// Lets every plug-in change the object, until one refuses; all of them once more where one asks for it.
    pub async fn admit(&self, attributes: &mut Attributes<'_>) -> Result<(), StatusError> {
        let (begun, operation) = (Instant::now(), attributes.operation);
        let mut result = self.admit_once(attributes, begun).await;
        if result.is_ok() && attributes.reinvocation.begin() {
            result = self.admit_once(attributes, Instant::now()).await;
        }
        let (step, refused) = (Step::Admit, result.is_err());
        let done = Done {
            operation,
            step,
            refused,
        };
        self.metrics.observe(done, begun.elapsed());
        result
    }

    async fn admit_once(&self, attributes: &mut Attributes<'_>, begun: Instant) -> Result<(), StatusError> {
        let (mut begun, operation, step) = (begun, attributes.operation, Step::Admit);
        for one in &self.mutating {
            let result = one.plugin.admit(attributes).await;
            let (now, refused) = (Instant::now(), result.is_err());
            one.series.observe(
                Done {
                    operation,
                    step,
                    refused,
                },
                now - begun,
            );
            begun = now;
            result?;
        }
        Ok(())
    }

    /// Asks every plug-in, until one refuses.
    pub async fn validate(&self, attributes: &Attributes<'_>) -> Result<(), StatusError> {
        let (first, operation, step) = (Instant::now(), attributes.operation, Step::Validate);
        let (mut begun, mut result) = (first, Ok(()));
        for one in &self.validating {
            result = one.plugin.validate(attributes).await;
            let (now, refused) = (Instant::now(), result.is_err());
            one.series.observe(
                Done {
                    operation,
                    step,
                    refused,
                },
                now - begun,
            );
            begun = now;
            if refused {
                break;
            }
        }
        let refused = result.is_err();
        self.metrics.observe(
            Done {
                operation,
                step,
                refused,
            },
            begun - first,
        );
        result
    }
}

/// The chains of one resource.
pub(crate) struct Chains {
    /// The resource itself, "", comes first: most requests are about that.
    by_subresource: Vec<(Name, [Chain; Operation::ALL.len()])>,
}

impl Chains {
    /// `None`: the resource has no such subresource.
    pub fn of(&self, operation: Operation, subresource: &str) -> Option<&Chain> {
        let (_, chains) = self.by_subresource.iter().find(|(name, _)| name == subresource)?;
        chains.get(operation as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Named(&'static str, bool);

    impl Plugin for Named {
        fn name(&self) -> &'static str {
            self.0
        }
        fn enabled_by_default(&self) -> bool {
            self.1
        }
        fn handles(&self, scope: &Scope<'_>) -> Handles {
            match self.0 {
                "A" => Handles::MUTATES.when(scope.is("", "pods") && scope.operation == Operation::Create),
                _ => Handles::VALIDATES,
            }
        }
    }

    fn all() -> Vec<Arc<dyn Plugin>> {
        vec![
            Arc::new(Named("A", true)),
            Arc::new(Named("B", false)),
            Arc::new(Named("C", true)),
        ]
    }

    #[test]
    fn plugins_are_switched_by_name_and_keep_their_order() {
        let names = |on: &[&str], off: &[&str]| {
            let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
            Admission::switched(all(), &owned(on), &owned(off)).map(|a| a.names().collect::<Vec<_>>())
        };
        assert_eq!(names(&[], &[]).unwrap(), ["A", "C"]);
        assert_eq!(names(&["B"], &["A"]).unwrap(), ["B", "C"]);
        assert_eq!(names(&[], &["D"]).unwrap_err().to_string(), "plugin \"D\" is unknown");
    }

    #[test]
    fn a_chain_has_those_that_handle_its_operation() {
        let scope = Scope {
            operation: Operation::Create,
            group: "",
            plural: "pods",
            subresource: "",
            namespaced: true,
            needs_namespace: true,
        };
        let status = Scope {
            subresource: "status",
            ..scope
        };
        let chains = Admission::new(all()).chains([(Name::default(), scope), ("status".into(), status)].into_iter());
        let lengths = |operation, subresource| {
            let chain = chains.of(operation, subresource).unwrap();
            (chain.mutating.len(), chain.validating.len())
        };
        assert_eq!(lengths(Operation::Create, ""), (1, 1));
        assert_eq!(lengths(Operation::Update, ""), (0, 1));
        assert_eq!(lengths(Operation::Create, "status"), (0, 1));
        assert!(chains.of(Operation::Create, "scale").is_none());
    }
}
