//! The updater of a write to a scale: what plug-ins see is the Scale, what is stored is the object.

use keelson_machinery::copy;
use keelson_machinery::jsonpath;
use keelson_machinery::managedfields::metadata;
use keelson_machinery::meta::v1::ManagedFieldsEntry;
use keelson_machinery::object::{Kind, Object};
use keelson_machinery::reflect::Reflect;
use keelson_machinery::scheme::SubresourceDesc;
use keelson_machinery::status::StatusError;
use keelson_registry::admission::Operation;
use keelson_registry::managed::RequestWriter;
use keelson_registry::outcome::{later, now};
use keelson_registry::write::Updater;
use keelson_registry::{Endpoint, Outcome, Target};

use super::apply::Repeated;
use super::scale::{Asked, check, check_place, put_back, same_uid};
use super::scale_owners::ScaleOwners;
use super::{Rest, custom_scale};
use crate::request::Request;

/// Makes an object out of the one that is there and a request to its scale.
pub(super) struct Scaling<'a> {
    pub rest: &'a Rest,
    pub request: &'a Request,
    pub endpoint: &'a Endpoint,
    pub scale: &'a SubresourceDesc,
    pub target: &'a Target<'a>,
    pub writer: &'a RequestWriter,
    pub body: &'a [u8],
    pub asked: &'a Asked,
}

impl Updater for Scaling<'_> {
    fn make<'a>(&'a mut self, current: Option<&'a dyn Object>) -> Outcome<'a, Box<dyn Object>> {
        match current {
            Some(current) => later(self.scaled(current)),
            None => now(Err(self.target.resource.not_found(self.target.name))),
        }
    }
}

impl Scaling<'_> {
    /// Plug-ins see the Scale, not the object that it is one of.
    async fn scaled(&self, current: &dyn Object) -> Result<Box<dyn Object>, StatusError> {
        let (endpoint, scale) = (self.endpoint, self.scale);
        if let Some(uid) = self.other_uid(current) {
            // The write is refused before anybody looks at what else is asked for.
            let mut other = current.clone_object();
            other.meta_mut().uid = uid;
            return Ok(other);
        }
        let versioned = endpoint.resource.from_hub(&endpoint.kind, current.clone_object())?;
        let mut view = self.rest.view(scale, &*versioned)?;
        let is_custom = endpoint.resource.is_custom();
        if is_custom {
            custom_scale::mark_absent(scale, &*versioned, &mut *view)?;
        }
        let mut owners = ScaleOwners::new(scale, self.writer, &current.meta().managed_fields);
        let mut new = self.rest.new_scale(scale)?;
        let owned_before = owners.shown();
        let made = self.made(&*view, &mut owners)?;
        copy::copy_message(new.as_reflect_mut(), &*made);
        show_owners(view.as_reflect_mut(), owned_before);
        show_owners(new.as_reflect_mut(), owners.shown());
        let operation = Operation::Update;
        self.target.admit(operation, Some(&mut *new), Some(&*view)).await?;
        check_place(self.request, endpoint, new.as_reflect())?;
        // Of a custom resource the object is validated.
        if !is_custom {
            check(scale, &*new, &current.meta().namespace)?;
        }
        let mut scaled = put_back(endpoint, scale, versioned, new.as_reflect())?;
        scaled.meta_mut().managed_fields = owners.entries();
        if is_custom && scaled.meta().resource_version.is_empty() {
            // A Scale that names no revision is of the one that is there.
            scaled
                .meta_mut()
                .resource_version
                .clone_from(&current.meta().resource_version);
        }
        endpoint.resource.to_hub(&endpoint.kind, scaled)
    }

    /// The uid that a whole Scale names, where that is none of the object.
    fn other_uid(&self, current: &dyn Object) -> Option<String> {
        let Asked::Replaced(new, _) = self.asked else {
            return None;
        };
        let uid = jsonpath::lookup_text(new.as_reflect(), "metadata.uid").into_owned();
        (!uid.is_empty() && uid != current.meta().uid).then_some(uid)
    }

    /// The Scale that is asked for in the place of `view`.
    fn made(&self, view: &dyn Kind, owners: &mut ScaleOwners<'_>) -> Result<Box<dyn Reflect>, StatusError> {
        let warn = |problems: &[String]| self.request.warnings.borrow_mut().extend_from_slice(problems);
        match self.asked {
            Asked::Applied(applied, text) => {
                let force = self.request.query.flag("force");
                let is_custom = self.endpoint.resource.is_custom();
                if is_custom {
                    owners.check_applicable()?;
                }
                let (made, changed) = owners.apply(view.as_reflect(), applied.as_reflect(), text, force)?;
                match &text.repeated {
                    Repeated::Passed => {}
                    Repeated::Warnings(warnings) => warn(warnings),
                    Repeated::Refused(error) => return Err(error.clone()),
                }
                same_uid(self.endpoint, self.scale, view.as_reflect(), &*made)?;
                match is_custom && changed {
                    true => Err(owners.unconverted(applied.as_reflect())),
                    false => Ok(made),
                }
            }
            Asked::Replaced(new, problems) => {
                warn(problems);
                owners.update(view.as_reflect(), new.as_reflect())?;
                Ok(new.clone_message())
            }
            Asked::Patched(patch_type, validation) => {
                let mut shown = view.clone_message();
                show_owners(&mut *shown, owners.shown());
                let mut new = self.rest.new_scale(self.scale)?;
                let mut kind = self.rest.new_scale(self.scale)?;
                for index in 0..shown.desc().fields.len() {
                    copy::copy_field(kind.as_reflect_mut(), &*shown, index);
                }
                let patch = (*patch_type, self.body);
                let problems = self
                    .rest
                    .patched(self.endpoint, patch, &*kind, *validation, &mut *new)?;
                same_uid(self.endpoint, self.scale, kind.as_reflect(), new.as_reflect())?;
                warn(&problems);
                owners.update(view.as_reflect(), new.as_reflect())?;
                Ok(new.clone_message())
            }
        }
    }
}

fn show_owners(scale: &mut dyn Reflect, owners: Vec<ManagedFieldsEntry>) {
    if let Some(meta) = metadata(scale) {
        meta.managed_fields = owners;
    }
}
