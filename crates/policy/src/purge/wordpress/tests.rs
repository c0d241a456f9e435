use http::HeaderName;

use super::*;
use crate::purge::What;
use crate::{Kind, Settings};

type Fields<'a> = &'a [(&'static str, &'a str)];

fn policy() -> Policy {
    Policy::new(Settings::preset(Kind::WordPress))
}

fn headers(fields: Fields<'_>) -> HeaderMap {
    fields.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().expect("a value"))).collect()
}

fn attempted(method: &Method, target: &str, fields: Fields<'_>) -> Option<WriteAttempt> {
    policy().attempted(method, target, &headers(fields))
}

const FORM: Fields<'_> = &[("content-type", "application/x-www-form-urlencoded")];
const PARTS: Fields<'_> = &[("content-type", "multipart/form-data; boundary=x")];
const AJAX: &str = "/wp-admin/admin-ajax.php";
const ADMIN: Option<WriteAttempt> = Some(WriteAttempt::Admin { of_anybody: false });
const ADMIN_OF_ANYBODY: Option<WriteAttempt> = Some(WriteAttempt::Admin { of_anybody: true });

fn rest_of(resource: RestResource) -> Option<WriteAttempt> {
    Some(WriteAttempt::Rest(resource))
}

#[test]
fn a_request_is_a_write_by_its_path_and_method() {
    for (target, expected) in [
        ("/wp-admin/post.php", ADMIN),
        ("/wp-admin/options.php", ADMIN),
        ("/wp-admin/network/settings.php", ADMIN),
        ("//wp-admin//post.php", ADMIN),
        ("/WP-Admin/post.php", ADMIN),
        // The script that runs is the first one in the path.
        ("/wp-admin/post.php/x.php", ADMIN),
        ("/wp-admin/upgrade.php/x.php", None),
        ("/wp-admin/upgrade.php/", None),
        ("/wp-admin/install.php/wp-admin/post.php", None),
        ("/wp-admin/network/upgrade.php/x.php", None),
        ("/wp-login.php/wp-admin/post.php", None),
        ("/index.php/wp-admin/post.php", None),
        ("/wp-login.php/xmlrpc.php", None),
        ("/wp-login.php/wp-json/wp/v2/posts", None),
        ("/wp-admin/admin-ajax.php?rest_route=/wp/v2/posts", Some(WriteAttempt::Ajax)),
        ("/wp-admin/admin-ajax.php/wp-json/wp/v2/posts", Some(WriteAttempt::Ajax)),
        ("/xmlrpc.php/", Some(WriteAttempt::XmlRpc)),
        // These are not scripts that anybody asks for.
        ("/wp-admin/includes/nav-menu.php", None),
        ("/wp-admin/includes/", None),
        ("/wp-admin/network/includes/x.php", None),
        ("/wp-admin/menu-header.php", None),
        // They answer every user of the site, or everybody, and write nothing.
        ("/wp-admin/about.php", None),
        ("/wp-admin/network/credits.php", None),
        ("/wp-admin/user/freedoms.php", None),
        ("/wp-admin/privacy.php", None),
        ("/wp-admin/contribute.php", None),
        ("/wp-admin/my-sites.php", None),
        ("/wp-admin/moderation.php", None),
        ("/wp-admin/media.php", None),
        ("/wp-admin/update.php", ADMIN_OF_ANYBODY),
        ("/wp-admin/update.php?action=of-a-plugin", ADMIN_OF_ANYBODY),
        ("/wp-admin/update.php?action=upload-plugin", ADMIN),
        ("/wp-admin/of-another-version.php", ADMIN_OF_ANYBODY),
        ("/wp-admin/user-edit.php", ADMIN_OF_ANYBODY),
        ("/wp-admin/network/", ADMIN_OF_ANYBODY),
        // A WordPress in a folder of its own, a blog of a network.
        ("/wp/wp-admin/post.php", ADMIN),
        ("/blog2/wp-json/wp/v2/posts", rest_of(RestResource::Editors)),
        ("/wp/wp-comments-post.php", Some(WriteAttempt::Comment)),
        ("/wp-admin/", ADMIN_OF_ANYBODY),
        ("/wp-admin/profile.php", ADMIN_OF_ANYBODY),
        ("/wp-admin/admin-post.php", ADMIN_OF_ANYBODY),
        ("/wp-admin/admin-ajax.php", Some(WriteAttempt::Ajax)),
        // They answer everybody.
        ("/wp-admin/upgrade.php", None),
        ("/wp-admin/install.php", None),
        ("/wp-admin/css/a.css", None),
        ("/wp-comments-post.php", Some(WriteAttempt::Comment)),
        ("/xmlrpc.php", Some(WriteAttempt::XmlRpc)),
        ("/wp-json/wp/v2/posts/12", rest_of(RestResource::Editors)),
        ("/index.php/wp-json/wp/v2/posts/12", rest_of(RestResource::Editors)),
        ("/?rest_route=/wp/v2/posts/12", rest_of(RestResource::Editors)),
        ("/?rest_route=%2Fwp%2Fv2%2Fposts", rest_of(RestResource::Editors)),
        ("/wp-json/batch/v1", rest_of(RestResource::WithinAnswer)),
        ("/wp-json/wp/v2/posts?_envelope", rest_of(RestResource::WithinAnswer)),
        ("/wp-json/forms/v1/form?_envelope=1", rest_of(RestResource::Unknown)),
        // PHP reads a name to its first NUL, and takes a bracket that is not closed for an underscore.
        ("/?rest_route%00x=/wp/v2/posts", rest_of(RestResource::Editors)),
        ("/?rest[route=/wp/v2/posts", rest_of(RestResource::Editors)),
        ("/wp-json/wp/v2/posts?_method%00a=OPTIONS", None),
        ("/wp-json/wc/v3/products/5", rest_of(RestResource::Editors)),
        ("/wp-json/wp/v2/comments", rest_of(RestResource::Comments)),
        ("/wp-json/wp/v2/comments/", rest_of(RestResource::Comments)),
        ("/wp-json/wp/v2/comments/7", rest_of(RestResource::Editors)),
        ("/?rest_route=/wp/v2/comments/7", rest_of(RestResource::Editors)),
        ("/wp-json/wp/v2/users/me", rest_of(RestResource::User)),
        ("/wp-json/wp/v2/users/2", rest_of(RestResource::User)),
        ("/wp-json/wp/v2/users", rest_of(RestResource::Editors)),
        ("/wp-json/wc/store/v1/cart/add-item", rest_of(RestResource::Unknown)),
        ("/wp-json/contact-form-7/v1/contact-forms/5/feedback", rest_of(RestResource::Unknown)),
        // What browsers of editors send by themselves.
        ("/wp-json/wp/v2/posts/12/autosaves", None),
        ("/wp-json/wp/v2/templates/theme//home/autosaves", None),
        ("/wp-json/wp/v2/block-renderer/core/archives", None),
        ("/wp-json/wp/v2/users/me/application-passwords", None),
        ("/wp-login.php", None),
        ("/wp-cron.php?doing_wp_cron", None),
        ("/contact/", None),
        ("/?wc-ajax=add_to_cart", None),
    ] {
        assert_eq!(attempted(&Method::POST, target, &[]), expected, "{target}");
        assert_eq!(Policy::new(Settings::preset(Kind::Generic)).attempted(&Method::POST, target, &headers(&[])), None);
        let below = Policy::new(Settings { base_path: "/blog".to_owned(), ..Settings::preset(Kind::WordPress) });
        if target.starts_with("/w") {
            assert_eq!(below.attempted(&Method::POST, &format!("/blog{target}"), &headers(&[])), expected, "/blog{target}");
        }
    }
}

