//! Registrations that fit the definitions, and those that end the start.

use keelson_access::authz::Authorization;
use keelson_access::user::User;
use keelson_base::env::{SystemClock, SystemEntropy};
use keelson_codegen_sample::api::SCHEME;
use keelson_codegen_sample::api::shop_example_com::{v1, v1alpha1};
use keelson_machinery::field::ErrorList;
use keelson_machinery::meta::v1::ObjectMeta;
use keelson_machinery::reflect::{FieldDesc, Flags, MessageDesc, Names, Ref, Type as FieldType, Unknown};
use keelson_machinery::scheme::{GroupDesc, VersionDesc};
use keelson_machinery::time::Time;
use keelson_storage::HistoryLimits;
use keelson_storage::encryption::Encryption;
use keelson_storage::memory::MemoryStore;

use super::*;
use crate::cache::Budget;
use crate::generic::managed::Tracking;
use crate::generic::{Backend, Context, Registry, RuntimeConfig, Warnings};

/// Objects to every order.
struct Never;

impl Strategy for Never {
    type Object = v1::Order;

    fn validate(&self, _context: &Context, order: &v1::Order, _old: Option<&v1::Order>) -> ErrorList {
        keelson_machinery::field::FieldError::forbidden(
            &keelson_machinery::field::Path::new("spec").child("customer"),
            order.spec.customer.clone(),
        )
        .into()
    }
}

/// The same of an older version.
struct Older;

impl Strategy for Older {
    type Object = v1alpha1::Order;
}

struct Anything;

impl Strategy for Anything {
    type Object = dyn Object;
}

struct Nothing;

impl Handler for Nothing {}

