//! Members of a Ghost: their requests pass. With Ghost's secret, the members of one tier share what two of them were answered alike, and nobody
//! else ever sees it.

use ::operator::explain;
use admin::explanation::ExplainedVerdict;
use store::{Hardness, PurgeTarget};
use testkit::{Answer, Gate, Origin, Reply, Req, SeenRequest, get, not_modified, ok, post, secs, status};

use crate::{
    operator::Operator,
    site::{HOST, Site, site_with},
};

/// `a secret of thirty-two bytes, ok`, as Ghost's own configuration has it.
const OPTED_IN: &str = r#"
kind = "ghost"
[ghost]
member_secret = "YSBzZWNyZXQgb2YgdGhpcnR5LXR3byBieXRlcywgb2s="
[cache]
two_visitor_proof = false
"#;

const NOT_OPTED_IN: &str = r#"
kind = "ghost"
[cache]
two_visitor_proof = false
"#;

const TIER_A: &str = "6a5e8f1d2b3c4d5e6f708192";
const TIER_B: &str = "7b6f90ae3c4d5e6f70819203";

/// The cookies by which a member shows a tier, `<tier>:<time>` and its signature. Each signature was computed by another program:
/// `printf TIER:TIME | openssl dgst -sha256 -mac hmac -macopt hexkey:6120736563726574206f66207468697274792d74776f2062797465732c206f6b`
type Access = [&'static str; 2];

/// Made at the time at which the clock starts.
const A: Access = ["6a5e8f1d2b3c4d5e6f708192:1767225600", "a5e8919c1cd607f0acb2f841bbac398852b36b906f603e16b120d9f19d1cafb6"];
const B: Access = ["7b6f90ae3c4d5e6f70819203:1767225600", "66925d2484327d1ae903aa159e38e924f66635632dc96ffddedd1488b6383c90"];
/// Made an hour and a second before, and fifty minutes later.
const A_EXPIRED: Access = ["6a5e8f1d2b3c4d5e6f708192:1767221999", "ee32715a9b1274b4eb259c763f37b0cd71c8e3ad9fa8d4e555e25081b571aaa5"];
const A_LATER: Access = ["6a5e8f1d2b3c4d5e6f708192:1767228600", "83022af1648b830e851c8b55dcc4a9a22a6d176aa976f516ccea1b85b38e85f0"];
/// Signed for tier A, and written over.
const B_FORGED: Access = ["7b6f90ae3c4d5e6f70819203:1767225600", A[1]];

/// A member by name: Ghost gives each a session, which is a UUID.
#[derive(Clone, Copy)]
struct Member {
    session: &'static str,
    access: Access,
}

const ANN: Member = Member { session: "00000000-0000-4000-8000-00000000a001", access: A };
const ABE: Member = Member { session: "00000000-0000-4000-8000-00000000a002", access: A };
const ADA: Member = Member { session: "00000000-0000-4000-8000-00000000a003", access: A };
const BOB: Member = Member { session: "00000000-0000-4000-8000-00000000b001", access: B };
const BEA: Member = Member { session: "00000000-0000-4000-8000-00000000b002", access: B };

impl Member {
    const fn with(self, access: Access) -> Self {
        Self { access, ..self }
    }

    fn cookies(self) -> String {
        let [access, hmac] = self.access;
        format!("ghost-members-ssr={}; ghost-members-ssr.sig=aB-_9; ghost-access={access}; ghost-access-hmac={hmac}", self.session)
    }

    fn get(self, target: &str) -> Req {
        Req::get(target).field("cookie", self.cookies())
    }
}

/// Returns the tier of the member whose session a request has, as Ghost looks it up.
fn tier_of(seen: &SeenRequest) -> Option<&'static str> {
    let cookies = seen.field("cookie").unwrap_or_default();
    match cookies.split("ghost-members-ssr=00000000-0000-4000-8000-00000000").nth(1)?.as_bytes().first()? {
        b'a' => Some(TIER_A),
        b'b' => Some(TIER_B),
        _ => None,
    }
}

