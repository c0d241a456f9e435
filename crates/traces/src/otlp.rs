//! Spans as OTLP's messages (opentelemetry/proto/trace/v1/trace.proto, collector/trace/v1/trace_service.proto): those of their fields that are
//! written here, or read.
//!
//! They are written down by hand, as the crate that generates all of them brings the whole SDK along. Tests read them with that crate.

use std::borrow::Cow;

use prost::Message;

use crate::{Kind, Span, Value};

/// The version of the semantic conventions whose names the attributes have.
const SCHEMA_URL: &str = "https://opentelemetry.io/schemas/1.37.0";

/// The flags of a span that say that the next one means something, and that the parent is somebody else's.
const KNOWS_WHETHER_REMOTE: u32 = 0x100;
const IS_REMOTE: u32 = 0x200;

#[derive(Clone, PartialEq, Message)]
struct ExportTraceServiceRequest {
    #[prost(message, repeated, tag = "1")]
    resource_spans: Vec<ResourceSpans>,
}

#[derive(Clone, PartialEq, Message)]
struct ResourceSpans {
    #[prost(message, optional, tag = "1")]
    resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    scope_spans: Vec<ScopeSpans>,
    #[prost(string, tag = "3")]
    schema_url: String,
}

#[derive(Clone, PartialEq, Message)]
struct Resource {
    #[prost(message, repeated, tag = "1")]
    attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct ScopeSpans {
    #[prost(message, optional, tag = "1")]
    scope: Option<Scope>,
    #[prost(message, repeated, tag = "2")]
    spans: Vec<SpanMessage>,
    #[prost(string, tag = "3")]
    schema_url: String,
}

#[derive(Clone, PartialEq, Message)]
struct Scope {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    version: String,
}

#[derive(Clone, PartialEq, Message)]
struct SpanMessage {
    #[prost(bytes = "vec", tag = "1")]
    trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    span_id: Vec<u8>,
    #[prost(string, tag = "3")]
    trace_state: String,
    #[prost(bytes = "vec", tag = "4")]
    parent_span_id: Vec<u8>,
    #[prost(string, tag = "5")]
    name: String,
    #[prost(int32, tag = "6")]
    kind: i32,
    #[prost(fixed64, tag = "7")]
    start_time_unix_nano: u64,
    #[prost(fixed64, tag = "8")]
    end_time_unix_nano: u64,
    #[prost(message, repeated, tag = "9")]
    attributes: Vec<KeyValue>,
    #[prost(message, optional, tag = "15")]
    status: Option<Status>,
    #[prost(fixed32, tag = "16")]
    flags: u32,
}

#[derive(Clone, PartialEq, Message)]
struct Status {
    #[prost(int32, tag = "3")]
    code: i32,
}

/// The code of a span that failed.
const STATUS_ERROR: i32 = 2;

#[derive(Clone, PartialEq, Message)]
struct KeyValue {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(message, optional, tag = "2")]
    value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct AnyValue {
    #[prost(oneof = "OneValue", tags = "1, 2, 3")]
    value: Option<OneValue>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum OneValue {
    #[prost(string, tag = "1")]
    Text(String),
    #[prost(bool, tag = "2")]
    Flag(bool),
    #[prost(int64, tag = "3")]
    Number(i64),
}

#[derive(Clone, PartialEq, Message)]
struct ExportTraceServiceResponse {
    #[prost(message, optional, tag = "1")]
    partial_success: Option<PartialSuccess>,
}

#[derive(Clone, PartialEq, Message)]
struct PartialSuccess {
    #[prost(int64, tag = "1")]
    rejected_spans: i64,
    #[prost(string, tag = "2")]
    error_message: String,
}

/// Writes a request to the collector with these spans, all of one service.
pub(crate) fn request(service_name: &str, version: &str, spans: Vec<Span>) -> Vec<u8> {
    let text = |text: &str| Value::Text(Cow::Owned(text.to_owned()));
    let resource = [("service.name", text(service_name)), ("service.version", text(version))];
    let scope_spans = ScopeSpans {
        scope: Some(Scope { name: "seawall".to_owned(), version: version.to_owned() }),
        spans: spans.into_iter().map(message).collect(),
        schema_url: SCHEMA_URL.to_owned(),
    };
    let of_service = ResourceSpans {
        resource: Some(Resource { attributes: resource.map(attribute).into() }),
        scope_spans: vec![scope_spans],
        schema_url: SCHEMA_URL.to_owned(),
    };
    ExportTraceServiceRequest { resource_spans: vec![of_service] }.encode_to_vec()
}

/// Reads how many spans the collector has refused although it has taken the request, and what it says about them. What cannot be read says nothing.
pub(crate) fn refused(answer: &[u8]) -> (usize, String) {
    let partial = ExportTraceServiceResponse::decode(answer).ok().and_then(|response| response.partial_success).unwrap_or_default();
    (partial.rejected_spans.try_into().unwrap_or(0), partial.error_message)
}

fn message(span: Span) -> SpanMessage {
    let remote = KNOWS_WHETHER_REMOTE | if span.parent_is_remote { IS_REMOTE } else { 0 };
    SpanMessage {
        trace_id: span.trace.bytes().to_vec(),
        span_id: span.span.bytes().to_vec(),
        trace_state: span.state,
        parent_span_id: span.parent.map(|parent| parent.bytes().to_vec()).unwrap_or_default(),
        name: span.name.into_owned(),
        kind: match span.kind {
            Kind::Server => 2,
            Kind::Client => 3,
        },
        start_time_unix_nano: span.began,
        end_time_unix_nano: span.ended,
        attributes: span.attributes.into_iter().map(attribute).collect(),
        status: span.failed.then_some(Status { code: STATUS_ERROR }),
        flags: u32::from(span.flags.bits()) | remote,
    }
}

fn attribute((key, value): (&'static str, Value)) -> KeyValue {
    let value = match value {
        Value::Text(text) => OneValue::Text(text.into_owned()),
        Value::Number(number) => OneValue::Number(number),
        Value::Flag(flag) => OneValue::Flag(flag),
    };
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }) }
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::{
        collector::trace::v1::{
            ExportTracePartialSuccess as TheirPartialSuccess, ExportTraceServiceRequest as TheirRequest,
            ExportTraceServiceResponse as TheirResponse,
        },
        common::v1::{AnyValue as TheirValue, KeyValue as TheirKeyValue, any_value::Value as TheirOneValue},
        trace::v1::{Status as TheirStatus, span::SpanKind, status::StatusCode},
    };
    use semantics::trace_context::{SpanId, TraceFlags};

