//! Request bodies as objects.

use std::sync::Arc;

use keelson_base::cooperative::aside;
use keelson_machinery::object::{Kind, Object};
use keelson_machinery::status::StatusError;
use keelson_registry::{Endpoint, Registry};

use super::decode::{Expected, Naming, decode_kind, decode_object};
use super::options::FieldValidation;
use crate::negotiate::Format;
use crate::request::{LARGE_BODY_BYTES, Request};

impl Request {
    /// Decodes the body as an object of an endpoint, with defaults not yet applied. What it says of its kind may be
    /// wrong where that is a matter of validation: then the second value is that kind.
    pub async fn object(
        &self,
        registry: &Arc<Registry>,
        endpoint: &Endpoint,
        validation: FieldValidation,
    ) -> Result<(Box<dyn Object>, Option<String>), StatusError> {
        let naming = match endpoint.resource.is_custom() {
            true => Naming::Custom,
            false => Naming::Built,
        };
        let (kind, format) = (&endpoint.kind, self.body_format()?);
        if (naming, format) == (Naming::Custom, Format::Protobuf) {
            // Nobody knows the numbers of its fields.
            let taken = [Format::Json, Format::Yaml].map(Format::media_type);
            return Err(StatusError::unsupported_media_type(&taken));
        }
        let body = self.body().await?;
        let (object, told) = match body.len() > LARGE_BODY_BYTES {
            false => decode_object(registry, (kind, naming), format, &body, validation)?,
            true => {
                let (registry, kind) = (registry.clone(), kind.clone());
                aside(move || decode_object(&registry, (&kind, naming), format, &body, validation)).await?
            }
        };
        self.warnings.borrow_mut().extend(told.problems);
        self.written_empty.replace(told.written_empty);
        Ok((object, told.other_kind.filter(|_| naming == Naming::Custom)))
    }

    /// Decodes the body as a `kind` that need not be a resource, into an empty message of it.
    pub async fn kind(
        &self,
        registry: &Arc<Registry>,
        expected: Expected,
        validation: FieldValidation,
        mut message: Box<dyn Kind>,
    ) -> Result<Box<dyn Kind>, StatusError> {
        let format = self.body_format()?;
        let body = self.body().await?;
        let large = body.len() > LARGE_BODY_BYTES;
        let registry = registry.clone();
        let decode = move || {
            let told = decode_kind(&registry, &expected, format, &body, validation, &mut *message)?;
            Ok((message, told))
        };
        let (message, told) = match large {
            false => decode()?,
            true => aside(decode).await?,
        };
        self.warnings.borrow_mut().extend(told.problems);
        Ok(message)
    }
}