const PUBLIC: &str = "public, max-age=600";

fn page_for(seen: &SeenRequest, text: &str) -> Reply {
    let reply = match tier_of(seen) {
        Some(tier) => ok(format!("{text} for {tier}")).field("x-member-cache-tier", tier),
        None => ok(format!("{text} for all")),
    };
    reply.field("cache-control", PUBLIC).field("content-type", "text/html; charset=utf-8")
}

/// Makes an origin that is a Ghost with member caching, and has a page at `/post/`.
fn is_ghost(origin: &Origin) {
    origin.on(get("/post/")).reply_with(|seen| page_for(seen, "text"));
}

/// Checks that what goes to a member is for the member alone, whatever Ghost says.
fn is_private(answer: &Answer) {
    assert_eq!(answer.value("cache-control").as_deref(), Some("private, max-age=0, must-revalidate"), "{answer}");
    assert_eq!(answer.value("x-member-cache-tier"), None, "{answer}");
}

async fn read(site: &Site, member: Member) -> Answer {
    let answer = site.request(member.get("/post/")).await;
    is_private(&answer);
    answer
}

/// Has two members read the page, so that it is stored for their tier.
async fn stored_for_a(site: &Site) {
    read(site, ANN).await.status(200).cache_status("fwd=uri-miss");
    read(site, ABE).await.status(200).cache_status("fwd=uri-miss");
    read(site, ANN).await.status(200).cache_status("hit");
}

#[tokio::test]
async fn a_page_is_stored_for_a_tier_when_two_of_its_members_were_answered_the_same() {
    let (origin, site) = site_with(OPTED_IN).await;
    is_ghost(&origin);
    for n in 1..=3 {
        // One member alone proves nothing, however often.
        read(&site, ANN).await.body(format!("text for {TIER_A}")).cache_status("fwd=uri-miss").no_cache_status("stored");
        assert_eq!(origin.count("/post/"), n);
    }
    read(&site, ABE).await.body(format!("text for {TIER_A}")).cache_status("fwd=uri-miss");
    for member in [ANN, ABE] {
        read(&site, member).await.body(format!("text for {TIER_A}")).cache_status("hit");
    }
    assert_eq!(origin.count("/post/"), 4);
    // Once an hour the origin is asked whether a member is of the tier.
    read(&site, ADA).await.body(format!("text for {TIER_A}")).cache_status("fwd=stale");
    read(&site, ADA).await.body(format!("text for {TIER_A}")).cache_status("hit");
    assert_eq!(origin.count("/post/"), 5);
    // Nobody else has it.
    read(&site, BOB).await.body(format!("text for {TIER_B}")).cache_status("fwd=uri-miss");
    site.get("/post/").await.body("text for all").cache_status("fwd=uri-miss").field("cache-control", PUBLIC);
    site.get("/post/").await.body("text for all").cache_status("hit").field("cache-control", PUBLIC);
    read(&site, ADA).await.body(format!("text for {TIER_A}")).cache_status("hit");
    assert_eq!(origin.count("/post/"), 7);
}

/// Readers without a cookie have a proof of their own, and neither stands for the other.
#[tokio::test]
async fn members_share_a_page_whether_or_not_readers_are_proven_to() {
    for toml in [OPTED_IN.replace("two_visitor_proof = false", ""), OPTED_IN.to_owned()] {
        let (origin, site) = site_with(&toml).await;
        is_ghost(&origin);
        stored_for_a(&site).await;
        assert_eq!(origin.count("/post/"), 2);
        site.get("/post/").await.body("text for all").cache_status("fwd=uri-miss");
        read(&site, ANN).await.body(format!("text for {TIER_A}")).cache_status("hit");
    }
}

