//! DELETE of an object or of a collection.

use actix_web::HttpResponse;
use keelson_base::cooperative::Slices;
use keelson_machinery::meta::v1::{DeleteOptions, Status, StatusDetails};
use keelson_machinery::object::{Object, not_registered};
use keelson_machinery::status::StatusError;
use keelson_machinery::{json, protobuf, yaml};
use keelson_registry::admission::Options;
use keelson_registry::{Endpoint, SHARED_KINDS};

use super::list::objects;
use super::options::{self, ListOptions, Match};
use super::{Rest, named};
use crate::negotiate::{Format, Offer};
use crate::request::Request;
use crate::respond;

impl Rest {
    pub(super) async fn delete(&self, request: &Request, endpoint: &Endpoint) -> Result<HttpResponse, StatusError> {
        let accepted = request.negotiate(Offer::Objects)?;
        let options = self.delete_options(request, endpoint).await?;
        let context = self.context(request, endpoint, !options.dry_run.is_empty());
        let target = named(request, endpoint, None, &context, Options::Delete(&options));
        let deleted = self.verbs.delete(&target, &options).await?;
        // One that could not be read has nothing to show.
        let unread = deleted.object.meta().uid.is_empty();
        if deleted.gone && (unread || !endpoint.kind.returns_deleted) {
            let status = success(endpoint, &*deleted.object);
            return Ok(respond::kind(request.rendering(accepted.format), 200, &status));
        }
        let accepted_only = !deleted.gone && options.orphan_dependents == Some(false);
        self.object_response(
            request,
            endpoint,
            accepted,
            if accepted_only { 202 } else { 200 },
            deleted.object,
        )
    }

    pub(super) async fn delete_collection(
        &self,
        request: &Request,
        endpoint: &Endpoint,
    ) -> Result<HttpResponse, StatusError> {
        let accepted = request.negotiate(Offer::Objects)?;
        let mut list = ListOptions::parse(&request.query, false)?;
        // Collections are deleted page by page, and a page of a version is one of that very version.
        if list.version_match.is_none()
            && list.continue_token.is_empty()
            && !matches!(list.resource_version.as_str(), "" | "0")
        {
            list.version_match = Some(Match::Exact);
        }
        let options = self.delete_options(request, endpoint).await?;
        let context = self.context(request, endpoint, !options.dry_run.is_empty());
        let found = self.select(request, endpoint, &list).await?;
        let (mut found_objects, mut slices) = (Vec::new(), Slices::begin());
        for object in objects(endpoint, found.items) {
            found_objects.push(object?);
            slices.between().await;
        }
        let target = named(request, endpoint, None, &context, Options::Delete(&options));
        self.verbs.delete_collection(&target, &found_objects, &options).await?;
        // They are shown as they were found.
        let mut shown = found_objects.into_iter().map(Ok);
        self.list_response(request, endpoint, accepted, &found.meta, &mut shown)
            .await
    }

    /// Those of the body if there is one: it makes the query's void.
    async fn delete_options(&self, request: &Request, endpoint: &Endpoint) -> Result<DeleteOptions, StatusError> {
        let options = self.read_delete_options(request).await?;
        if let Some(text) = endpoint.resource.strategy.deletion_warning(&options) {
            request.warn(text);
        }
        Ok(options)
    }

    async fn read_delete_options(&self, request: &Request) -> Result<DeleteOptions, StatusError> {
        let body = request.body().await?;
        if body.is_empty() {
            return options::delete_options_of_query(&request.query);
        }
        let options = match request.body_format()? {
            Format::Json => options::delete_options_of_json(checked(&body)?),
            Format::Yaml => {
                let json = yaml::to_json(&body).map_err(|e| StatusError::bad_request(e.to_string()))?;
                options::delete_options_of_json(checked(&json)?)
            }
            Format::Protobuf => {
                let unknown = protobuf::decode_envelope(&body).map_err(|e| StatusError::bad_request(e.to_string()))?;
                check_type(&unknown.api_version, &unknown.kind)?;
                options::delete_options_of_protobuf(unknown.raw)
            }
        }?;
        request.audit.sent_options(&options);
        options::checked_delete_options(options)
    }
}

fn checked(body: &[u8]) -> Result<&[u8], StatusError> {
    let named = json::type_meta(body)
        .map_err(|e| StatusError::bad_request(format!("couldn't get version/kind; json parse error: {e}")))?;
    check_type(&named.api_version, &named.kind)?;
    Ok(body)
}

/// DeleteOptions may be of any group's version, but of no other kind.
fn check_type(api_version: &str, kind: &str) -> Result<(), StatusError> {
    if api_version.matches('/').count() > 1 {
        let text = format!("unexpected GroupVersion string: {api_version}");
        return Err(StatusError::bad_request(text));
    }
    if matches!(kind, "" | "DeleteOptions") {
        return Ok(());
    }
    Err(StatusError::bad_request(
        match SHARED_KINDS.contains(&kind) && kind != "List" {
            true => format!("converting (v1.{kind}) to (v1.DeleteOptions): unknown conversion"),
            false => not_registered(kind, api_version),
        },
    ))
}

fn success(endpoint: &Endpoint, object: &dyn Object) -> Status {
    Status {
        status: "Success".into(),
        details: Some(Box::new(StatusDetails {
            name: object.meta().name.clone(),
            group: endpoint.kind.group.to_string(),
            kind: endpoint.kind.plural.to_string(),
            uid: object.meta().uid.clone(),
            ..StatusDetails::default()
        })),
        ..Status::default()
    }
}
