//! The admission plug-ins of a server: those that are built in and its own, as far as the command line leaves them on.

use std::sync::Arc;

use keelson_registry::admission::{Admission, Plugin};

use keelson_options::{AdmissionSettings, OptionError};

/// The plug-ins that are on. `unbuilt`: names that kube-apiserver knows and this server does not; they have no effect.
pub(crate) fn switched(
    plugins: Vec<Arc<dyn Plugin>>,
    unbuilt: &[&str],
    settings: &AdmissionSettings,
) -> Result<Admission, OptionError> {
    let built = |flag: &'static str, names: &[String]| -> Result<Vec<String>, OptionError> {
        let mut known = Vec::new();
        for name in names {
            if plugins.iter().any(|plugin| plugin.name() == name) {
                known.push(name.clone());
            } else if !unbuilt.contains(&name.as_str()) {
                let word = flag.trim_start_matches('-');
                return Err(OptionError::flag(flag, format!("{word} plugin {name:?} is unknown")));
            }
        }
        Ok(known)
    };
    let on = built("--enable-admission-plugins", &settings.on)?;
    let off = built("--disable-admission-plugins", &settings.off)?;
    for name in settings.on.iter().filter(|name| !on.contains(name)) {
        tracing::warn!(
            plugin = name,
            "An admission plug-in that is switched on is not built yet"
        );
    }
    Admission::switched(plugins, &on, &off)
        .map_err(|error| OptionError::flag("--enable-admission-plugins", error.to_string()))
}

#[cfg(test)]
mod tests {
    use keelson_server::admission;

    use super::*;

    #[test]
    fn admission_plugins_are_switched_by_flag() {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let names = |on: &[&str], off: &[&str]| {
            let settings = AdmissionSettings {
                on: owned(on),
                off: owned(off),
            };
            let switched = switched(admission::plugins(), &["PodSecurity"], &settings);
            switched
                .map(|admission| admission.names().collect::<Vec<_>>())
                .map_err(|error| error.to_string())
        };
        assert_eq!(names(&[], &[]).unwrap(), ["NamespaceLifecycle"]);
        assert_eq!(names(&["PodSecurity"], &["NamespaceLifecycle"]).unwrap(), [""; 0]);
        assert_eq!(
            names(&["x"], &[]).unwrap_err(),
            "--enable-admission-plugins: enable-admission-plugins plugin \"x\" is unknown"
        );
    }
}