/// Ghost has to know the tier, and nothing else of the reader.
#[tokio::test]
async fn the_origin_sees_the_cookies_of_the_member_who_asks_and_nothing_that_others_do_not_send() {
    let (origin, site) = site_with(OPTED_IN).await;
    is_ghost(&origin);
    let cookies = format!("_ga=1; {}; theme=dark", ANN.cookies());
    let request =
        Req::get("/post/?utm_source=x").field("cookie", cookies).field("origin", "http://localhost").field("accept-encoding", "br");
    is_private(&site.request(request).await.status(200));
    let seen = origin.last("/post/");
    assert_eq!(seen.field("cookie"), Some(ANN.cookies()));
    assert_eq!((seen.field("origin"), seen.field("accept-encoding").as_deref()), (None, Some("identity")));
}

#[tokio::test]
async fn whoever_asks_in_whatever_order_gets_what_the_origin_made_for_them() {
    let forged = BOB.with(B_FORGED);
    let readers = [Some(ANN), Some(BOB), None, Some(ABE), Some(ANN.with(A_EXPIRED)), Some(BEA), Some(forged), Some(ADA)];
    for first in 0..readers.len() {
        for step in [1, 3, 5, 7] {
            let (origin, site) = site_with(OPTED_IN).await;
            is_ghost(&origin);
            for turn in 0..3 * readers.len() {
                let Some(member) = readers[(first + turn * step) % readers.len()] else {
                    site.get("/post/").await.body("text for all").no_field("x-member-cache-tier");
                    continue;
                };
                let tier = if member.session.contains("0000a") { TIER_A } else { TIER_B };
                let answer = read(&site, member).await.body(format!("text for {tier}"));
                if [A_EXPIRED, B_FORGED].contains(&member.access) {
                    answer.cache_status("fwd=bypass");
                }
            }
        }
    }
}

/// A member's answer is the member's alone while nobody knows better: not even members of the tier wait for it.
#[tokio::test]
async fn members_who_ask_at_once_are_each_answered_by_the_origin() {
    let (origin, site) = site_with(OPTED_IN).await;
    let gate = Gate::new();
    let held = gate.clone();
    origin.on(get("/post/")).reply_with(move |seen| page_for(seen, "text").gate(&held));
    let mut clients = Vec::new();
    for (n, request) in [ANN.get("/post/"), ABE.get("/post/"), BOB.get("/post/"), Req::get("/post/")].into_iter().enumerate() {
        let mut client = site.client().await;
        client.send(request).await;
        gate.arrived_count(n + 1).await;
        clients.push(client);
    }
    gate.open();
    for (client, whose) in clients.iter_mut().zip([TIER_A, TIER_A, TIER_B, "all"]) {
        client.read_answer().await.body(format!("text for {whose}")).no_cache_status("collapsed");
    }
    assert_eq!(origin.count("/post/"), 4);
    read(&site, ANN).await.body(format!("text for {TIER_A}")).cache_status("hit");
}

#[tokio::test]
async fn a_page_that_greets_its_reader_is_nobody_elses() {
    let (origin, site) = site_with(OPTED_IN).await;
    let greeting = |seen: &SeenRequest| {
        let name = if seen.field("cookie").is_some_and(|cookie| cookie.contains("a001")) { "Ann" } else { "somebody" };
        page_for(seen, &format!("Hello {name}"))
    };
    origin.on(get("/post/")).reply_with(greeting);
    for member in [ANN, ABE, ADA, ABE, ADA] {
        let name = if member.session == ANN.session { "Ann" } else { "somebody" };
        read(&site, member).await.body(format!("Hello {name} for {TIER_A}")).cache_status("fwd=uri-miss");
    }
    // Ten minutes later two others are asked again.
    site.clock.advance(secs(600));
    read(&site, ANN).await.body(format!("Hello Ann for {TIER_A}")).cache_status("fwd=uri-miss");
    read(&site, ABE).await.body(format!("Hello somebody for {TIER_A}")).cache_status("fwd=uri-miss");
    read(&site, ADA).await.body(format!("Hello somebody for {TIER_A}")).cache_status("fwd=uri-miss");
}

