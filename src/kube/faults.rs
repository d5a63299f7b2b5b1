//! Faults: a place in an object, and the list that takes what is wrong there. A path is made only for what is wrong.

use std::collections::{BTreeMap, HashSet};

use keelson_machinery::field::{BadValue, ErrorList, ErrorType, FieldError, Path};
use keelson_machinery::intstr::IntOrString;
use keelson_machinery::meta::v1::LabelSelector;
use keelson_machinery::quantity::Quantity;
use keelson_machinery::reflect::{Reflect, Value};
use keelson_machinery::selector::label::validate_label_selector;
use keelson_machinery::validation::declarative::Place;
use keelson_machinery::validation::{labels, names};

use crate::{cidr, ip, names as forms};

/// What a number must not be.
pub const NEGATIVE: &str = "must be greater than or equal to 0";

/// A number that a rule looks at; one that is absent has no fault.
pub trait Number: Copy {
    fn number(self) -> Option<i64>;
}

impl Number for i64 {
    fn number(self) -> Option<i64> {
        Some(self)
    }
}

impl Number for i32 {
    fn number(self) -> Option<i64> {
        Some(self.into())
    }
}

impl<N: Number> Number for Option<N> {
    fn number(self) -> Option<i64> {
        self.and_then(N::number)
    }
}

/// A text that a rule looks at; one that is absent has no fault.
pub trait Text<'t>: Copy {
    fn text(self) -> Option<&'t str>;
}

impl<'t> Text<'t> for &'t str {
    fn text(self) -> Option<&'t str> {
        Some(self)
    }
}

impl<'t> Text<'t> for &'t String {
    fn text(self) -> Option<&'t str> {
        Some(self)
    }
}

impl<'t, T: Text<'t>> Text<'t> for Option<T> {
    fn text(self) -> Option<&'t str> {
        self.and_then(T::text)
    }
}

impl<'t> Text<'t> for &'t Option<String> {
    fn text(self) -> Option<&'t str> {
        self.as_deref()
    }
}

/// A text if it says anything, for rules that let an empty one be.
pub fn given<'t>(text: impl Text<'t>) -> Option<&'t str> {
    text.text().filter(|text| !text.is_empty())
}

/// The checks of one place, and of those below it.
pub struct Faults<'a> {
    place: Place<'a>,
    list: &'a mut ErrorList,
}

