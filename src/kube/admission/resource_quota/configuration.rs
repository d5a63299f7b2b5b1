//! The file of ResourceQuota: resources that may be used only where a quota says so.

use keelson_api::core::v1::ScopedResourceSelectorRequirement as Selector;
use keelson_base::configuration::Document;

/// A resource that is limited.
#[derive(Clone)]
pub struct LimitedResource {
    /// "" for the legacy group.
    pub group: String,
    /// `pods`.
    pub resource: String,
    /// Parts of the names of what may be used only where a quota says so.
    pub match_contains: Vec<String>,
    /// Scopes in which objects may be only where a quota says so.
    pub match_scopes: Vec<Selector>,
}

const VERSIONS: [&str; 4] = [
    "apiserver.config.k8s.io/v1",
    "resourcequota.admission.k8s.io/v1",
    "resourcequota.admission.k8s.io/v1beta1",
    "resourcequota.admission.k8s.io/v1alpha1",
];

/// Reads the configuration; `None`: there is none, and nothing is limited.
///
/// # Errors
/// It is of another kind, or has mistakes.
pub fn read(text: Option<&str>) -> Result<Vec<LimitedResource>, String> {
    let Some(text) = text else {
        return Ok(Vec::new());
    };
    let kind = match text.contains("\"ResourceQuotaConfiguration\"") {
        true => "ResourceQuotaConfiguration",
        false => "Configuration",
    };
    let document = Document::parse(text.as_bytes(), kind, &VERSIONS)?;
    let root = document
        .root("ResourceQuotaConfiguration")?
        .known(&["limitedResources"]);
    let mut limited = Vec::new();
    for (place, fields) in root
        .objects("limitedResources", "LimitedResource")?
        .into_iter()
        .enumerate()
    {
        let fields = fields.known(&["apiGroup", "resource", "matchContains", "matchScopes"]);
        let resource = fields.text("resource")?;
        if resource.is_empty() {
            return Err(format!("limitedResources[{place}].resource: Required value"));
        }
        let mut scopes = Vec::new();
        for scope in fields.objects("matchScopes", "ScopedResourceSelectorRequirement")? {
            let scope = scope.known(&["scopeName", "operator", "values"]);
            scopes.push(Selector {
                scope_name: scope.text("scopeName")?.to_owned(),
                operator: scope.text("operator")?.to_owned(),
                values: scope.texts("values")?.into_iter().map(str::to_owned).collect(),
            });
        }
        limited.push(LimitedResource {
            group: fields.text("apiGroup")?.to_owned(),
            resource: resource.to_owned(),
            match_contains: fields.texts("matchContains")?.into_iter().map(str::to_owned).collect(),
            match_scopes: scopes,
        });
    }
    document.finish()?;
    Ok(limited)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_strictly() {
        let of = |limits: &str| {
            let kind = r#""apiVersion":"apiserver.config.k8s.io/v1","kind":"ResourceQuotaConfiguration""#;
            read(Some(&format!(r#"{{{kind},"limitedResources":[{limits}]}}"#)))
        };
        let read_one = of(r#"{"apiGroup":"","resource":"pods","matchContains":["cpu"],
                "matchScopes":[{"scopeName":"PriorityClass","operator":"In","values":["high"]}]}"#);
        let one = read_one.unwrap().remove(0);
        assert_eq!((one.resource.as_str(), one.match_contains.len()), ("pods", 1));
        assert_eq!(
            (one.match_scopes[0].operator.as_str(), one.match_scopes[0].values.len()),
            ("In", 1)
        );
        assert_eq!(of("{}").err().unwrap(), "limitedResources[0].resource: Required value");
        assert_eq!(
            of(r#"{"resource":"pods","match":1}"#).err().unwrap(),
            "strict decoding error: unknown field \"limitedResources[0].match\""
        );
        let old = r#"{"apiVersion":"resourcequota.admission.k8s.io/v1beta1","kind":"Configuration"}"#;
        assert!(read(Some(old)).is_ok_and(|all| all.is_empty()) && read(None).is_ok());
        assert!(read(Some(r#"{"apiVersion":"v1","kind":"Configuration"}"#)).is_err());
    }
}