/// Seen on Ghost 6.65: the first time that it renders a post, `og:image` names another size of the picture than ever after.
#[tokio::test]
async fn a_difference_that_was_before_the_members_is_none_when_the_first_of_them_asks_again() {
    let (origin, site) = site_with(OPTED_IN).await;
    is_ghost(&origin);
    origin.on(get("/post/")).once().reply_with(|seen| page_for(seen, "first text"));
    read(&site, ANN).await.body(format!("first text for {TIER_A}"));
    for member in [ABE, ADA, ABE] {
        read(&site, member).await.body(format!("text for {TIER_A}")).cache_status("fwd=uri-miss");
    }
    read(&site, ANN).await.body(format!("text for {TIER_A}")).cache_status("fwd=uri-miss");
    for member in [ABE, ADA, ANN] {
        read(&site, member).await.body(format!("text for {TIER_A}")).cache_status("hit");
    }
}

/// A page may be the same for two who share a name. What is in the cookies they do not share.
#[tokio::test]
async fn a_page_with_something_out_of_the_members_cookies_is_not_stored() {
    let (origin, site) = site_with(OPTED_IN).await;
    origin.on(get("/post/")).reply_with(|seen| page_for(seen, "Write to ann@example.org"));
    let of = |member: Member| member.get("/post/").field("cookie", "newsletter=ann%40example.org");
    for member in [ANN, ABE, ADA, ANN] {
        site.request(of(member)).await.status(200).cache_status("fwd=uri-miss");
    }
}