    use super::*;
    use crate::queue::tests::span;

    fn theirs(attributes: &[TheirKeyValue], key: &str) -> Option<TheirOneValue> {
        let of_key = attributes.iter().find(|attribute| attribute.key == key);
        of_key?.value.clone().and_then(|TheirValue { value, .. }| value)
    }

    /// The judge is what the OpenTelemetry project generates of its own files.
    #[test]
    fn a_request_is_what_a_collector_reads() {
        let failed = Span {
            parent: SpanId::new(5),
            parent_is_remote: true,
            flags: TraceFlags { sampled: true, random: true },
            state: "a=1".to_owned(),
            name: "POST".into(),
            kind: Kind::Client,
            began: 1_767_225_600_000_000_001,
            ended: 1_767_225_600_000_000_009,
            attributes: vec![("url.path", "/a".into()), ("http.response.status_code", 502_u16.into()), ("seawall.collapsed", true.into())],
            failed: true,
            ..span(1)
        };
        let bytes = request("blog", "1.2.3", vec![span(0), failed.clone()]);
        let read = TheirRequest::decode(&bytes[..]).expect("a request");
        assert_eq!(read.resource_spans.len(), 1);
        let resource = read.resource_spans[0].resource.as_ref().expect("a resource");
        assert_eq!(theirs(&resource.attributes, "service.name"), Some(TheirOneValue::StringValue("blog".to_owned())));
        assert_eq!(theirs(&resource.attributes, "service.version"), Some(TheirOneValue::StringValue("1.2.3".to_owned())));
        let scope = &read.resource_spans[0].scope_spans[0];
        assert_eq!(scope.scope.as_ref().map(|scope| (scope.name.as_str(), scope.version.as_str())), Some(("seawall", "1.2.3")));
        let [plain, failing] = &scope.spans[..] else { panic!("two spans") };
        assert_eq!((plain.kind(), plain.name.as_str(), plain.status.is_none()), (SpanKind::Server, "GET", true));
        assert_eq!((plain.parent_span_id.len(), plain.trace_id.len(), plain.span_id.len()), (0, 16, 8));
        assert_eq!(plain.flags, 0x101);
        assert_eq!(failing.trace_id, failed.trace.bytes());
        assert_eq!(failing.span_id, failed.span.bytes());
        assert_eq!(failing.parent_span_id, [0, 0, 0, 0, 0, 0, 0, 5]);
        assert_eq!((failing.trace_state.as_str(), failing.kind()), ("a=1", SpanKind::Client));
        assert_eq!((failing.start_time_unix_nano, failing.end_time_unix_nano), (failed.began, failed.ended));
        assert_eq!(failing.status, Some(TheirStatus { code: StatusCode::Error.into(), ..TheirStatus::default() }));
        assert_eq!(failing.flags, 0x303);
        assert_eq!(theirs(&failing.attributes, "url.path"), Some(TheirOneValue::StringValue("/a".to_owned())));
        assert_eq!(theirs(&failing.attributes, "http.response.status_code"), Some(TheirOneValue::IntValue(502)));
        assert_eq!(theirs(&failing.attributes, "seawall.collapsed"), Some(TheirOneValue::BoolValue(true)));
    }

    #[test]
    fn a_collector_may_refuse_some_of_them() {
        let partial = TheirPartialSuccess { rejected_spans: 3, error_message: "too old".to_owned() };
        let answer = TheirResponse { partial_success: Some(partial) }.encode_to_vec();
        assert_eq!(refused(&answer), (3, "too old".to_owned()));
        for nothing in [&b""[..], b"{}", b"\xff\xff\xff", &TheirResponse::default().encode_to_vec()] {
            assert_eq!(refused(nothing), (0, String::new()));
        }
        let negative = TheirPartialSuccess { rejected_spans: -1, error_message: String::new() };
        assert_eq!(refused(&TheirResponse { partial_success: Some(negative) }.encode_to_vec()).0, 0);
    }
}