/// WordPress takes the method from elsewhere.
#[test]
fn rest_is_written_by_the_method_that_wordpress_takes() {
    let target = "/wp-json/wp/v2/posts/12";
    let editors = rest_of(RestResource::Editors);
    for (method, target, fields, expected) in [
        (Method::GET, target, &[][..], None),
        (Method::OPTIONS, target, &[], None),
        (Method::DELETE, target, &[], editors),
        (Method::GET, target, &[("x-http-method-override", "DELETE")], editors),
        (Method::GET, "/wp-json/wp/v2/posts/12?_method=PATCH", &[], editors),
        (Method::POST, target, &[("x-http-method-override", "PUT")], editors),
        (Method::POST, target, &[("x-http-method-override", "get")], None),
        (Method::POST, "/wp-json/wp/v2/posts/12?_method=GET", &[], None),
    ] {
        assert_eq!(attempted(&method, target, fields), expected, "{method} {target} {fields:?}");
    }
}

#[test]
fn a_link_in_wp_admin_writes_if_it_carries_a_proof_and_acts() {
    for (query, expected) in [
        ("post=12&action=trash&_wpnonce=a", ADMIN),
        ("action=activate&plugin=a&_wpnonce=a", ADMIN),
        ("post_status=all&action=-1&action2=trash&post%5B%5D=1&_wpnonce=a&_wp_http_referer=x", ADMIN),
        ("delete_all=Empty+Trash&_wpnonce=a&_wp_http_referer=x&action=-1", ADMIN),
        ("page=shop&do=x&_wpnonce=a", ADMIN),
        ("post=12&action=edit", None),
        ("post=12&action=trash", None),
        // A list is searched.
        ("s=bread&_wpnonce=a&_wp_http_referer=x&action=-1&action2=-1", None),
    ] {
        assert_eq!(attempted(&Method::GET, &format!("/wp-admin/edit.php?{query}"), &[]), expected, "{query}");
        assert_eq!(attempted(&Method::HEAD, &format!("/wp-admin/edit.php?{query}"), &[]), None);
        // Logging out, and a form of a page, are none.
        assert_eq!(attempted(&Method::GET, &format!("/wp-login.php?{query}"), &[]), None);
        assert_eq!(attempted(&Method::GET, &format!("/?{query}"), &[]), None);
    }
}

/// An answer to be judged, by which each test says what matters to it.
struct Case<'a> {
    target: &'a str,
    request: Fields<'a>,
    content: Option<&'a [u8]>,
    is_cut: bool,
    is_editors: bool,
    status: u16,
    fields: Fields<'a>,
    answer_content: AnswerContent<'a>,
}

impl Default for Case<'_> {
    fn default() -> Self {
        Self {
            target: "/",
            request: &[],
            content: None,
            is_cut: false,
            is_editors: false,
            status: 200,
            fields: &[],
            answer_content: AnswerContent::Unread,
        }
    }
}