/// The faults that `check` finds at a path and below it.
pub fn at(path: &Path, check: impl FnOnce(&mut Faults<'_>)) -> ErrorList {
    let mut list = ErrorList::default();
    check(&mut Faults::new(path, &mut list));
    list
}

/// The faults that `check` finds in an object.
pub fn of_object(check: impl FnOnce(&mut Faults<'_>)) -> ErrorList {
    at(&Path::root(), check)
}

/// Whether `check` finds anything in a part of an object.
pub fn are_in(check: impl FnOnce(&mut Faults<'_>)) -> bool {
    !of_object(check).is_empty()
}

/// The faults that `check` finds in the specification of an object.
pub fn of_spec(check: impl FnOnce(&mut Faults<'_>)) -> ErrorList {
    at(&Path::new("spec"), check)
}

/// The same of its status.
pub fn of_status(check: impl FnOnce(&mut Faults<'_>)) -> ErrorList {
    at(&Path::new("status"), check)
}

/// A number of a message by its JSON name. The error says that there is no such field.
pub fn count(message: &dyn Reflect, name: &str) -> Result<Option<i64>, String> {
    let field = message.desc().field(name);
    let (index, _) = field.ok_or_else(|| format!("{} has no field {name}", message.desc().name))?;
    Ok(match message.get(index) {
        Value::Int32(number) => Some(number.into()),
        Value::Int64(number) => Some(number),
        _ => None,
    })
}

impl<'a> Faults<'a> {
    /// The checks at a path, whose faults go to a list.
    pub fn new(path: &'a Path, list: &'a mut ErrorList) -> Faults<'a> {
        let place = Place::Path(path);
        Faults { place, list }
    }

    fn below<'s>(&'s mut self, place: impl FnOnce(&'s Place<'a>) -> Place<'s>) -> Faults<'s> {
        Faults {
            place: place(&self.place),
            list: &mut *self.list,
        }
    }

    /// The field `name` below this place.
    pub fn at<'s>(&'s mut self, name: &'s str) -> Faults<'s> {
        self.below(|place| Place::Field(place, name))
    }

    /// The item `index` of this list.
    pub fn index(&mut self, index: usize) -> Faults<'_> {
        self.below(|place| Place::Index(place, index))
    }

    /// The entry `key` of this map.
    pub fn key<'s>(&'s mut self, key: &'s str) -> Faults<'s> {
        self.below(|place| Place::Key(place, key))
    }

    /// Checks each item of the list in the field `name`, as far as there is room for faults.
    pub fn each<'t, T: 't>(
        &mut self,
        name: &str,
        items: impl IntoIterator<Item = &'t T>,
        mut check: impl FnMut(&mut Faults<'_>, &'t T),
    ) {
        let mut list = self.at(name);
        list.while_room(items.into_iter().enumerate(), |list, (index, item)| {
            check(&mut list.index(index), item);
        });
    }

    /// Each item of the list in the field `name` is there once: `key` says by what they are told apart.
    pub fn unique<'t, T: 't, K: AsRef<str> + ?Sized + 't>(
        &mut self,
        name: &str,
        items: impl IntoIterator<Item = &'t T>,
        key: impl Fn(&'t T) -> &'t K,
    ) {
        let mut seen = Unique::default();
        self.each(name, items, |f, item| {
            seen.check(f, key(item).as_ref());
        });
    }

    /// As [`Faults::each`], of a map, by its keys.
    pub fn each_key<'t, T: 't>(
        &mut self,
        name: &str,
        map: &'t BTreeMap<String, T>,
        mut check: impl FnMut(&mut Faults<'_>, &'t str, &'t T),
    ) {
        let mut entries = self.at(name);
        entries.while_room(map, |entries, (key, value)| check(&mut entries.key(key), key, value));
    }

    /// Checks whatever `items` are, as far as there is room for faults of this place.
    pub fn while_room<I: IntoIterator>(&mut self, items: I, mut check: impl FnMut(&mut Self, I::Item)) {
        let mut items = items.into_iter();
        while !self.is_full()
            && let Some(item) = items.next()
        {
            check(self, item);
        }
    }

    /// Checks what is in the field `name`, if something is.
    pub fn some<T: ?Sized>(&mut self, name: &str, value: Option<&T>, check: impl FnOnce(&mut Faults<'_>, &T)) {
        if let Some(value) = value {
            check(&mut self.at(name), value);
        }
    }

    /// The path of this place.
    pub fn path(&self) -> Path {
        self.place.path()
    }

    /// How many faults there are, here and elsewhere.
    pub fn count(&self) -> usize {
        self.list.len()
    }

    /// Whether there is room for no more: what walks over many items may end.
    pub fn is_full(&self) -> bool {
        self.list.is_full()
    }

    /// Takes faults that were found otherwise.
    pub fn extend(&mut self, faults: impl IntoIterator<Item = FieldError>) {
        self.list.extend(faults);
    }

    /// Adds a fault of this place, if there is room for it; where there is none, it is not even made.
    fn push(&mut self, fault: impl FnOnce(&Path) -> FieldError) {
        if !self.list.is_full() {
            self.list.push(fault(&self.place.path()));
        }
    }

    pub fn required(&mut self, detail: impl Into<String>) {
        self.push(|path| FieldError::required(path, detail));
    }

    pub fn invalid(&mut self, value: impl Into<BadValue>, detail: impl Into<String>) {
        self.push(|path| FieldError::invalid(path, value, detail));
    }

    /// [`Faults::required`], of what is missing.
    pub fn required_if(&mut self, is_missing: bool, detail: impl Into<String>) {
        if is_missing {
            self.required(detail);
        }
    }

    /// [`Faults::invalid`], of a value that is wrong.
    pub fn invalid_if(&mut self, is_wrong: bool, value: impl Into<BadValue>, detail: impl Into<String>) {
        if is_wrong {
            self.invalid(value, detail);
        }
    }

    /// [`Faults::forbidden`], of what is there.
    pub fn forbidden_if(&mut self, is_there: bool, detail: impl Into<String>) {
        if is_there {
            self.forbidden(detail);
        }
    }

    pub fn internal(&mut self, error: impl std::fmt::Display) {
        self.push(|path| FieldError::internal(path, error));
    }

    pub fn forbidden(&mut self, detail: impl Into<String>) {
        self.push(|path| FieldError::forbidden(path, detail));
    }

    pub fn duplicate(&mut self, value: impl Into<BadValue>) {
        self.push(|path| FieldError::duplicate(path, value));
    }

    pub fn not_found(&mut self, value: impl Into<BadValue>, detail: impl Into<String>) {
        self.push(|path| FieldError::new(ErrorType::NotFound, path, value, detail));
    }

    pub fn not_supported(&mut self, value: impl Into<BadValue>, known: &[&str]) {
        self.push(|path| FieldError::not_supported(path, value, known));
    }

    pub fn too_long(&mut self, max: usize) {
        self.push(|path| FieldError::too_long(path, max));
    }

    pub fn too_many(&mut self, actual: usize, max: usize) {
        self.push(|path| FieldError::too_many(path, actual, max));
    }

    /// A text of at most so many bytes.
    pub fn max_bytes<'t>(&mut self, text: impl Text<'t>, max: usize) {
        if text.text().is_some_and(|text| text.len() > max) {
            self.too_long(max);
        }
    }

    /// A list of at most so many items.
    pub fn max_items(&mut self, count: usize, max: usize) {
        if count > max {
            self.too_many(count, max);
        }
    }

    /// A fault for each text that says what is wrong with a value.
    pub fn texts(&mut self, value: &str, texts: Vec<String>) {
        for text in texts {
            self.invalid(value, text);
        }
    }

    /// Whether a text is there; it has to be.
    pub fn filled(&mut self, text: &str) -> bool {
        if text.is_empty() {
            self.required("");
        }
        !text.is_empty()
    }

    /// The value is one of those that are known.
    pub fn one_of<'t>(&mut self, value: impl Text<'t>, known: &[&str]) {
        if let Some(value) = value.text().filter(|value| !known.contains(value)) {
            self.not_supported(value, known);
        }
    }

    /// As [`Faults::one_of`], where nothing at all is another fault.
    pub fn one_of_filled<'t>(&mut self, value: impl Text<'t>, known: &[&str]) {
        if value.text().is_some_and(|value| self.filled(value)) {
            self.one_of(value, known);
        }
    }

    /// A lower-case RFC 1123 label.
    pub fn label<'t>(&mut self, name: impl Text<'t>) {
        if let Some(name) = name.text() {
            self.texts(name, names::dns_label(name));
        }
    }

    /// A lower-case RFC 1123 subdomain.
    pub fn subdomain<'t>(&mut self, name: impl Text<'t>) {
        if let Some(name) = name.text() {
            self.texts(name, names::dns_subdomain(name));
        }
    }

    /// A label that has to be there.
    pub fn filled_label(&mut self, name: &str) {
        if self.filled(name) {
            self.label(name);
        }
    }

    /// A subdomain that has to be there.
    pub fn filled_subdomain(&mut self, name: &str) {
        if self.filled(name) {
            self.subdomain(name);
        }
    }

    /// A name that can stand in a path, and has to be there.
    pub fn filled_segment(&mut self, name: &str) {
        if self.filled(name) {
            self.texts(name, names::path_segment(name));
        }
    }

    /// A range of addresses that was not stored before (`stored`), written in the one way that all programs read alike.
    pub fn range(&mut self, text: &str, stored: &[&str]) {
        if let Some(fault) = cidr::new_fault(text, stored) {
            self.invalid(text, fault);
        }
    }

    /// A name with an optional domain before a slash.
    pub fn qualified<'t>(&mut self, name: impl Text<'t>) {
        if let Some(name) = name.text() {
            self.texts(name, labels::qualified_name(name));
        }
    }

    /// A value of a label.
    pub fn label_value<'t>(&mut self, value: impl Text<'t>) {
        if let Some(value) = value.text() {
            self.texts(value, labels::label_value(value));
        }
    }

    /// The labels of an object, in the field `name`.
    pub fn labels(&mut self, name: &str, map: &BTreeMap<String, String>) {
        if !map.is_empty() {
            let faults = labels::validate_labels(map, &self.at(name).path());
            self.extend(faults);
        }
    }

    /// The annotations of an object, in the field `name`.
    pub fn annotations(&mut self, name: &str, map: &BTreeMap<String, String>) {
        if !map.is_empty() {
            let faults = labels::validate_annotations(map, &self.at(name).path());
            self.extend(faults);
        }
    }

    /// The selector in the field `name`; one that is absent is fine.
    pub fn selector(&mut self, name: &str, selector: Option<&LabelSelector>) {
        self.selector_as_stored(name, selector, false);
    }

    /// The same, where values of labels that are none are let through (`lenient`) because they are stored already.
    pub fn selector_as_stored(&mut self, name: &str, selector: Option<&LabelSelector>, lenient: bool) {
        let Some(selector) = selector else { return };
        let found = validate_label_selector(selector, &self.at(name).path());
        let of_value = |fault: &FieldError| fault.kind == ErrorType::Invalid && fault.field.contains(".values[");
        let found: Vec<FieldError> = found.into_iter().filter(|f| !(lenient && of_value(f))).collect();
        self.extend(found);
    }

    /// The number is not below 0.
    pub fn non_negative(&mut self, number: impl Number) {
        self.number(number, |number| number >= 0, NEGATIVE);
    }

    /// Numbers of a message, none of them below 0: by their JSON names, in the order in which they are told.
    pub fn counts(&mut self, message: &dyn Reflect, names: &[&str]) {
        for name in names {
            match count(message, name) {
                Ok(number) => self.at(name).non_negative(number),
                Err(error) => self.at(name).internal(error),
            }
        }
    }

    /// Texts of a message that have to be there: by their JSON names, in the order in which they are told.
    pub fn all_filled(&mut self, message: &dyn Reflect, names: &[&str]) {
        for name in names {
            match message.desc().field(name).map(|(index, _)| message.get(index)) {
                Some(Value::Str("")) | Some(Value::Absent) => self.at(name).required(""),
                Some(_) => {}
                None => self
                    .at(name)
                    .internal(format!("{} has no field {name}", message.desc().name)),
            }
        }
    }

    /// The number is above 0.
    pub fn positive(&mut self, number: impl Number) {
        self.number(number, |number| number > 0, "must be greater than zero");
    }

    /// The number is not above a bound.
    pub fn at_most(&mut self, number: impl Number, most: i64) {
        if let Some(number) = number.number().filter(|number| *number > most) {
            self.invalid(number, format!("must be less than or equal to {most}"));
        }
    }

    /// The number lies between two others, both of them included.
    pub fn within(&mut self, number: impl Number, (least, most): (i64, i64)) {
        if let Some(number) = number.number().filter(|number| !(least..=most).contains(number)) {
            self.invalid(number, format!("must be between {least} and {most}, inclusive"));
        }
    }

    /// The number is such as `fits` says; otherwise this is told of it.
    pub fn number(&mut self, number: impl Number, fits: impl Fn(i64) -> bool, told: impl Into<String>) {
        if let Some(number) = number.number().filter(|number| !fits(*number)) {
            self.invalid(number, told);
        }
    }

    /// The number of a port.
    pub fn port(&mut self, number: impl Number) {
        self.within(number, (1, 65535));
    }

    /// The number or the name of a port.
    pub fn port_or_name(&mut self, port: &IntOrString) {
        match port {
            IntOrString::Int(number) => self.port(*number),
            IntOrString::String(name) => self.texts(name, forms::port(name)),
        }
    }

    /// A user or group.
    pub fn user_id(&mut self, id: impl Number) {
        self.within(id, (0, i32::MAX.into()));
    }

    /// An amount that is not below 0.
    pub fn amount(&mut self, amount: &Quantity) {
        if amount.is_negative() {
            self.invalid(amount.as_str(), NEGATIVE);
        }
    }

    /// An address that was not stored before (`stored`), written in the one way that all programs read alike.
    pub fn ip(&mut self, text: &str, stored: &[&str]) {
        if let Some(fault) = ip::fault(text, stored) {
            self.invalid(text, fault);
        }
    }

    /// An address at which something outside the machine can answer.
    pub fn reachable_ip(&mut self, text: &str) {
        let faults = ip::validate_reachable(text, &self.path());
        self.extend(faults);
    }

    /// A path of HTTP below a domain: `acme.io/foo`.
    pub fn domain_path<'t>(&mut self, text: impl Text<'t>) {
        let Some(text) = text.text().filter(|text| self.filled(text)) else {
            return;
        };
        let parts = text.split_once('/');
        let Some((host, path)) = parts.filter(|(host, path)| !host.is_empty() && !path.is_empty()) else {
            return self.invalid(text, "must be a domain-prefixed path (such as \"acme.io/foo\")");
        };
        self.subdomain(host);
        self.texts(path, forms::http_path(path));
    }

    /// A domain of at least three labels.
    pub fn qualified_domain(&mut self, name: &str) {
        if self.filled(name) {
            self.domain_of(name, (3, "three"));
        }
    }

    /// A domain of a host, of at least two labels. A dot at the end makes it absolute.
    pub fn host_domain(&mut self, name: &str) {
        if !self.filled(name) {
            return;
        }
        let name = name.strip_suffix('.').unwrap_or(name);
        if self.domain_of(name, (2, "two"))
            && let Some(long) = name.split('.').find(|label| !names::dns_label(label).is_empty())
        {
            self.invalid(long, names::dns_label(long).join(","));
        }
    }

    /// Whether the name has at least so many labels.
    fn domain_of(&mut self, name: &str, (least, word): (usize, &str)) -> bool {
        let texts = names::dns_subdomain(name);
        let is_short = name.split('.').count() < least;
        if !texts.is_empty() {
            self.invalid(name, texts.join(","));
        } else if is_short {
            let text = format!("should be a domain with at least {word} segments separated by dots");
            self.invalid(name, text);
        }
        texts.is_empty() && !is_short
    }

    /// A path below another, that leaves it nowhere.
    pub fn descending_path(&mut self, path: &str) {
        if path.starts_with('/') {
            self.invalid(path, "must be a relative path");
        }
        self.no_backsteps(path);
    }

    /// As [`Faults::descending_path`], of a file whose name those that are kept aside don't have.
    pub fn unreserved_path(&mut self, path: &str) {
        self.descending_path(path);
        if path.starts_with("..") && !path.starts_with("../") {
            self.invalid(path, "must not start with '..'");
        }
    }

    /// No step of the path leads back.
    pub fn no_backsteps(&mut self, path: &str) {
        if has_backsteps(path) {
            self.invalid(path, "must not contain '..'");
        }
    }
}

