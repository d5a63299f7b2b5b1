//! The admission plug-ins of a server: those that are built in and its own, as far as the command line leaves them on,
//! with what the file says of each.

use std::sync::Arc;

use keelson_options::{ADMISSION_FILE, AdmissionSettings, OptionError};
use keelson_registry::admission::{Admission, Plugin};

/// The plug-ins that are on.
pub(crate) fn switched(plugins: Vec<Arc<dyn Plugin>>, settings: &AdmissionSettings) -> Result<Admission, OptionError> {
    let is_known = |name: &&String| plugins.iter().any(|plugin| plugin.name() == name.as_str());
    let check = |flag: &'static str, names: &[String]| match names.iter().find(|name| !is_known(name)) {
        Some(name) => {
            let word = flag.trim_start_matches('-');
            Err(OptionError::flag(flag, format!("{word} plugin {name:?} is unknown")))
        }
        None => Ok(()),
    };
    let exactly = settings.exactly.as_deref();
    check("--enable-admission-plugins", &settings.on)?;
    check("--disable-admission-plugins", &settings.off)?;
    check("--admission-control", exactly.unwrap_or_default())?;
    let admission = match exactly {
        Some(names) => Admission::exactly(plugins, names),
        None => Admission::switched(plugins, &settings.on, &settings.off),
    };
    let admission = admission.map_err(|error| OptionError::flag("--enable-admission-plugins", error.to_string()))?;
    configure(&admission, settings)?;
    Ok(admission)
}

fn configure(admission: &Admission, settings: &AdmissionSettings) -> Result<(), OptionError> {
    match &settings.configurations {
        None => {
            let done = admission.configure(|_| Ok::<_, String>(None));
            done.map_err(|error| OptionError::flag(ADMISSION_FILE, error.to_string()))
        }
        Some(all) => {
            let done = admission.configure(|name| all.of(name));
            done.map_err(|error| OptionError::file(ADMISSION_FILE, &all.path, error))
        }
    }
}

#[cfg(test)]
mod tests {
    use keelson_server::admission;

    use super::*;

    fn owned(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn names(settings: &AdmissionSettings) -> Result<Vec<&'static str>, String> {
        let switched = switched(admission::plugins(), settings);
        switched
            .map(|admission| admission.names().collect::<Vec<_>>())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn admission_plugins_are_switched_by_flag() {
        let names = |on: &[&str], off: &[&str]| {
            names(&AdmissionSettings {
                on: owned(on),
                off: owned(off),
                ..AdmissionSettings::default()
            })
        };
        assert_eq!(names(&[], &[]).unwrap(), ["NamespaceLifecycle"]);
        assert_eq!(names(&[], &["NamespaceLifecycle"]).unwrap(), [""; 0]);
        assert_eq!(
            names(&["x"], &[]).unwrap_err(),
            "--enable-admission-plugins: enable-admission-plugins plugin \"x\" is unknown"
        );
    }

    #[test]
    fn a_list_of_all_plugins_leaves_no_others() {
        let exactly = |list: &[&str]| {
            names(&AdmissionSettings {
                exactly: Some(owned(list)),
                ..AdmissionSettings::default()
            })
        };
        assert_eq!(exactly(&[]).unwrap(), [""; 0]);
        assert_eq!(exactly(&["NamespaceLifecycle"]).unwrap(), ["NamespaceLifecycle"]);
        assert_eq!(
            exactly(&["SecurityContextDeny"]).unwrap_err(),
            "--admission-control: admission-control plugin \"SecurityContextDeny\" is unknown"
        );
    }
}