impl Case<'_> {
    fn with<T>(&self, judge: impl FnOnce(&Policy, &WriteAnswer<'_>) -> T) -> T {
        let (request, fields) = (headers(self.request), headers(self.fields));
        let answer = WriteAnswer {
            authority: "blog.example",
            target: self.target,
            request: &request,
            content: self.content.map(|bytes| WriteContent { bytes, is_whole: !self.is_cut }),
            is_editors: self.is_editors,
            status: StatusCode::from_u16(self.status).expect("a status"),
            headers: &fields,
            answer_content: self.answer_content,
        };
        judge(&policy(), &answer)
    }

    fn accepted(&self, attempt: WriteAttempt) -> WriteEffect {
        self.with(|policy, answer| policy.accepted(attempt, answer))
    }

    fn purges(&self, attempt: WriteAttempt) -> bool {
        self.accepted(attempt) == WriteEffect::Everything
    }
}

#[test]
fn wp_admin_has_accepted_what_it_answers_with_a_page_of_its_own() {
    let (for_editors, for_anybody) = (WriteAttempt::Admin { of_anybody: false }, WriteAttempt::Admin { of_anybody: true });
    for (status, location, stranger, editor) in [
        (302, "https://blog.example/wp-admin/post.php?post=1&action=edit&message=1", true, true),
        (302, "edit.php?trashed=1", true, true),
        (200, "", true, true),
        (302, "https://blog.example/wp-login.php?redirect_to=https%3A%2F%2Fblog.example%2Fwp-admin%2Fpost.php&reauth=1", false, false),
        // Plugins hide the page for signing in.
        (302, "/404", false, true),
        (302, "https://blog.example/", false, true),
        (403, "", false, false),
        (404, "", false, false),
        (500, "", false, false),
    ] {
        let fields: Fields<'_> = if location.is_empty() { &[("cache-control", "no-cache, private")] } else { &[("location", location)] };
        let case = |is_editors| Case { target: "/wp-admin/x.php", status, fields, is_editors, ..Case::default() };
        assert_eq!((case(false).purges(for_editors), case(true).purges(for_editors)), (stranger, editor), "{status} {location}");
        assert_eq!((case(false).purges(for_anybody), case(true).purges(for_anybody)), (false, editor), "{status} {location}");
    }
}

/// WordPress leads there whoever asks for nothing that it knows.
#[test]
fn a_script_that_leads_to_a_plain_list_has_written_nothing() {
    for (target, location, expected) in [
        ("/wp-admin/post.php", "https://blog.example/wp-admin/edit.php", false),
        ("/wp/wp-admin/post.php/x", "https://blog.example/wp/wp-admin/edit.php", false),
        ("/wp-admin/post.php?action=edit&_wpnonce=1", "https://blog.example/wp-admin/post.php", false),
        ("/wp-admin/revision.php", "edit.php", false),
        ("/wp-admin/post.php", "https://blog.example/wp-admin/edit.php?trashed=1&ids=5", true),
        ("/wp-admin/nav-menus.php", "https://blog.example/wp-admin/nav-menus.php", true),
    ] {
        let fields: Fields<'_> = &[("location", location), ("expires", "Wed, 11 Jan 1984 05:00:00 GMT"), ("x-frame-options", "SAMEORIGIN")];
        let case = |is_editors| Case { target, status: 302, fields, is_editors, ..Case::default() };
        let admin = WriteAttempt::Admin { of_anybody: false };
        assert_eq!((case(false).purges(admin), case(true).purges(admin)), (expected, true), "{target} {location}");
    }
}