/// Whether a step of the path leads back.
pub fn has_backsteps(path: &str) -> bool {
    path.contains("..") && path.split('/').any(|step| step == "..")
}

/// One of several fields that exclude each other: the first that is there counts, each further one is a fault.
pub struct Exclusive {
    text: &'static str,
    found: usize,
}

impl Exclusive {
    /// With what is said of each further one.
    pub fn new(text: &'static str) -> Exclusive {
        Exclusive { text, found: 0 }
    }

    /// The field `name`.
    pub fn field<T>(
        &mut self,
        f: &mut Faults<'_>,
        name: &str,
        value: Option<&T>,
        check: impl FnOnce(&mut Faults<'_>, &T),
    ) {
        self.field_as(f, (name, name), value, check);
    }

    /// As [`Exclusive::field`], where a further one, and faults within it, are told at other names than the field's.
    pub fn field_as<T>(
        &mut self,
        f: &mut Faults<'_>,
        (further, within): (&str, &str),
        value: Option<&T>,
        check: impl FnOnce(&mut Faults<'_>, &T),
    ) {
        let Some(value) = value else { return };
        self.found += 1;
        match self.found {
            1 => check(&mut f.at(within), value),
            _ => f.at(further).forbidden(self.text),
        }
    }

    /// Counts one more that is checked elsewhere and excludes no other before it.
    pub fn count(&mut self) {
        self.found += 1;
    }

    /// How many were there.
    pub fn found(&self) -> usize {
        self.found
    }
}

/// Names, or whatever else stands once in a list.
#[derive(Default)]
pub struct Unique<'a>(HashSet<&'a str>);

impl<'a> Unique<'a> {
    /// A fault at this place if the value was there before; false then.
    pub fn check(&mut self, f: &mut Faults<'_>, value: &'a str) -> bool {
        let is_new = self.0.insert(value);
        if !is_new {
            f.duplicate(value);
        }
        is_new
    }

