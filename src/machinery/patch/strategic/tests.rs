use super::*;
use crate::meta::v1::ObjectMeta;
use crate::reflect::Reflect;

/// ObjectMeta has one list of each kind: finalizers merge as scalars, ownerReferences by uid.
fn patched(document: &str, patch: &str) -> Result<String, u16> {
    let desc = ObjectMeta::default().desc();
    match apply(document.as_bytes(), patch.as_bytes(), desc, true) {
        Ok((out, _)) => Ok(String::from_utf8(out).unwrap()),
        Err(error) => Err(error.code),
    }
}

#[test]
fn patches_and_directives() {
    for line in include_str!("../testdata/strategic.tsv")
        .lines()
        .filter(|l| !l.starts_with('#'))
    {
        let [document, patch, expected] = line.split('\t').collect::<Vec<_>>().try_into().unwrap();
        assert_eq!(patched(document, patch).as_deref(), Ok(expected), "{document} {patch}");
    }
}

#[test]
fn bad_directives_are_errors_without_a_reason() {
    for patch in [
        r#"{"$patch":"keep"}"#,
        r#"{"$patch":1}"#,
        r#"{"ownerReferences":[{"name":"no key"}]}"#,
        r#"{"ownerReferences":[{"$patch":"delete","name":"no key"}]}"#,
        r#"{"ownerReferences":[{"$patch":"swap","uid":"1"}]}"#,
        r#"{"$setElementOrder/ownerReferences":[{"uid":"1"}],"ownerReferences":[{"uid":"2"}]}"#,
        r#"{"$retainKeys":["a"],"b":1}"#,
        r#"{"$deleteFromPrimitiveList/finalizers":"a"}"#,
    ] {
        let document = r#"{"finalizers":["a"],"ownerReferences":[{"uid":"1"}]}"#;
        assert_eq!(patched(document, patch), Err(500), "{patch}");
    }
    assert_eq!(patched("{}", "[]"), Err(400));
    assert_eq!(patched("{}", "{"), Err(400));
}