/// The subject of a test, and the origin's reply.
type Case = (&'static str, fn() -> Reply);

/// The answer to one member, in the words of the origin, that is never stored.
#[tokio::test]
async fn what_is_not_for_the_whole_tier_by_the_origins_own_word_is_stored_for_nobody() {
    let cases: [Case; 9] = [
        // 6.65 hands the free tier's cookie to a member with a gift.
        ("a gift: the cookie names another tier than the page", || {
            ok("text").field("cache-control", PUBLIC).field("x-member-cache-tier", TIER_B)
        }),
        ("two subscriptions", || ok("text").field("cache-control", "no-cache, private, no-store, must-revalidate")),
        ("a session that has ended", || ok("text").field("cache-control", PUBLIC)),
        ("a cookie", || {
            ok("text").field("cache-control", PUBLIC).field("x-member-cache-tier", TIER_A).field("set-cookie", "ghost-members-ssr=; path=/")
        }),
        ("no word that it is public", || ok("text").field("cache-control", "max-age=600").field("x-member-cache-tier", TIER_A)),
        ("not found", || status(404).body("text").field("cache-control", PUBLIC).field("x-member-cache-tier", TIER_A)),
        ("a redirect", || {
            status(301).body("text").field("cache-control", PUBLIC).field("x-member-cache-tier", TIER_A).field("location", "/other/")
        }),
        ("it depends on cookies", || {
            ok("text").field("cache-control", PUBLIC).field("x-member-cache-tier", TIER_A).field("vary", "Cookie")
        }),
        ("coded although nobody asked", || {
            ok("text").field("cache-control", PUBLIC).field("x-member-cache-tier", TIER_A).field("content-encoding", "br")
        }),
    ];
    for (name, reply) in cases {
        let (origin, site) = site_with(OPTED_IN).await;
        origin.on(get("/post/")).reply_with(move |_| reply());
        for (n, member) in [ANN, ABE, ADA, ANN].into_iter().enumerate() {
            let answer = site.request(member.get("/post/")).await.body("text").no_cache_status("hit");
            answer.no_field("x-member-cache-tier").field_contains("cache-control", "private");
            assert_eq!(origin.count("/post/"), n + 1, "{name}");
        }
        // And nothing of it is anybody else's.
        site.get("/post/").await.cache_status("fwd=uri-miss");
        drop(origin.take_unexpected());
    }
}

/// Ghost 6.65 hands the free tier's cookie to a member with a complimentary or gifted tier. With it they are not answered from what the free
/// tier shares.
#[tokio::test]
async fn a_member_whose_cookie_names_a_lower_tier_is_answered_by_the_origin() {
    let (origin, site) = site_with(OPTED_IN).await;
    is_ghost(&origin);
    stored_for_a(&site).await;
    let gifted = BOB.with(A);
    for n in 3..6 {
        read(&site, gifted).await.body(format!("text for {TIER_B}")).cache_status("fwd=stale");
        assert_eq!(origin.count("/post/"), n);
    }
    // Nor is somebody whose session has ended, or never was.
    let nobody = Member { session: "00000000-0000-4000-8000-00000000f001", access: A };
    read(&site, nobody).await.body("text for all").cache_status("fwd=stale");
    read(&site, nobody).await.body("text for all").cache_status("fwd=stale");
    read(&site, ANN).await.body(format!("text for {TIER_A}")).cache_status("hit");
}

/// Two members may share a name.
#[tokio::test]
async fn a_page_that_turns_out_to_greet_its_reader_is_dropped() {
    let (origin, site) = site_with(OPTED_IN).await;
    origin.on(get("/post/")).reply_with(|seen| {
        let name = if seen.field("cookie").is_some_and(|cookie| cookie.contains("a003")) { "Ada" } else { "Ann" };
        page_for(seen, &format!("Hello {name}"))
    });
    stored_for_a(&site).await;
    read(&site, ADA).await.body(format!("Hello Ada for {TIER_A}")).cache_status("fwd=stale");
    for (member, name) in [(ANN, "Ann"), (ADA, "Ada"), (ABE, "Ann"), (ANN, "Ann")] {
        read(&site, member).await.body(format!("Hello {name} for {TIER_A}")).cache_status("fwd=uri-miss");
    }
}

/// Ghost calls them public. We did not agree to anything.
#[tokio::test]
async fn without_the_secret_members_pass_and_share_nothing() {
    let (origin, site) = site_with(NOT_OPTED_IN).await;
    is_ghost(&origin);
    for turn in 0..2 {
        for (member, tier) in [(ANN, TIER_A), (ABE, TIER_A), (BOB, TIER_B), (ANN.with(A_EXPIRED), TIER_A)] {
            read(&site, member).await.body(format!("text for {tier}")).cache_status("fwd=bypass; detail=ghost-member-cookie");
        }
        site.get("/post/").await.body("text for all").cache_status(if turn == 0 { "fwd=uri-miss" } else { "hit" });
    }
}

#[tokio::test]
async fn a_request_that_passes_for_another_reason_passes_with_a_tier_too() {
    let (origin, site) = site_with(OPTED_IN).await;
    is_ghost(&origin);
    stored_for_a(&site).await;
    for path in ["/members/api/member/", "/ghost/api/admin/site/", "/p/draft/"] {
        origin.on(get(path)).reply_with(|seen| page_for(seen, "text"));
        for member in [ANN, ABE, ADA] {
            site.request(member.get(path)).await.status(200).cache_status("fwd=bypass");
        }
    }
    let toolbar = ADA.get("/post/").field("cookie", "ghost-admin-toolbar=1");
    site.request(toolbar).await.status(200).cache_status("fwd=bypass");
    site.request(ADA.get("/post/").field("x-ghost-preview", "1")).await.status(200).cache_status("fwd=bypass");
    site.request(ADA.get("/post/").field("authorization", "Basic eA==")).await.status(200).cache_status("fwd=bypass");
    origin.on(post("/post/")).reply(ok("done").field("cache-control", PUBLIC).field("x-member-cache-tier", TIER_A));
    let written = site.request(Req::post("/post/").field("cookie", ADA.cookies()).body("x")).await.body("done").cache_status("fwd=method");
    is_private(&written);
}

#[tokio::test]
async fn a_purge_covers_what_members_share_like_any_other_page() {
    let url = || PurgeTarget::Url { site: 0, url: format!("{HOST}/post/").into_bytes() };
    let prefix = || PurgeTarget::Prefix { site: 0, url: format!("{HOST}/po").into_bytes() };
    for target in [url(), prefix(), PurgeTarget::Tag { site: 0, tag: "post-7".into() }, PurgeTarget::Site(0), PurgeTarget::All] {
        for hardness in [Hardness::Soft, Hardness::Hard] {
            let (origin, site) = site_with(OPTED_IN).await;
            origin.on(get("/post/")).reply_with(|seen| page_for(seen, "old").field("surrogate-key", "post-7"));
            stored_for_a(&site).await;
            origin.on(get("/post/")).reply_with(|seen| page_for(seen, "new").field("surrogate-key", "post-7"));
            site.purge(&target, hardness);
            // The next member's own request brings it, and nobody gets the old one.
            for (member, status) in [(ANN, "fwd"), (ABE, "fwd"), (ANN, "hit"), (ABE, "hit")] {
                let answer = read(&site, member).await.body(format!("new for {TIER_A}"));
                let is_hit = answer.value("cache-status").is_some_and(|status| status.contains("; hit"));
                assert_eq!(is_hit, status == "hit", "{target:?} {hardness:?} {answer}");
            }
            assert_eq!(origin.count("/post/"), 4, "{target:?} {hardness:?}");
        }
    }
}

/// The same bytes before and after a purge prove nothing about what is there now.
#[tokio::test]
async fn answers_with_a_purge_between_them_are_not_compared() {
    let (origin, site) = site_with(OPTED_IN).await;
    is_ghost(&origin);
    read(&site, ANN).await.status(200);
    site.purge(&PurgeTarget::All, Hardness::Soft);
    read(&site, ABE).await.cache_status("fwd=uri-miss");
    read(&site, ABE).await.cache_status("fwd=uri-miss");

    // One that was asked for before the purge, and came after it.
    let gate = Gate::new();
    let held = gate.clone();
    origin.on(get("/post/")).once().reply_with(move |seen| page_for(seen, "text").gate(&held));
    let mut slow = site.client().await;
    slow.send(ANN.get("/post/")).await;
    gate.arrived().await;
    site.purge(&PurgeTarget::All, Hardness::Soft);
    gate.open();
    slow.read_answer().await.body(format!("text for {TIER_A}"));
    // And different bytes are not a difference, where something changed between them.
    origin.on(get("/post/")).reply_with(|seen| page_for(seen, "new"));
    read(&site, ANN).await.cache_status("fwd=uri-miss");
    read(&site, ABE).await.cache_status("fwd=uri-miss");
    read(&site, ANN).await.body(format!("new for {TIER_A}")).cache_status("hit");
}

#[tokio::test]
async fn when_the_origin_is_down_a_stale_page_goes_to_its_tier_alone() {
    let (origin, site) = site_with(OPTED_IN).await;
    is_ghost(&origin);
    stored_for_a(&site).await;
    site.purge(&PurgeTarget::All, Hardness::Soft);
    origin.kill();
    for _ in 0..2 {
        for member in [ANN, ADA] {
            read(&site, member).await.status(200).body(format!("text for {TIER_A}")).x_cache("STALE");
        }
        for other in [BOB, BOB.with(B_FORGED), ANN.with(A_EXPIRED)] {
            site.request(other.get("/post/")).await.status(502);
        }
        site.get("/post/").await.status(502);
    }
    // It is a member who finds out that the origin is back, as nobody asks behind one.
    origin.revive();
    site.clock.advance(secs(2));
    read(&site, ANN).await.status(200).x_cache("EXPIRED");
    read(&site, ABE).await.status(200).x_cache("EXPIRED");
    read(&site, ANN).await.status(200).cache_status("hit");
}

/// A page that was unpublished, or a blog that is behind a password now.
#[tokio::test]
async fn what_a_member_has_seen_gone_does_not_come_back_for_others_when_the_origin_is_down() {
    let gone: [fn() -> Reply; 3] = [
        || status(404).field("cache-control", "no-cache, max-age=0"),
        || status(410),
        || status(302).field("location", "/private/?r=%2Fpost%2F"),
    ];
    for reply in gone {
        let (origin, site) = site_with(OPTED_IN).await;
        is_ghost(&origin);
        stored_for_a(&site).await;
        site.purge(&PurgeTarget::All, Hardness::Soft);
        origin.on(get("/post/")).reply_with(move |_| reply());
        // Whether the blog is behind a password is asked, and not answered.
        origin.on(get("/")).reply(status(500));
        read(&site, ANN).await.no_cache_status("hit");
        origin.kill();
        site.request(ABE.get("/post/")).await.status(502);
    }
}

/// A page with something of one reader's, and not a word about the tier: the others' is still theirs.
#[tokio::test]
async fn a_members_own_answer_does_not_end_what_the_tier_shares() {
    let (origin, site) = site_with(OPTED_IN).await;
    is_ghost(&origin);
    stored_for_a(&site).await;
    site.purge(&PurgeTarget::All, Hardness::Soft);
    origin.on(get("/post/")).reply(ok("Ann's own").field("cache-control", "private, max-age=0"));
    read(&site, ANN).await.body("Ann's own");
    origin.kill();
    read(&site, ABE).await.status(200).body(format!("text for {TIER_A}")).x_cache("STALE");
}

/// Nobody refreshes behind a member what only members see.
#[tokio::test]
async fn what_is_stale_is_refreshed_by_the_next_member_and_not_behind() {
    let (origin, site) = site_with(&format!("{OPTED_IN}hold = \"60s\"\nstale_while_revalidate = \"1h\"\n")).await;
    origin.on(get("/post/").without("if-none-match")).reply_with(move |seen| {
        let tier = tier_of(seen).expect("a member");
        ok(format!("text for {tier}"))
            .field("etag", "W/\"1\"")
            .field("cache-control", "public, max-age=30")
            .field("x-member-cache-tier", tier)
    });
    stored_for_a(&site).await;
    site.clock.advance(secs(61));
    // A 304 is this member's own answer, and that it is the stored one: the page is as good as new for all.
    origin.on(get("/post/").field("if-none-match", "W/\"1\"")).reply_with(|_| {
        not_modified().field("etag", "W/\"1\"").field("cache-control", "public, max-age=30").field("x-member-cache-tier", TIER_A)
    });
    read(&site, ABE).await.status(200).body(format!("text for {TIER_A}")).x_cache("REVALIDATED");
    assert_eq!(origin.last("/post/").field("cookie"), Some(ABE.cookies()));
    read(&site, ANN).await.status(200).cache_status("hit");
    assert_eq!(origin.count("/post/"), 3);

    // One that does not name the tier confirms nothing for others.
    site.clock.advance(secs(61));
    origin
        .on(get("/post/").field("if-none-match", "W/\"1\""))
        .reply_with(|_| not_modified().field("etag", "W/\"1\"").field("cache-control", "public, max-age=30"));
    for n in 4..6 {
        read(&site, ADA).await.status(200).x_cache("REVALIDATED");
        assert_eq!(origin.count("/post/"), n);
    }
}

/// The same head again, byte for byte, is judged by the clock each time.
#[tokio::test]
async fn a_cookie_that_has_expired_opens_nothing_although_the_page_is_there() {
    let (origin, site) = site_with(OPTED_IN).await;
    is_ghost(&origin);
    stored_for_a(&site).await;
    let mut client = site.client().await;
    for _ in 0..5 {
        client.request(ANN.get("/post/")).await.cache_status("hit");
    }
    site.clock.advance(secs(3599));
    client.request(ANN.get("/post/")).await.cache_status("hit");
    site.clock.advance(secs(1));
    client.request(ANN.get("/post/")).await.cache_status("fwd=stale");
    client.request(ANN.get("/post/")).await.cache_status("hit");
    site.clock.advance(secs(1));
    for _ in 0..2 {
        let answer = client.request(ANN.get("/post/")).await.cache_status("fwd=bypass; detail=ghost-member-cookie");
        is_private(&answer);
    }
    client.request(ANN.with(A_LATER).get("/post/")).await.cache_status("hit");
}

#[tokio::test]
async fn a_stored_page_answers_its_tier_in_every_method_and_on_conditions() {
    let (origin, site) = site_with(OPTED_IN).await;
    origin.on(get("/post/")).reply_with(|seen| page_for(seen, "text").field("etag", "W/\"1\""));
    stored_for_a(&site).await;
    let again = ANN.get("/post/").field("if-none-match", "W/\"1\"");
    is_private(&site.request(again).await.status(304).cache_status("hit"));
    let head = Req::head("/post/").field("cookie", ANN.cookies());
    is_private(&site.request(head).await.status(200).cache_status("hit").body(""));
    assert_eq!(origin.count("/post/"), 2);
    // What is fetched by HEAD for one member is nobody's page.
    origin.on(testkit::head("/post/")).reply_with(|seen| page_for(seen, "text"));
    is_private(&site.request(Req::head("/post/").field("cookie", BOB.cookies())).await.status(200).cache_status("fwd=uri-miss"));
    read(&site, BEA).await.body(format!("text for {TIER_B}")).cache_status("fwd=uri-miss");
    read(&site, BOB).await.body(format!("text for {TIER_B}")).cache_status("fwd=uri-miss");
    read(&site, BEA).await.body(format!("text for {TIER_B}")).cache_status("hit");
}

#[tokio::test]
async fn an_operator_is_told_how_a_members_tier_was_judged_and_no_secret() {
    let explained = |toml: &'static str, cookies: String| async move {
        let (_origin, site) = site_with(toml).await;
        let operator = Operator::of(&site);
        let command = explain::command(&format!("http://{HOST}/post/"), "GET", &[format!("cookie: {cookies}")]).expect("a command");
        let told = explain::run(&operator.client(), &command).expect("an explanation");
        let shown = format!("{told:?}");
        for secret in ["0000-4000", "YSBz", "767225600", "a5e8919c", "aB-_9"] {
            assert!(!shown.contains(secret), "{secret}: {shown}");
        }
        let rule = told.rules.iter().find(|rule| rule.rule == "ghost-tier").map(|rule| rule.detail.clone());
        (told.verdict, rule.unwrap_or_default())
    };
    let lookup = |detail: &str| (ExplainedVerdict::Lookup, detail.to_owned());
    let pass = |detail: &str| (ExplainedVerdict::Pass, detail.to_owned());
    assert_eq!(explained(OPTED_IN, ANN.cookies()).await, lookup(&format!("verified: {TIER_A}; else judged as without a member's cookies")));
    assert_eq!(explained(OPTED_IN, ANN.with(A_EXPIRED).cookies()).await, pass("expired"));
    assert_eq!(explained(OPTED_IN, ANN.with(A_LATER).cookies()).await, pass("from the future"));
    assert_eq!(explained(OPTED_IN, BOB.with(B_FORGED).cookies()).await, pass("bad signature"));
    assert_eq!(explained(NOT_OPTED_IN, ANN.cookies()).await, pass("not opted in: no member_secret is set"));
    assert_eq!(explained(OPTED_IN, "ghost-members-ssr=1".into()).await, pass(""));
}