fn registry(schemes: &[&'static Scheme], code: &KindCode, served: bool) -> Result<Registry, RegistryError> {
    let backend = Backend {
        store: Arc::new(MemoryStore::new(HistoryLimits::default()).unwrap()),
        clock: Arc::new(SystemClock),
        entropy: Arc::new(SystemEntropy),
        budget: Budget::new(0),
        encryption: Encryption::none(),
        placement: Arc::default(),
        corrupt: Default::default(),
    };
    let config = match served {
        true => RuntimeConfig::all(),
        false => RuntimeConfig::parse(["api/all=false", "nothing/v1=true"]).unwrap(),
    };
    Registry::new(schemes, code, &backend, "/registry", &config)
}

/// What ends the start.
fn fault(register: impl FnOnce(&mut KindCode)) -> String {
    let mut code = KindCode::default();
    register(&mut code);
    match registry(&[&SCHEME], &code, true) {
        Ok(_) => String::new(),
        Err(error) => error.to_string(),
    }
}

fn orders(code: &KindCode) -> Arc<Resource> {
    let registry = registry(&[&SCHEME], code, false).unwrap();
    registry.resource("shop.example.com", "orders").unwrap().clone()
}

fn context() -> Context {
    Context {
        now: Time::from_unix(0, 0),
        namespace: String::new(),
        user: User::anonymous(),
        asked: Arc::default(),
        verbs: None,
        authorization: Authorization::default(),
        dry_run: false,
        tracking: Tracking::default(),
        warnings: Warnings::default(),
        audit: None,
    }
}

#[test]
fn code_reaches_its_kind_served_or_not() {
    const KEPT: &[Kept] = &[Kept::at("spec.customer")];
    let checks = MetadataChecks {
        standard_finalizers: true,
        ..MetadataChecks::ONCE
    };
    let mut code = KindCode::default();
    code.usual_metadata_checks(&SCHEME, checks);
    code.kind::<v1::Order>()
        .strategy(Never)
        .defaults(|order| order.spec.customer = "newer".to_owned())
        .kept(KEPT)
        .subresource("cancel", Nothing);
    code.kind::<v1alpha1::Order>()
        .defaults(|order| order.metadata.name = "older".to_owned());
    let resource = orders(&code);
    let mut order = v1::Order::default();
    let mut older = v1alpha1::Order::default();
    for kind in &resource.versions {
        match kind.version.as_str() {
            "v1" => resource.apply_defaults(kind, &mut order),
            _ => resource.apply_defaults(kind, &mut older),
        }
    }
    assert_eq!((&*order.spec.customer, &*order.metadata.name), ("newer", ""));
    assert_eq!(older.metadata.name, "older");
    let told = resource.strategy.validate(&context(), &order, None).to_string();
    assert_eq!(told, "spec.customer: Forbidden: newer");
    assert_eq!((&*resource.kept, resource.metadata_checks), (KEPT, checks));
    assert!(resource.handlers.contains_key("cancel"));
    code.kind::<v1::Order>().metadata_checks(MetadataChecks::ONCE);
    assert_eq!(orders(&code).metadata_checks, MetadataChecks::ONCE, "the kind's own");
}

#[test]
fn an_unknown_kind_ends_the_start() {
    let unknown = "no definition has this kind";
    assert_eq!(
        fault(|code| drop(code.named("shop.example.com", "oders").any_strategy(Anything))),
        format!("strategy of oders.shop.example.com: {unknown}")
    );
    assert_eq!(
        fault(|code| drop(code.named("", "orders").kept([]))),
        format!("kept fields of orders: {unknown}")
    );
    let mut code = KindCode::default();
    code.kind::<v1::Order>().defaults(|_| {});
    let told = registry(&[], &code, true).err().unwrap().to_string();
    assert_eq!(told, format!("defaults of shop.example.com/v1, Kind=Order: {unknown}"));
}

#[test]
fn what_is_registered_twice_ends_the_start() {
    let twice = |what: &str| format!("{what} of shop.example.com/v1, Kind=Order: registered twice");
    assert_eq!(
        fault(|code| {
            code.kind::<v1::Order>().strategy(Never);
            let mut other = KindCode::default();
            other.kind::<v1::Order>().any_strategy(Anything);
            code.merge(other);
        }),
        twice("strategy")
    );
    let order = |register: fn(KindEntry<'_, v1::Order>)| fault(|code| register(code.kind()));
    assert_eq!(order(|o| drop(o.defaults(|_| {}).defaults(|_| {}))), twice("defaults"));
    assert_eq!(order(|o| drop(o.kept([]).kept([]))), twice("kept fields"));
    let checks = MetadataChecks::ONCE;
    assert_eq!(
        fault(|code| drop(code.kind::<v1::Order>().metadata_checks(checks).metadata_checks(checks))),
        twice("metadata checks")
    );
    assert_eq!(
        order(|o| drop(o.subresource("cancel", Nothing).subresource("cancel", Nothing))),
        twice("subresource \"cancel\"")
    );
    assert_eq!(
        fault(|code| {
            code.named("shop.example.com", "orders").any_strategy(Anything);
            code.kind::<v1::Order>().strategy(Never);
        }),
        twice("strategy"),
        "by name and by type"
    );
}

#[test]
fn a_subresource_that_is_not_defined_ends_the_start() {
    assert_eq!(
        fault(|code| drop(code.kind::<v1::Order>().subresource("cancle", Nothing))),
        "subresource \"cancle\" of shop.example.com/v1, Kind=Order: its definition has no such subresource"
    );
    assert_eq!(
        fault(|code| drop(code.kind::<v1::Order>().resource(Nothing))),
        "handler of shop.example.com/v1, Kind=Order: its objects are stored, so that no code answers for them"
    );
}

#[test]
fn a_cell_that_no_column_shows_ends_the_start() {
    assert_eq!(
        fault(|code| drop(code.kind::<v1::Order>().cells(&[("order_aeg", |_| Cell::Null)]))),
        "cell \"order_aeg\" of shop.example.com/v1, Kind=Order: no column of its definition has this function"
    );
    let age: fn(&v1::Order) -> Cell = |_| Cell::Null;
    assert_eq!(
        fault(|code| drop(code.kind::<v1::Order>().cells(&[("age", age)]))),
        "cell \"age\" of shop.example.com/v1, Kind=Order: registered twice",
        "every kind has it"
    );
    assert_eq!(
        fault(|code| drop(code.kind::<v1::Order>().row_reads(&["spec.custumer"]))),
        "the cells of com.example.shop.v1.Order read \"spec.custumer\", which is no field"
    );
}

#[test]
fn a_field_that_is_not_defined_ends_the_start() {
    for path in ["spec.custumer", "spec.customer.name", "spec.items.article"] {
        assert_eq!(
            fault(|code| drop(code.kind::<v1::Order>().kept([Kept::at(path)]))),
            format!("kept fields of shop.example.com/v1, Kind=Order: its objects have no field {path}")
        );
    }
}

#[test]
fn a_strategy_of_another_version_than_the_hub_ends_the_start() {
    assert_eq!(
        fault(|code| drop(code.kind::<v1alpha1::Order>().strategy(Older))),
        "strategy of shop.example.com/v1alpha1, Kind=Order: it is of the hub version, which is \
         shop.example.com/v1, Kind=Order"
    );
}

/// Orders whose table is made at run time.
fn dynamic() -> &'static Scheme {
    let group = &SCHEME.groups[0];
    let version = &group.versions[0];
    let order = version.kinds.iter().find(|kind| kind.plural == "orders").unwrap();
    let metadata = FieldDesc::shared(
        "metadata",
        FieldType::Message(Ref::Static(ObjectMeta::message_desc())),
        Flags::NONE,
    );
    let kind = KindDesc {
        message: MessageDesc::shared("example.Order", Some(order.gvk()), vec![metadata], Unknown::Dropped).unwrap(),
        columns: Vec::new().into(),
        selectable_fields: Names::from_iter([] as [&str; 0]),
        ..order.clone()
    };
    let version = VersionDesc {
        kinds: Box::leak(Box::new([kind])),
        ..*version
    };
    let group = GroupDesc {
        versions: Box::leak(Box::new([version])),
        ..*group
    };
    Box::leak(Box::new(Scheme {
        groups: Box::leak(Box::new([group])),
        ..SCHEME
    }))
}

#[test]
fn objects_of_another_type_end_the_start() {
    for (what, register) in [
        (
            "strategy",
            (|code| drop(code.kind::<v1::Order>().strategy(Never))) as fn(&mut KindCode),
        ),
        ("defaults", |code| drop(code.kind::<v1::Order>().defaults(|_| {}))),
    ] {
        let mut code = KindCode::default();
        register(&mut code);
        let told = registry(&[dynamic()], &code, true).err().unwrap().to_string();
        let ty = type_name::<v1::Order>();
        assert_eq!(
            told,
            format!("{what} of shop.example.com/v1, Kind=Order: its objects are no {ty}")
        );
    }
    let mut code = KindCode::default();
    code.named("shop.example.com", "orders").any_strategy(Anything);
    assert!(registry(&[dynamic()], &code, true).is_ok(), "it takes any");
}

/// It can't happen, but were a strategy asked about another type, it would not let the object pass.
#[test]
fn a_strategy_refuses_objects_of_another_type() {
    let (never, context) = (Typed(Never), context());
    let (order, other) = (v1::Order::default(), v1alpha1::Order::default());
    let internal = |errors: ErrorList| errors.to_string().contains("Internal error: the rules for ");
    assert!(internal(never.validate(&context, &other, None)));
    assert!(internal(never.validate(&context, &other, Some(&order))));
    assert!(internal(never.validate(&context, &order, Some(&other))));
    assert!(internal(never.validate_subresource(&context, "x", &other, &other)));
    assert!(internal(never.validate_status_update(&context, &order, &other)));
    assert!(never.authorize(&context, &order, None).is_none());
    let refusal = never.authorize(&context, &other, None).unwrap();
    let refused = futures_util::FutureExt::now_or_never(refusal).unwrap().unwrap_err();
    assert_eq!(refused.code, 500, "{refused:?}");
    assert!(never.authorize(&context, &order, Some(&other)).is_some());
    assert!(!never.may_vanish(&other) && never.may_vanish(&order));
}