    /// Whether the value was there.
    pub fn has(&self, value: &str) -> bool {
        self.0.contains(value)
    }
}

#[cfg(test)]
mod tests {
    use keelson_api::apps::v1::ReplicaSetStatus;

    use super::*;
    use crate::testing::lines;

    #[test]
    fn faults_know_their_place() {
        let faults = at(&Path::new("spec"), |f| {
            f.each("ports", &[0, 80], |f, number| f.at("port").port(*number));
            f.at("limits").key("cpu").required("");
            f.at("path").unreserved_path("a/../b");
            f.at("path").unreserved_path("..a");
        });
        assert_eq!(
            lines(&faults),
            "spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive\n\
             spec.limits[cpu]: Required value\n\
             spec.path: Invalid value: \"a/../b\": must not contain '..'\n\
             spec.path: Invalid value: \"..a\": must not start with '..'"
        );
    }

    #[test]
    fn numbers_have_names() {
        let status = crate::testing::read::<ReplicaSetStatus>(r#"{"replicas":-1,"terminatingReplicas":-2}"#);
        let names = ["replicas", "readyReplicas", "terminatingReplicas", "replica"];
        let faults = of_status(|f| f.counts(&status, &names));
        assert_eq!(
            lines(&faults),
            "status.replicas: Invalid value: -1: must be greater than or equal to 0\n\
             status.terminatingReplicas: Invalid value: -2: must be greater than or equal to 0\n\
             status.replica: Internal error: io.k8s.api.apps.v1.ReplicaSetStatus has no field replica"
        );
    }

    #[test]
    fn texts_and_numbers_may_be_absent() {
        let none = None::<&str>;
        let faults = of_object(|f| {
            f.at("a").subdomain(none);
            f.at("b").one_of_filled(none, &["x"]);
            f.at("c").label(given(""));
            f.at("d").max_bytes("abc", 2);
            f.at("e").number(Some(7), |number| number < 7, "must be less than 7");
            f.at("f").port(None::<i32>);
        });
        assert_eq!(
            lines(&faults),
            "d: Too long: may not be more than 2 bytes\ne: Invalid value: 7: must be less than 7"
        );
    }

    #[test]
    fn of_fields_that_exclude_each_other_the_first_counts() {
        let faults = of_object(|f| {
            let mut one = Exclusive::new("one is enough");
            one.field(f, "a", None::<&u8>, |f, _| f.required(""));
            one.field(f, "b", Some(&1), |f, _| f.at("c").required(""));
            one.field_as(f, ("D", "d"), Some(&1), |f, _| f.required(""));
            assert_eq!(one.found(), 2);
        });
        assert_eq!(lines(&faults), "b.c: Required value\nD: Forbidden: one is enough");
    }

    #[test]
    fn domains_stand_before_paths() {
        type Check = fn(&mut Faults<'_>, &str);
        let told = |check: Check, text: &str| lines(&of_object(|f| check(f, text)));
        let checks: [(Check, &str, &str); 3] = [
            (|f, text| f.domain_path(text), "a.b/c~d", "a.b/c d"),
            (|f, text| f.domain_path(text), "a/b/c", "a/"),
            (|f, text| f.qualified_domain(text), "a.b.c", "a.b"),
        ];
        for (check, good, bad) in checks {
            assert_eq!(told(check, good), "");
            assert_ne!(told(check, bad), "");
            assert_eq!(told(check, ""), "<nil>: Required value");
        }
    }
}
