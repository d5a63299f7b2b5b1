//! Reviews of conversions: what a webhook is sent, and what it sends back.

use bytes::Bytes;
use keelson_machinery::json::write_kind;
use keelson_machinery::object::Object;
use keelson_machinery::scheme::KindRef;
use keelson_net::client::{Answer, members};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::object::Checked;

const GROUP: &str = "apiextensions.k8s.io";
const KIND: &str = "ConversionReview";

/// A version of reviews.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Review {
    V1,
    V1beta1,
}

/// What is read of an answer.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Response<'a> {
    uid: Option<String>,
    #[serde(borrow)]
    converted_objects: Option<Vec<&'a RawValue>>,
    result: Option<ResponseResult>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ResponseResult {
    status: Option<String>,
    message: Option<String>,
}

impl Review {
    /// The first version that both sides know.
    pub fn first_of(versions: &[String]) -> Option<Review> {
        versions.iter().find_map(|version| match version.as_str() {
            "v1" => Some(Review::V1),
            "v1beta1" => Some(Review::V1beta1),
            _ => None,
        })
    }

    fn version(self) -> &'static str {
        match self {
            Review::V1 => "v1",
            Review::V1beta1 => "v1beta1",
        }
    }

    /// The body of a request. It has an empty response, since kube-apiserver sends one.
    pub fn request(self, uid: &str, objects: &[Box<dyn Object>], to: &KindRef) -> Bytes {
        let (version, desired) = (self.version(), to.gvk().api_version());
        let head = format!(
            r#"{{"kind":"{KIND}","apiVersion":"{GROUP}/{version}","request":{{"uid":{},"desiredAPIVersion":{},"objects":["#,
            json!(uid),
            json!(desired),
        );
        let mut text = head.into_bytes();
        for (place, object) in objects.iter().enumerate() {
            if place > 0 {
                text.push(b',');
            }
            write_kind(&**object, &mut text);
        }
        text.extend_from_slice(br#"]},"response":{"uid":"","convertedObjects":null,"result":{"metadata":{}}}}"#);
        text.push(b'\n');
        text.into()
    }

    /// The objects that came back, as they are written.
    ///
    /// # Errors
    /// What the webhook says, or what is wrong with its answer.
    pub fn converted<'a>(self, uid: &str, answer: &'a Answer) -> Checked<Vec<&'a RawValue>> {
        let members = members(answer, GROUP, self.version(), KIND).map_err(|error| error.to_string())?;
        if self == Review::V1 {
            check_kind(&members)?;
        }
        let response = members.get("response").filter(|text| text.get() != "null");
        let response = response.ok_or("no response provided")?;
        let response: Response<'a> = serde_json::from_str(response.get()).map_err(|error| error.to_string())?;
        let given = response.uid.unwrap_or_default();
        if self == Review::V1 && given != uid {
            return Err(format!("expected response.uid={uid:?}, got {given:?}"));
        }
        let result = response.result.unwrap_or_default();
        let status = result.status.unwrap_or_default();
        match result.message.filter(|message| !message.is_empty()) {
            _ if status == "Success" => Ok(response.converted_objects.unwrap_or_default()),
            Some(message) => Err(message),
            None => Err(format!("response.result.status was '{status}', not 'Success'")),
        }
    }
}

/// Version v1 has to say what it is.
fn check_kind(members: &std::collections::BTreeMap<String, &RawValue>) -> Checked<()> {
    let given = |name: &str| -> String {
        let text = members.get(name).map(|text| serde_json::from_str(text.get()));
        text.and_then(Result::ok).unwrap_or_default()
    };
    let (version, kind) = (given("apiVersion"), given("kind"));
    if !version.is_empty() && !kind.is_empty() {
        return Ok(());
    }
    let shown = if version.is_empty() { "/" } else { &version };
    Err(format!(
        "expected webhook response of {GROUP}/v1, Kind={KIND}, got {shown}, Kind={kind}"
    ))
}
