//! A resource in two versions, of which others make each other: they take their time, and fail.

use std::sync::Arc;

use futures_util::FutureExt;
use keelson_codegen_sample::api::SCHEME;
use keelson_machinery::json;
use keelson_machinery::meta::v1::ObjectMeta;
use keelson_machinery::object::{Gvk, Object};
use keelson_machinery::reflect::{FieldDesc, Flags, Id, MessageDesc, Names, Ref, Type, Unknown};
use keelson_machinery::scheme::{Conversion, KindDesc, KindRef};
use keelson_machinery::status::StatusError;

use super::GROUP;
use super::shop::{Numbering, Shop};
use crate::generic::{
    ConversionStrategy, Converted, Converter, Definition, OpenApiForm, OwnDefinitions, Registry, Resource,
    ResourceCode, VersionDefinition,
};
use crate::simulation::slow::Done;

/// The plural of the resource.
pub const PLURAL: &str = "parcels";
/// The field of the spec that holds an object's name, by version. The first one is stored.
const FIELDS: [(&str, &str); 2] = [("v1", "label"), ("v2", "title")];

/// Makes one version of the other.
struct Renaming(Arc<Shop>);

impl Converter for Renaming {
    fn convert(&self, objects: Vec<Box<dyn Object>>, to: &KindRef) -> Converted {
        let (shop, to) = (self.0.clone(), to.clone());
        async move {
            shop.pause().await;
            if shop.dice.chance(20) {
                return Err(StatusError::internal_error("conversion failed"));
            }
            Ok(objects.iter().map(|object| renamed(&**object, &to)).collect())
        }
        .boxed()
    }
}

fn renamed(object: &dyn Object, to: &KindDesc) -> Box<dyn Object> {
    let mut text = Vec::new();
    json::write_kind(object, &mut text);
    let text = String::from_utf8(text).unwrap();
    let [(first, label), (_, title)] = FIELDS;
    let (from, into) = if to.version == first {
        (title, label)
    } else {
        (label, title)
    };
    let text = text.replace(&format!("\"{from}\""), &format!("\"{into}\""));
    let mut renamed = to.new_object();
    json::read(text.as_bytes(), renamed.as_reflect_mut()).unwrap();
    renamed
}

/// Nobody asks for a document here.
struct NoDefinitions;

impl OwnDefinitions for NoDefinitions {
    fn definitions(&self, _: OpenApiForm) -> Vec<u8> {
        b"{}".to_vec()
    }
}

fn version(name: &str, field: &str) -> VersionDefinition {
    let field = FieldDesc::shared(field, Type::String, Flags::NONE);
    let spec = MessageDesc::shared("spec", None, vec![field], Unknown::Dropped).unwrap();
    let metadata = Type::Message(Ref::Static(ObjectMeta::message_desc()));
    let fields = vec![
        FieldDesc::shared("metadata", metadata, Flags::NONE),
        FieldDesc::shared("spec", Type::Message(spec), Flags::NONE),
    ];
    let gvk = Gvk::new(GROUP, name, "Parcel");
    let message = MessageDesc::shared(&*format!("{name}.Parcel"), Some(gvk), fields, Unknown::Dropped);
    let mut kinds = SCHEME.groups.iter().flat_map(|g| g.versions).flat_map(|v| v.kinds);
    let model = kinds.find(|kind| kind.kind == "Order").unwrap();
    let kind = KindDesc {
        version: name.into(),
        kind: "Parcel".into(),
        list_kind: "ParcelList".into(),
        plural: PLURAL.into(),
        singular: "parcel".into(),
        short_names: Names::NONE,
        subresources: Ref::Static(&[]),
        columns: Ref::Static(&[]),
        storage: name == FIELDS[0].0,
        hub: false,
        storage_path: format!("{GROUP}/{PLURAL}").into(),
        selectable_fields: Names::NONE,
        stored_as_json: true,
        message: message.unwrap(),
        conversion: Conversion::None,
        own_id: Id::fresh(),
        ..model.clone()
    };
    VersionDefinition {
        kind: KindRef::Shared(Arc::new(kind)),
        served: true,
        priority: 100,
        definitions: Arc::new(NoDefinitions),
    }
}

/// Serves it, and gives back the resources of its versions, that of the stored one first.
pub async fn install(registry: &Registry, shop: &Arc<Shop>) -> [Arc<Resource>; 2] {
    let numbering = shop.clone();
    let definition = Definition {
        versions: FIELDS.map(|(name, field)| version(name, field)).into(),
        group_priority: 1000,
        conversion: ConversionStrategy::Webhook(Arc::new(Renaming(shop.clone()))),
        code: Box::new(move |_| ResourceCode::default().with_strategy(Numbering(numbering.clone()))),
    };
    registry.install(definition).await.unwrap();
    FIELDS.map(|(name, _)| registry.lookup(GROUP, name, PLURAL).unwrap().resource.clone())
}

/// What the spec of an object says in a version.
pub fn spec(resource: &Resource, name: &str) -> String {
    let field = FIELDS.iter().find(|(version, _)| resource.hub.version == *version);
    format!(r#"{{"{}": "{name}"}}"#, field.unwrap().1)
}

/// The text of a stored object of this resource that is not one of the stored version with its name; `None`: it is.
pub fn not_as_stored(write: &Done) -> Option<String> {
    let text = String::from_utf8_lossy(write.value.as_ref()?).into_owned();
    let name = write
        .key
        .strip_prefix(&format!("/registry/{GROUP}/{PLURAL}/default/"))?;
    let (version, field) = FIELDS[0];
    let has = |part: &str| text.contains(part);
    let is_right = has(&format!("{GROUP}/{version}")) && has(&format!("\"spec\":{{\"{field}\":\"{name}\"}}"));
    (!is_right).then_some(text)
}