/// Every user of the site can change the name that he is shown by.
#[test]
fn a_user_who_changes_himself_purges_perhaps() {
    let admin = WriteAttempt::Admin { of_anybody: true };
    for (location, expected) in [
        ("https://blog.example/wp-admin/profile.php?updated=1", WriteEffect::Perhaps),
        ("https://blog.example/wp-admin/user/profile.php?updated=true&wp_http_referer=x", WriteEffect::Perhaps),
        ("https://blog.example/wp-admin/user-edit.php?user_id=3&updated=1", WriteEffect::Perhaps),
        ("https://blog.example/wp-admin/profile.php", WriteEffect::Nothing),
        ("https://blog.example/wp-login.php?updated=1", WriteEffect::Nothing),
        ("https://blog.example/wp-admin/index.php?updated=1", WriteEffect::Nothing),
    ] {
        let case = Case { target: "/wp-admin/profile.php", status: 302, fields: &[("location", location)], ..Case::default() };
        assert_eq!(case.accepted(admin), expected, "{location}");
    }
    for (content, expected) in
        [(&br#"{"name":"Mira"}"#[..], WriteEffect::Perhaps), (br#"{"meta":{"persisted_preferences":{}}}"#, WriteEffect::Nothing)]
    {
        let case = Case { target: "/wp-json/wp/v2/users/1", content: Some(content), ..Case::default() };
        assert_eq!(case.accepted(WriteAttempt::Rest(RestResource::User)), expected);
    }
    assert_eq!(attempted(&Method::DELETE, "/wp-json/wp/v2/users/2", &[]), rest_of(RestResource::Editors));
    assert_eq!(attempted(&Method::DELETE, "/wp-json/wp/v2/comments/7?force=true", &[]), rest_of(RestResource::Editors));
}

/// Anybody is answered 207 or 200 then, and the status of each write is within the content.
#[test]
fn several_writes_and_those_in_an_envelope_are_judged_by_what_is_within() {
    for (answer, expected) in [
        (r#"{"responses":[{"status":401},{"status":200,"body":{}}]}"#, true),
        (r#"{"responses":[{"status":401}]}"#, false),
        (r#"{"responses":[]}"#, false),
        (r#"{"body":{"id":12},"status":201}"#, true),
        (r#"{"body":{"code":"rest_cannot_create"},"status":401}"#, false),
        (r#"{"body":{"responses":[{"status":401}]},"status":207}"#, false),
        ("/**/x({})", false),
    ] {
        let case = |is_editors| Case {
            target: "/wp-json/batch/v1",
            status: 207,
            answer_content: AnswerContent::Whole(answer.as_bytes()),
            is_editors,
            ..Case::default()
        };
        let attempt = WriteAttempt::Rest(RestResource::WithinAnswer);
        assert_eq!((case(false).purges(attempt), case(true).purges(attempt)), (expected, true), "{answer}");
    }
}

/// It may be too long, break off or be late. What is refused is told in a few words.
#[test]
fn a_write_whose_answer_cannot_be_read_may_have_been_accepted() {
    let call = "<methodCall><methodName>wp.editPost</methodName><params/></methodCall>";
    let of_rest = |target| Case { target, status: 201, answer_content: AnswerContent::TooLong, ..Case::default() };
    let of_xml_rpc =
        Case { target: "/xmlrpc.php", content: Some(call.as_bytes()), answer_content: AnswerContent::TooLong, ..Case::default() };
    for (case, attempt) in [
        (of_rest("/wp-json/batch/v1"), WriteAttempt::Rest(RestResource::WithinAnswer)),
        (of_rest("/wp-json/wp/v2/comments"), WriteAttempt::Rest(RestResource::Comments)),
        (of_xml_rpc, WriteAttempt::XmlRpc),
    ] {
        assert_eq!(case.accepted(attempt), WriteEffect::Perhaps, "{}", case.target);
    }
}

/// WordPress takes the route of a form before that of the path.
#[test]
fn a_form_may_be_for_another_route_than_the_path_says() {
    let form = FORM;
    for (request, content, is_cut, expected) in [
        (form, "title=x", false, true),
        (form, "rest_route=/forms/v1/form", false, false),
        (form, "a=1&rest.route%00=/forms/v1/form", false, false),
        (form, "title=x", true, false),
        (&[("content-type", "application/json")], "{}", true, true),
    ] {
        let case = Case { target: "/wp-json/wp/v2/posts", request, content: Some(content.as_bytes()), is_cut, ..Case::default() };
        assert_eq!(case.purges(WriteAttempt::Rest(RestResource::Editors)), expected, "{content}");
    }
}

/// WordPress may show its front page for whatever path it does not know.
#[test]
fn what_answers_elsewhere_must_say_that_it_is_wp_admin() {
    let admin = WriteAttempt::Admin { of_anybody: false };
    let of_admin: Fields<'_> = &[("expires", "Wed, 11 Jan 1984 05:00:00 GMT"), ("x-frame-options", "SAMEORIGIN")];
    let page: Fields<'_> = &[("content-type", "text/html"), ("x-frame-options", "SAMEORIGIN")];
    for (attempt, target, fields, expected) in [
        (admin, "/wp-admin/post.php", of_admin, true),
        (admin, "/wp-admin/post.php", page, false),
        (admin, "/wp/wp-admin/post.php", of_admin, true),
        (admin, "/wp/wp-admin/post.php", page, false),
        (admin, "/index.php/wp-admin/post.php", &[("cache-control", "no-cache")], false),
        (WriteAttempt::Rest(RestResource::Editors), "/wp-json/wp/v2/posts", &[], true),
        (
            WriteAttempt::Rest(RestResource::Editors),
            "/blog2/wp-json/wp/v2/posts",
            &[("content-type", "application/json; charset=UTF-8")],
            true,
        ),
        (WriteAttempt::Rest(RestResource::Editors), "/index.php/wp-json/wp/v2/posts", page, false),
        (WriteAttempt::Rest(RestResource::Editors), "/?rest_route=/wp/v2/posts", page, false),
    ] {
        assert_eq!(Case { target, fields, ..Case::default() }.purges(attempt), expected, "{target} {fields:?}");
    }
    let ajax = |target, fields| {
        let (request, content) = (FORM, Some(&b"action=inline-save"[..]));
        Case { target, request, fields, content, answer_content: AnswerContent::Whole(b"<html>"), ..Case::default() }
            .purges(WriteAttempt::Ajax)
    };
    assert!(ajax("/wp-admin/admin-ajax.php", &[]) && ajax("/wp/wp-admin/admin-ajax.php", of_admin));
    assert!(!ajax("/wp/wp-admin/admin-ajax.php", page));
}

#[test]
fn ajax_is_judged_by_its_action() {
    let form: Fields<'_> = &[("content-type", "application/x-www-form-urlencoded; charset=UTF-8")];
    let done = AnswerContent::Whole(b"<tr id=\"post-1\">");
    for (content, answer_content, stranger, editor) in [
        ("action=inline-save&post_ID=1", done, true, true),
        ("post_ID=1&action=inline%2Dsave", done, true, true),
        ("action=heartbeat&action=delete-comment", AnswerContent::Whole(b"1"), true, true),
        ("action=update-plugin", AnswerContent::Whole(br#"{"success":true}"#), true, true),
        ("action=update-plugin", AnswerContent::TooLong, true, true),
        // A user who may not.
        ("action=delete-comment&id=1", AnswerContent::Whole(b"-1"), false, true),
        ("action=delete-comment&id=1", AnswerContent::Whole(b"0"), false, true),
        ("action=update-plugin", AnswerContent::Whole(br#"{"success":false,"data":{}}"#), false, true),
        // Browsers send these by themselves.
        ("action=heartbeat&interval=15&data%5Bwp_autosave%5D%5Bpost_id%5D=1", done, false, false),
        ("action=wp-remove-post-lock", done, false, false),
        ("action=query-attachments", done, false, false),
        // The customizer saves drafts.
        ("action=customize_save&customize_changeset_status=auto-draft", done, false, false),
        ("action=customize_save&customized=%7B%7D", done, false, false),
        ("action=customize_save&customize_changeset_status=publish", done, true, true),
        // A plugin's: strangers can do that too.
        ("action=add_to_wishlist", done, false, true),
        ("", done, false, true),
    ] {
        let case = |is_editors| Case {
            target: AJAX,
            request: form,
            content: Some(content.as_bytes()),
            answer_content,
            is_editors,
            ..Case::default()
        };
        assert_eq!((case(false).purges(WriteAttempt::Ajax), case(true).purges(WriteAttempt::Ajax)), (stranger, editor), "{content}");
    }
    for status in [400, 403] {
        let refused = Case {
            target: AJAX,
            status,
            request: form,
            content: Some(b"action=inline-save"),
            is_editors: true,
            answer_content: done,
            ..Case::default()
        };
        assert!(!refused.purges(WriteAttempt::Ajax));
    }
}

#[test]
fn the_action_is_found_wherever_it_stands() {
    let parts = b"--x\r\nContent-Disposition: form-data; name=\"id\"\r\n\r\n5\r\n--x\r\nContent-Disposition: form-data; name=\"action\"\r\n\r\nheartbeat\r\n--x--";
    for (target, request, content, is_cut, expected) in [
        ("/a", PARTS, Some(&parts[..]), false, Some("heartbeat")),
        ("/a", PARTS, Some(&parts[..]), true, Some("heartbeat")),
        ("/a?action=heartbeat", &[], Some(b""), false, Some("heartbeat")),
        ("/a?action=heartbeat", &[], None, false, Some("heartbeat")),
        ("/a?action=heartbeat", FORM, Some(b"action=x"), false, Some("x")),
        // PHP makes no form of it.
        ("/a?action=heartbeat", &[], Some(b"action=x"), false, Some("heartbeat")),
        ("/a?action=heartbeat", &[("content-type", "text/plain")], Some(b"action=x"), false, Some("heartbeat")),
        // The content may say another one, further on.
        ("/a?action=heartbeat", FORM, Some(b"a=1"), true, None),
        ("/a", FORM, Some(b"a=1"), false, None),
    ] {
        let found = Case { target, request, content, is_cut, ..Case::default() }.with(|_, answer| action(answer));
        assert_eq!(found.as_deref(), expected, "{target} {content:?}");
    }
}

/// The expected values, where they are known, are what PHP 8.2 has in `$_POST`.
#[test]
fn a_form_is_read_as_php_reads_it_or_not_known() {
    type Known<'a> = Option<&'a [(&'a str, &'a str)]>;
    let field = |name: &str, value: &str| format!("--x\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
    let of_parts = |parts: &[(&str, &str)]| parts.iter().map(|(name, value)| field(name, value)).collect::<String>() + "--x--\r\n";
    let action = of_parts(&[("action", "z")]);
    let twice = "--x\r\nContent-Disposition: form-data; name=\"a\"; name=\"action\"\r\n\r\nz\r\n--x--";
    let file = "--x\r\nContent-Disposition: form-data; name=\"f\"; filename=\"action\"\r\nContent-Type: text/plain\r\n\r\ninline-save\r\n";
    let (parts, z): (_, Known<'_>) = ("multipart/form-data; boundary=x", Some(&[("action", "z")]));
    for (content_type, content, expected) in [
        (parts, of_parts(&[("action", "a"), ("action", "b")]), Some(&[("action", "a"), ("action", "b")][..])),
        (parts, of_parts(&[(" action", "z")]), z),
        (parts, of_parts(&[(".action", "z")]), Some(&[("_action", "z")])),
        (parts, of_parts(&[("t", "; name=\"action\"\r\n\r\na\r\n")]), Some(&[("t", "; name=\"action\"\r\n\r\na\r\n")])),
        (parts, format!("{file}{action}"), z),
        ("Multipart/Form-Data;boundary=x", action.clone(), z),
        ("multipart/form-dataX; boundary=x", action.clone(), Some(&[])),
        ("multipart/form-data\t; boundary=x", action.clone(), Some(&[])),
        ("application/json", "action=a".to_owned(), Some(&[])),
        ("application/x-www-form-urlencoded; charset=UTF-8", "action=z".to_owned(), z),
        // PHP finds `action` in all of these, or in what is not part of its own; no browser writes them.
        (parts, action.replace("\"action\"", "action"), None),
        (parts, action.replace("\"action\"", "'action'"), None),
        (parts, action.replace("\"action\"", "\"action\0b\""), None),
        (parts, action.replace("name=", "Name="), None),
        (parts, action.replace("--x\r\n", "--x\r\nX-A: b\r\n"), None),
        (parts, action.replace("\r\n", "\n"), None),
        (parts, format!("preamble\r\n{action}"), None),
        (parts, format!("{action}epilogue"), None),
        (parts, field("action", "z"), None),
        (parts, of_parts(&[("t", "a\n--x\nContent-Disposition: form-data; name=\"action\"\n\nz")]), None),
        (parts, of_parts(&[("t", "a\r\n--xy\r\nb")]), None),
        (parts, of_parts(&[("%61ction", "z")]), None),
        (parts, twice.to_owned(), None),
        ("multipart/form-data; boundary=\"x\"", action.clone(), None),
        ("multipart/form-data; xboundary=y; boundary=x", action.clone(), None),
        ("multipart/form-data", action.clone(), None),
        // Beyond `max_input_vars`, PHP reads no more.
        ("application/x-www-form-urlencoded", "a=&".repeat(1_000) + "action=z", None),
        (parts, field("a", "").repeat(1_000) + &action, None),
        // Nor beyond `max_multipart_body_parts`, and files are parts, too.
        (parts, "--x\r\nContent-Disposition: form-data; name=\"\"; filename=\"\"\r\n\r\n\r\n".repeat(1_020) + &action, None),
        // It reads 5,120 bytes of a line of a part's head. The next ones are a field of the head: this `action` is not a file.
        (parts, of_parts(&[(&format!("{}action\"; filename=\"a:b", " ".repeat(5_065)), "z")]), None),
        (parts, of_parts(&[(&"a".repeat(5_120), "z")]), None),
        (parts, String::new(), None),
    ] {
        let request: Fields<'_> = &[("content-type", content_type)];
        let read = Case { request, content: Some(content.as_bytes()), ..Case::default() }.with(|_, answer| form::fields(answer));
        let read: Option<Vec<_>> = read.as_ref().map(|read| read.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect());
        assert_eq!(read.as_deref(), expected, "{content_type} {content}");
        let cut = Case { request, content: Some(content.as_bytes()), is_cut: true, ..Case::default() };
        assert!(cut.with(|_, answer| form::fields(answer)).is_none_or(|fields| fields.is_empty()), "{content_type}");
    }
}

/// Strangers can have a plugin answer with a success. That must not look like a write of an editor.
#[test]
fn a_stranger_cannot_dress_up_a_form_as_an_editors() {
    let part = |disposition: &str, value: &str| format!("--x\r\nContent-Disposition: form-data; {disposition}\r\n\r\n{value}\r\n");
    let (save, form_of_plugin) = (part("name=\"action\"", "inline-save"), part("name=\"action\"", "of_plugin"));
    for (request, content, is_cut) in [
        (PARTS, format!("{save}{form_of_plugin}--x--"), false),
        (PARTS, format!("{save}{}--x--", form_of_plugin.replace("\"action\"", "action")), false),
        (PARTS, format!("{}{form_of_plugin}--x--", part("name=\"f\"; filename=\"action\"", "inline-save")), false),
        (PARTS, format!("{}{form_of_plugin}--x--", part("name=\"t\"", "; name=\"action\"\r\n\r\ninline-save\r\n")), false),
        (PARTS, save.clone(), true),
        // PHP reads 1,020 parts, and runs the action of the plugin.
        (PARTS, format!("{form_of_plugin}{}{save}--x--", part("name=\"\"; filename=\"\"", "").repeat(1_020)), false),
        (FORM, "action=inline-save&a=".to_owned(), true),
        (&[("content-type", "text/plain")], "action=inline-save".to_owned(), false),
    ] {
        let target = "/wp-admin/admin-ajax.php?action=of_plugin";
        let case = |is_editors| Case {
            target,
            request,
            content: Some(content.as_bytes()),
            is_cut,
            answer_content: AnswerContent::Whole(br#"{"success":true}"#),
            is_editors,
            ..Case::default()
        };
        assert_eq!((case(false).purges(WriteAttempt::Ajax), case(true).purges(WriteAttempt::Ajax)), (false, true), "{content}");
        let rest = content.replace("action", "rest_route").replace("inline-save", "/forms/v1/form");
        let case = Case { target: "/wp-json/wp/v2/posts", content: Some(rest.as_bytes()), ..case(false) };
        assert_eq!(case.purges(WriteAttempt::Rest(RestResource::Editors)), request[0].1 == "text/plain", "{rest}");
    }
}

#[test]
fn rest_is_judged_by_who_can_write_there() {
    for (resource, content, stranger, editor) in [
        (RestResource::Editors, None, true, true),
        (RestResource::Unknown, None, false, true),
        (RestResource::User, Some(&br#"{"meta":{"persisted_preferences":{}}}"#[..]), false, false),
        (RestResource::User, Some(br#"{"id":1,"name":"Mira"}"#), false, true),
        (RestResource::User, Some(b""), false, true),
    ] {
        let attempt = WriteAttempt::Rest(resource);
        let target = "/wp-json/x";
        let case = |is_editors| Case { target, content, is_editors, status: 201, ..Case::default() };
        assert_eq!((case(false).purges(attempt), case(true).purges(attempt)), (stranger, editor), "{resource:?} {content:?}");
        for status in [302, 400, 401, 403, 404, 500] {
            assert!(!Case { target, content, is_editors: true, status, ..Case::default() }.purges(attempt), "{resource:?} {status}");
        }
    }
}

#[test]
fn xml_rpc_has_written_if_a_writing_call_has_no_fault() {
    let call = |name: &str| format!("<methodCall><methodName>{name}</methodName><params/></methodCall>");
    let several = |names: &[&str]| {
        let member = |name: &&str| {
            format!("<value><struct><member><name>methodName</name><value><string>{name}</string></value></member></struct></value>")
        };
        let calls: String = names.iter().map(member).collect();
        format!(
            "<?xml version='1.0'?><methodCall><methodName>system.multicall</methodName><params><param><value><array><data>{calls}</data></array>\
             </value></param></params></methodCall>"
        )
    };
    let done = "<methodResponse><params><param><value><boolean>1</boolean></value></param></params></methodResponse>";
    let fault = "<methodResponse><fault><value><struct><member> <name>faultCode</name></member></struct></value></fault></methodResponse>";
    let each = |successes: &[bool]| {
        let (success, fault) = ("<array><data><value/></data></array>", "<struct><member><name>faultCode</name></member></struct>");
        let values: String = successes.iter().map(|&is| format!("<value>{}</value>", if is { success } else { fault })).collect();
        format!("<methodResponse><params><param><value><array><data>{values}</data></array></value></param></params></methodResponse>")
    };
    // What stands elsewhere than a call does is none.
    let text = |content: &str| {
        let hello = "<member><name>methodName</name><value>demo.sayHello</value></member>";
        let parameter = format!("<member><name>params</name><value><string>{content}</string></value></member>");
        several(&[]).replace("<data></data>", &format!("<data><value><struct>{hello}{parameter}</struct></value></data>"))
    };
    let (everything, perhaps, nothing) = (WriteEffect::Everything, WriteEffect::Perhaps, WriteEffect::Nothing);
    let name = "<name>methodName</name><value>wp.newPost</value>";
    for (content, answer, expected) in [
        (call("wp.newPost"), done, &everything),
        (call("metaWeblog.editPost"), done, &everything),
        (call(" wp.new&#80;ost "), done, &everything),
        (call("<![CDATA[wp.newPost]]>"), done, &everything),
        (call("wp.new<!-- x -->Post"), done, &everything),
        (call("wp.newPost").replace("methodName>", "methodName\n>"), done, &everything),
        (call("wp.uploadFile").replace("<params/></methodCall>", "<params><param><value><base64>AAAA"), done, &everything),
        (call("wp.newPost"), fault, &nothing),
        (call("wp.newPost"), "no XML", &nothing),
        (call("demo.sayHello"), done, &nothing),
        (call("wp.getUsersBlogs"), done, &nothing),
        (call("pingback.ping"), done, &nothing),
        // Every user of the site can do this.
        (call("wp.editProfile"), done, &perhaps),
        (several(&["wp.editPost", "wp.getPosts"]), &each(&[true, true]), &everything),
        (several(&["wp.editPost", "wp.getPosts"]), &each(&[true, false]), &everything),
        (several(&["wp.editPost", "demo.sayHello"]), &each(&[false, true]), &nothing),
        (several(&["demo.sayHello", "wp.editPost", "wp.newPost"]), &each(&[true, false, true]), &everything),
        (several(&["wp.editPost"]), fault, &nothing),
        (several(&["demo.sayHello"]), &each(&[true]), &nothing),
        (several(&["wp.editPost"]), &each(&[]), &nothing),
        (text(&format!("<![CDATA[{name}]]>")), &each(&[true]), &nothing),
        (text(&format!("<!--{name}-->")), &each(&[true]), &nothing),
        (text(&format!("<member>{name}</member>")), &each(&[true]), &nothing),
        (text(&name.replace('<', "&lt;")), &each(&[true]), &nothing),
        (format!("<!--<methodName>wp.newPost</methodName>-->{}", call("demo.sayHello")), done, &nothing),
        (String::new(), done, &nothing),
    ] {
        let case = Case { content: Some(content.as_bytes()), answer_content: AnswerContent::Whole(answer.as_bytes()), ..Case::default() };
        assert_eq!(&case.accepted(WriteAttempt::XmlRpc), expected, "{content} {answer}");
    }
}

#[test]
fn a_comment_that_is_public_costs_the_pages_that_show_it() {
    let pages = |paths: &[&str]| WriteEffect::Pages(paths.iter().map(ToString::to_string).collect());
    let lists = ["/", "/comments/feed/", "/wp-json/wp/v2/comments"];
    let below = |paths: &[&str]| pages(&[paths, &lists[..]].concat());
    for (status, location, expected) in [
        (302, "https://blog.example/post/#comment-5", below(&["/post/", "/post/feed/"])),
        (302, "/post/comment-page-2/#comment-5", below(&["/post/comment-page-2/", "/post/", "/post/feed/"])),
        (302, "/?p=5#comment-5", below(&["/", "/feed/"])),
        (302, "/post/?unapproved=5&moderation-hash=a#comment-5", WriteEffect::Nothing),
        (302, "https://elsewhere.example/post/#comment-5", WriteEffect::Nothing),
        (409, "/post/", WriteEffect::Nothing),
        (200, "/post/", WriteEffect::Nothing),
    ] {
        let case = Case { target: "/wp-comments-post.php", status, fields: &[("location", location)], ..Case::default() };
        assert_eq!(case.accepted(WriteAttempt::Comment), expected, "{location}");
    }
    // The blog of a network; and a WordPress in a folder of its own, the pages of which are not there.
    for (target, base) in [("/blog2/wp-comments-post.php", "/blog2"), ("/wp/wp-comments-post.php", "")] {
        let location = "/blog2/post/#comment-5";
        let case = Case { target, status: 302, fields: &[("location", location)], ..Case::default() };
        let WriteEffect::Pages(paths) = case.accepted(WriteAttempt::Comment) else { panic!("{target}") };
        assert!(paths.contains(&format!("{base}/comments/feed/")) && paths.contains(&"/blog2/post/".to_owned()), "{paths:?}");
    }
    for (answer, expected) in [
        (&br#"{"id":5,"status":"approved","link":"https://blog.example/post/#comment-5"}"#[..], below(&["/post/", "/post/feed/"])),
        (br#"{"id":5,"status":"hold","link":"https://blog.example/post/#comment-5"}"#, WriteEffect::Nothing),
        (b"[]", WriteEffect::Nothing),
    ] {
        let case = Case { target: "/wp-json/wp/v2/comments", status: 201, answer_content: AnswerContent::Whole(answer), ..Case::default() };
        assert_eq!(case.accepted(WriteAttempt::Rest(RestResource::Comments)), expected);
    }
}

#[test]
fn what_was_not_answered_counts_from_those_who_look_like_editors() {
    let cookie: Fields<'_> = &[("cookie", "a=1; wordpress_logged_in_ab=mira")];
    for (attempt, request, content, expected) in [
        (WriteAttempt::Admin { of_anybody: false }, cookie, None, true),
        (WriteAttempt::Admin { of_anybody: false }, &[], None, false),
        (WriteAttempt::Rest(RestResource::Editors), &[("authorization", "Basic a")], None, true),
        (WriteAttempt::Ajax, cookie, Some(&b"action=inline-save"[..]), true),
        (WriteAttempt::Ajax, cookie, Some(b"action=heartbeat"), false),
        (WriteAttempt::XmlRpc, &[], Some(b"<methodCall><methodName>wp.newPost</methodName></methodCall>"), true),
        (WriteAttempt::XmlRpc, &[], Some(b"<methodCall><methodName>wp.getUsersBlogs</methodName></methodCall>"), false),
        (WriteAttempt::Comment, cookie, None, false),
    ] {
        let case = Case { request, content, ..Case::default() };
        let counts = case.with(|policy, answer| policy.may_have_been_accepted(attempt, answer));
        assert_eq!(counts, expected, "{attempt:?} {content:?}");
    }
}

#[test]
fn an_editor_is_known_by_a_page_that_only_editors_get() {
    let of_admin = headers(&[("expires", "Wed, 11 Jan 1984 05:00:00 GMT"), ("x-frame-options", "SAMEORIGIN")]);
    let shows = |method: &Method, target: &str, status| policy().shows_an_editor(method, target, status, &of_admin);
    assert!(!policy().shows_an_editor(&Method::GET, "/wp-admin/edit.php", StatusCode::OK, &headers(&[])));
    for target in ["/wp-admin/edit.php?post_type=page", "/wp-admin/post.php?post=1&action=edit", "/wp-admin/network/themes.php"] {
        assert!(shows(&Method::GET, target, StatusCode::OK), "{target}");
        assert!(!shows(&Method::POST, target, StatusCode::OK) && !shows(&Method::GET, target, StatusCode::FOUND), "{target}");
    }
    for target in ["/wp-admin/", "/wp-admin/profile.php", "/wp-admin/admin-ajax.php?action=x", "/wp-admin/upgrade.php", "/edit.php"]
        .into_iter()
        .chain(["/wp-login.php/wp-admin/edit.php", "/wp-admin/upgrade.php/edit.php", "/wp-admin/upgrade.php/wp-admin/edit.php"])
        // A plugin's page, which may be for every user of the site.
        .chain(["/wp-admin/edit.php?post_type=x&page=y"])
    {
        assert!(!shows(&Method::GET, target, StatusCode::OK), "{target}");
    }
}

/// RFC 9111 §4.4, but for what changes no page.
#[test]
fn an_unsafe_request_invalidates_its_own_page() {
    for (target, expected) in [
        ("/contact/", true),
        ("/contact/?sent=1", true),
        ("/wp-login.php?action=postpass", false),
        ("/wp-admin/admin-ajax.php", false),
        ("/xmlrpc.php", false),
        ("/wp-cron.php?doing_wp_cron", false),
        ("/?wc-ajax=add_to_cart", false),
        ("/?preview=true", false),
    ] {
        assert_eq!(policy().invalidates_by_method(target), expected, "{target}");
    }
}

#[test]
fn the_plugin_orders_a_purge_beside_the_path() {
    let order = |content: &str| policy().webhook(Some(content.as_bytes()), &|host| host == "blog.example");
    let purge = |what, soft| Some(Webhook::Purge { what, soft });
    let tag = |tag: &str| What::Tag(tag.to_owned());
    for (content, expected) in [
        (r#"{"purge":["post-12","url=/feed/"],"soft":false,"reason":"x"}"#, purge(vec![tag("post-12"), tag("path /feed/")], false)),
        (r#"{"purge":["*"],"soft":true}"#, purge(vec![What::Everything], true)),
        (r#"{"purge":["url=https://blog.example/a/"]}"#, purge(vec![tag("path /a/")], false)),
        (r#"{"purge":["url=https://elsewhere.example/a/"]}"#, purge(vec![What::Everything], false)),
        (r#"{"purge":[]}"#, purge(vec![], false)),
        ("{}", None),
        ("[]", None),
        (r#"{"purge":"*"}"#, None),
    ] {
        assert_eq!(order(content), expected, "{content}");
    }
}
