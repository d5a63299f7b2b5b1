//! Helpers of the tests of filters.

use actix_web::HttpResponse;
use actix_web::test::TestRequest;
use keelson_access::request_info::RequestInfo;

use crate::request::Request;

/// A request whose attributes have been read.
pub(crate) fn request(method: &str, target: &str, headers: &[(&str, &str)]) -> Request {
    let method = method.parse().unwrap();
    let mut http = TestRequest::default().method(method).uri(target);
    for (name, value) in headers {
        http = http.insert_header((*name, *value));
    }
    let mut request = Request::new(http.to_srv_request());
    let (method, path) = (
        request.http.method().as_str().to_owned(),
        request.http.path().to_owned(),
    );
    request.info = RequestInfo::parse(&method, &path, &request.query).unwrap().into();
    request
}

/// The end of a chain.
pub(super) async fn fine(_: &mut Request) -> HttpResponse {
    HttpResponse::Ok().body("fine")
}

/// A header of an answer; "" if it is absent.
pub(super) fn header<'a>(response: &'a HttpResponse, name: &str) -> &'a str {
    response.headers().get(name).map_or("", |value| value.to_str().unwrap())
}

/// The whole body as text.
pub(super) async fn body(response: HttpResponse) -> String {
    let bytes = actix_web::body::to_bytes(response.into_body()).await.unwrap();
    String::from_utf8(bytes.to_vec()).unwrap()
}
