use super::*;

#[test]
fn texts_are_read_and_printed_as_the_api_does() {
    for line in include_str!("../testdata/labels.tsv").lines() {
        let (input, expected) = line.split_once('\t').unwrap();
        let got = match LabelSelector::parse(input) {
            Ok(selector) => selector.to_string(),
            Err(error) => format!("!{error}"),
        };
        // A canonical text may start with "!" too.
        assert_eq!(got, expected, "{input}");
    }
}

fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
}

#[test]
fn selectors_match_labels() {
    let object = labels(&[("app", "web"), ("n", "5"), ("empty", "")]);
    for (selector, expected) in [
        ("", true),
        ("app=web", true),
        ("app==api", false),
        ("app!=api", true),
        ("app!=web", false),
        ("gone!=x", true),
        ("gone=", false),
        ("empty=", true),
        ("app in (web,api)", true),
        ("app notin (web)", false),
        ("gone notin (web)", true),
        ("app", true),
        ("gone", false),
        ("!gone", true),
        ("!app", false),
        ("n>4", true),
        ("n>5", false),
        ("n<6", true),
        ("app>1", false),
        ("gone<1", false),
        ("app=web,n>9", false),
    ] {
        assert_eq!(
            LabelSelector::parse(selector).unwrap().matches(&object),
            expected,
            "{selector}"
        );
    }
    assert!(!LabelSelector::nothing().matches(&object));
    assert!(!LabelSelector::nothing().is_everything());
}

#[test]
fn messages_become_selectors() {
    let message = v1::LabelSelector {
        match_labels: labels(&[("b", "x")]),
        match_expressions: vec![
            v1::LabelSelectorRequirement {
                key: "a".into(),
                operator: "NotIn".into(),
                values: vec!["z".into(), "y".into()],
            },
            v1::LabelSelectorRequirement {
                key: "c".into(),
                operator: "DoesNotExist".into(),
                values: vec![],
            },
        ],
    };
    let text = LabelSelector::from_message(Some(&message)).unwrap().to_string();
    assert_eq!(text, "a notin (y,z),b=x,!c");
    assert_eq!(LabelSelector::from_message(None).unwrap(), LabelSelector::nothing());
    assert!(
        LabelSelector::from_message(Some(&Default::default()))
            .unwrap()
            .is_everything()
    );

    let bad = v1::LabelSelector {
        match_labels: labels(&[("-", "v")]),
        match_expressions: vec![
            v1::LabelSelectorRequirement {
                key: "a".into(),
                operator: "In".into(),
                values: vec![],
            },
            v1::LabelSelectorRequirement {
                key: "a".into(),
                operator: "Exists".into(),
                values: vec!["-".into()],
            },
            v1::LabelSelectorRequirement {
                key: "a".into(),
                operator: "Near".into(),
                values: vec![],
            },
        ],
    };
    let fields: Vec<_> = validate_label_selector(&bad, &Path::new("spec.selector"))
        .iter()
        .map(|e| e.field.clone())
        .collect();
    assert_eq!(
        fields,
        [
            "spec.selector.matchLabels",
            "spec.selector.matchExpressions[0].values",
            "spec.selector.matchExpressions[1].values",
            "spec.selector.matchExpressions[1].values[0]",
            "spec.selector.matchExpressions[2].operator",
        ]
    );
}
