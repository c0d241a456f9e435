//! Stored pages that nobody reads as they are stay in memory in their coded forms alone (RFC 9110 §8.4.1, §12.5.3). No answer depends on it.

use std::{fs, io::Read, path::Path, time::Duration};

use store::{Hardness, PurgeTarget};
use testkit::{Answer, Gate, Origin, Reply, Req, get, not_modified, ok, secs};

use crate::{
    codings::base64,
    site::{HOST, Site, site, site_with},
};

/// The number of looks during which nobody may read a page as it is before it is packed, at the latest: two looks, a minute apart.
const LOOKS: usize = 2;

/// Returns a page that is worth coding: 5 KB of text.
fn text(name: &str) -> String {
    text_of(name, 100)
}

fn text_of(name: &str, paragraphs: usize) -> String {
    (0..paragraphs).map(|n| format!("<p>{name}, paragraph {n}, some more words</p>\n")).collect()
}

fn page(name: &str) -> Reply {
    page_of(name, text(name))
}

fn page_of(name: &str, text: String) -> Reply {
    ok(text)
        .field("content-type", "text/html; charset=utf-8")
        .field("cache-control", "max-age=3600")
        .field("etag", format!("\"{name}\""))
        .field("last-modified", "Mon, 15 Dec 2025 10:00:00 GMT")
}

fn taking(codings: &str) -> Req {
    Req::get("/post").field("accept-encoding", codings)
}

fn decoded(answer: &Answer) -> String {
    let (mut text, content) = (String::new(), &*answer.content);
    let read = match answer.value("content-encoding").as_deref() {
        None => (&*content).read_to_string(&mut text),
        Some("gzip") => flate2::read::GzDecoder::new(content).read_to_string(&mut text),
        Some("br") => brotli::Decompressor::new(content, 4096).read_to_string(&mut text),
        Some("zstd") => zstd::stream::read::Decoder::new(content).expect("a decoder").read_to_string(&mut text),
        Some(other) => panic!("the coding {other}"),
    };
    read.expect("content that can be decoded");
    text
}

impl Site {
    /// Lets time pass until what nobody reads as it is has been packed.
    fn pass_looks(&self) {
        for _ in 0..LOOKS {
            self.look();
        }
    }

    /// Lets a minute pass, and a look at what is stored.
    fn look(&self) {
        self.server.settle_codings();
        self.clock.advance(secs(60));
        self.server.settle_packing();
    }

    pub(crate) fn counted_as(&self, name: &str) -> u64 {
        let metrics = self.server.console().metrics();
        let metric = metrics.iter().find(|metric| metric.name == name).expect("a metric");
        format!("{:?}", metric.samples).chars().filter(char::is_ascii_digit).collect::<String>().parse().expect("a number")
    }

    fn packed(&self) -> u64 {
        self.counted_as("seawall_packed_total")
    }

    fn unpacked(&self) -> u64 {
        self.counted_as("seawall_unpacked_total")
    }
}

/// Returns a page that was asked for in gzip, and is packed.
async fn packed() -> (Origin, Site) {
    let (origin, site) = site().await;
    pack(&origin, &site, page("one")).await;
    (origin, site)
}

async fn pack(origin: &Origin, site: &Site, reply: Reply) {
    origin.on(get("/post")).reply(reply);
    site.request(taking("gzip")).await.status(200);
    let before = site.packed();
    site.pass_looks();
    assert_eq!(site.packed(), before + 1);
}

#[track_caller]
fn plain(answer: Answer) {
    answer.status(200).body(text("one")).no_field("content-encoding").field("etag", "\"one\"").field("vary", "accept-encoding");
}

/// The room of such a page is that of the content as it is.
#[tokio::test]
async fn a_page_that_is_asked_for_in_gzip_alone_is_kept_in_gzip_alone() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(page("one"));
    site.request(taking("gzip")).await.status(200);
    site.server.settle_codings();
    let before = site.server.usage().bytes;
    let coded = site.request(taking("gzip")).await.cache_status("hit").field("content-encoding", "gzip").content;
    site.look();
    assert_eq!((site.packed(), site.server.usage().bytes), (0, before), "somebody wanted it a minute ago");
    site.look();
    assert_eq!((site.packed(), before - site.server.usage().bytes), (1, text("one").len() as u64));
    let mut client = site.client().await;
    for _ in 0..8 {
        let answer =
            client.request(taking("gzip")).await.cache_status("hit").field("content-encoding", "gzip").field("etag", "\"one-gzip\"");
        assert_eq!(answer.content, coded);
    }
    assert_eq!((site.unpacked(), origin.count("/post")), (0, 1));
}

/// Scripts that take no coding have no form made. When they have gone, the page gets the one that it is packed in.
#[tokio::test]
async fn a_page_that_only_scripts_have_asked_for_is_packed_when_they_have_gone() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(page("one"));
    plain(site.get("/post").await);
    let before = site.server.usage().bytes;
    site.pass_looks();
    assert_eq!((site.packed(), site.counted_as("seawall_codings_total")), (0, 1), "its form is made");
    site.look();
    assert_eq!(site.packed(), 1);
    assert!(site.server.usage().bytes < before);
    assert_eq!(decoded(&site.request(taking("gzip")).await.cache_status("hit").field("content-encoding", "gzip")), text("one"));
    plain(site.get("/post").await.cache_status("hit"));
    assert_eq!(origin.count("/post"), 1);
}

/// RFC 9110 §12.5.3: who names no coding gets the content as the origin sent it, with its own tag and length.
#[tokio::test]
async fn who_takes_no_coding_gets_the_same_bytes() {
    for request in [Req::get("/post"), taking("identity"), taking("gzip;q=0, identity"), taking("br;q=0.1, identity")] {
        let (origin, site) = packed().await;
        let answer = site.request(request).await.cache_status("hit").field("content-length", &text("one").len().to_string());
        plain(answer);
        assert_eq!(origin.count("/post"), 1);
    }
}

/// A crawler that takes no coding reads each page once: it must not push out half of the others.
#[tokio::test]
async fn a_second_reader_brings_it_back_and_the_first_does_not() {
    let (origin, site) = packed().await;
    let packed = site.server.usage().bytes;
    plain(site.get("/post").await.cache_status("hit"));
    assert_eq!((site.unpacked(), site.server.usage().bytes), (1, packed));
    plain(site.get("/post").await.cache_status("hit"));
    let unpacked = packed + text("one").len() as u64;
    assert_eq!((site.unpacked(), site.server.usage().bytes), (2, unpacked));
    for _ in 0..4 {
        plain(site.get("/post").await.cache_status("hit"));
    }
    assert_eq!((site.unpacked(), site.server.usage().bytes), (2, unpacked), "it is there");
    site.pass_looks();
    assert_eq!((site.packed(), site.server.usage().bytes), (2, packed), "its readers are gone");
    for _ in 0..3 {
        plain(site.get("/post").await.cache_status("hit"));
        site.look();
    }
    assert_eq!((site.unpacked(), site.server.usage().bytes), (5, packed), "one reader in a minute does not bring it back");
    assert_eq!(origin.count("/post"), 1);
}

#[tokio::test]
async fn a_page_that_has_readers_as_it_is_stays_as_it_is() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(page("one"));
    site.request(taking("gzip")).await.status(200);
    let mut client = site.client().await;
    for _ in 0..5 {
        for codings in ["gzip", "identity", "gzip", "identity"] {
            assert_eq!(decoded(&client.request(taking(codings)).await.status(200)), text("one"));
        }
        site.look();
    }
    assert_eq!((site.packed(), site.unpacked()), (0, 0));
    // Readers of ranges count, and who asks for the head alone does not.
    for _ in 0..3 {
        site.request(Req::get("/post").field("range", "bytes=0-1")).await.status(206);
        site.look();
    }
    assert_eq!(site.packed(), 0);
    for _ in 0..2 {
        site.request(Req::head("/post")).await.status(200);
        site.request(Req::get("/post").field("if-none-match", "\"one\"")).await.status(304);
        site.look();
    }
    assert_eq!((site.packed(), site.unpacked()), (1, 0));
}

/// RFC 9110 §9.3.2, §15.4.5: nothing is unpacked for a head.
#[tokio::test]
async fn head_and_304_are_answered_without_the_content() {
    let (origin, site) = packed().await;
    let length = text("one").len().to_string();
    let answer = site.request(Req::head("/post")).await.status(200).body("").cache_status("hit").field("content-length", &length);
    answer.field("etag", "\"one\"").no_field("content-encoding");
    for cache_control in [None, Some("max-age=6000")] {
        for tag in ["\"one\"", "\"one-gzip\""] {
            let mut request = Req::get("/post").field("if-none-match", tag).field("accept-encoding", "gzip");
            if let Some(value) = cache_control {
                request = request.field("cache-control", value);
            }
            site.request(request).await.status(304).field("etag", tag);
        }
    }
    site.request(Req::get("/post").field("if-modified-since", "Mon, 15 Dec 2025 10:00:00 GMT")).await.status(304);
    site.request(Req::get("/post").field("if-match", "\"other\"")).await.status(412);
    assert_eq!((site.unpacked(), origin.count("/post")), (0, 1));
}

/// RFC 9110 §14.2: a range is one of the content as it is, whatever the client takes.
#[tokio::test]
async fn ranges_are_cut_out_of_the_content_as_it_is() {
    let (origin, site) = packed().await;
    let whole = text("one");
    let ranged = |range: &str| taking("gzip").field("range", range.to_owned());
    for (range, expected) in [("bytes=0-9", &whole[..10]), ("bytes=100-199", &whole[100..200]), ("bytes=-7", &whole[whole.len() - 7..])] {
        let answer = site.request(ranged(range)).await.status(206).body(expected).field("etag", "\"one\"");
        answer.no_field("content-encoding").field("content-length", &expected.len().to_string());
        site.pass_looks();
    }
    let length = whole.len();
    site.request(ranged("bytes=90000-")).await.status(416).field("content-range", &format!("bytes */{length}"));
    site.pass_looks();
    let answer = site.request(ranged("bytes=0-1,4-5")).await.status(206);
    let parts = String::from_utf8(answer.content.to_vec()).expect("text");
    assert!(parts.contains(&format!("bytes 4-5/{length}\r\n\r\n{}", &whole[4..6])), "{parts}");
    assert_eq!(origin.count("/post"), 1);
}

/// Many at once share one unpacking; others have their turn while it lasts.
#[tokio::test]
async fn many_readers_at_once_do_not_unpack_it_many_times() {
    let (origin, site) = site_with("[cache]\nmemory = \"256MiB\"\nobject_max = \"8MiB\"").await;
    let long = text_of("long", 40_000);
    pack(&origin, &site, page_of("long", long.clone())).await;
    let mut clients = Vec::new();
    for _ in 0..16 {
        let mut client = site.client().await;
        client.send(Req::get("/post")).await;
        clients.push(client);
    }
    for client in &mut clients {
        client.read_answer().await.status(200).body(&long).cache_status("hit");
    }
    // The first of all may have been alone; from the second on it is stored again.
    assert!((1..=2).contains(&site.unpacked()), "{}", site.unpacked());
    assert_eq!(origin.count("/post"), 1);
}

/// Who takes a better coding later gets it all the same: it is made of the unpacked content.
#[tokio::test]
async fn further_forms_are_made_of_packed_pages() {
    let (origin, site) = packed().await;
    for coding in ["br", "zstd"] {
        let answer = site.request(taking(&format!("{coding}, gzip"))).await.cache_status("hit").field("content-encoding", "gzip");
        assert_eq!(decoded(&answer), text("one"));
        site.server.settle_codings();
        let answer = site.request(taking(&format!("{coding}, gzip"))).await.cache_status("hit").field("content-encoding", coding);
        assert_eq!(decoded(&answer), text("one"));
    }
    assert_eq!((site.unpacked(), origin.count("/post")), (0, 1), "no reader had to wait for it");
}

/// RFC 9111 §4.3.4: a packed page can be confirmed, and is what it was.
#[tokio::test]
async fn a_packed_page_is_freshened() {
    let (origin, site) = packed().await;
    site.clock.advance(secs(3600));
    let confirmation = || not_modified().field("etag", "\"one\"").field("cache-control", "max-age=3600").field("x-new", "yes");
    origin.on(get("/post").field("if-none-match", "\"one\"")).reply(confirmation());
    let answer = site.request(taking("gzip")).await.x_cache("REVALIDATED").field("content-encoding", "gzip").field("x-new", "yes");
    assert_eq!(decoded(&answer), text("one"));
    plain(site.get("/post").await.cache_status("hit").field("x-new", "yes"));
    site.pass_looks();
    site.clock.advance(secs(3600));
    plain(site.get("/post").await.x_cache("REVALIDATED"));
    // A reload confirms it, too (RFC 9111 §5.2.1.4).
    site.pass_looks();
    plain(site.request(Req::get("/post").field("cache-control", "no-cache")).await.x_cache("REVALIDATED"));
    assert_eq!(origin.count("/post"), 4);
}

/// Many origins know no 304: the same content once more need not be coded once more.
#[tokio::test]
async fn the_same_content_fetched_again_keeps_the_forms_of_a_packed_page() {
    let (origin, site) = packed().await;
    site.clock.advance(secs(3600));
    let made = site.counted_as("seawall_codings_total");
    plain(site.get("/post").await.cache_status("fwd=stale"));
    site.request(taking("gzip")).await.cache_status("hit").field("content-encoding", "gzip");
    site.server.settle_codings();
    assert_eq!(site.counted_as("seawall_codings_total"), made);
    // Other content of the same length is other content.
    site.pass_looks();
    site.clock.advance(secs(3600));
    let other = text("one").replace("paragraph 99", "paragraph 98");
    origin.on(get("/post")).reply(page_of("two", other.clone()));
    assert_eq!(decoded(&site.request(taking("gzip")).await), other);
    site.server.settle_codings();
    assert_eq!(decoded(&site.request(taking("gzip")).await.field("content-encoding", "gzip")), other);
}

#[tokio::test]
async fn a_purge_takes_a_packed_page() {
    let url = PurgeTarget::Url { site: 0, url: format!("{HOST}/post").into_bytes() };
    for target in [url, PurgeTarget::All] {
        for hardness in [Hardness::Hard, Hardness::Soft] {
            for codings in ["gzip", "identity"] {
                let (origin, site) = packed().await;
                origin.on(get("/post")).reply(page("two"));
                site.purge(&target, hardness);
                if hardness == Hardness::Soft {
                    let answer = site.request(taking(codings)).await.x_cache("UPDATING");
                    assert_eq!(decoded(&answer), text("one"), "{codings}: while it is validated");
                    site.request(taking(codings).field("cache-control", "no-cache")).await.status(200);
                }
                assert_eq!(decoded(&site.request(taking(codings)).await.status(200)), text("two"), "{codings}");
                site.pass_looks();
                assert_eq!(decoded(&site.request(taking(codings)).await.cache_status("hit")), text("two"), "{codings}");
            }
        }
    }
}

/// RFC 9111 §4.2.4: a packed page stands in for an origin that is away.
#[tokio::test]
async fn a_packed_page_stands_in_for_the_origin() {
    let (origin, site) = packed().await;
    site.clock.advance(secs(3600));
    origin.kill();
    for request in [Req::get("/post"), taking("gzip"), Req::get("/post"), Req::get("/post")] {
        assert_eq!(decoded(&site.request(request).await.status(200).x_cache("STALE")), text("one"));
    }
}

/// Each variant is packed for itself, and stays in its place.
#[tokio::test]
async fn variants_are_packed_each_for_itself() {
    let (origin, site) = site().await;
    for language in ["de", "en"] {
        let reply = page(language).field("vary", "accept-language");
        origin.on(get("/post").field("accept-language", language)).reply(reply);
        site.request(taking("gzip").field("accept-language", language)).await.status(200);
    }
    let in_language = |language: &'static str, codings| taking(codings).field("accept-language", language);
    for _ in 0..3 {
        site.look();
        site.request(in_language("de", "identity")).await.body(text("de")).cache_status("hit");
    }
    assert_eq!(site.packed(), 1);
    site.pass_looks();
    assert_eq!(site.packed(), 2);
    for _ in 0..3 {
        for language in ["en", "de"] {
            for codings in ["identity", "gzip"] {
                assert_eq!(decoded(&site.request(in_language(language, codings)).await.cache_status("hit")), text(language));
            }
        }
    }
    assert_eq!(origin.count("/post"), 2);
}

/// What is on the disk is the content as it is, whatever memory holds.
#[tokio::test]
async fn a_packed_page_is_whole_after_a_restart() {
    let (origin, place) = (Origin::start(), tempfile::tempdir().expect("a folder"));
    let start = || {
        Site::start(&format!(
            "source = \"{}\"\n[cache]\ndir = \"{}\"\ndisk = \"64MiB\"\n",
            origin.url(),
            place.path().join("cache").display()
        ))
    };
    let files = |path: &Path| -> usize {
        let buckets = fs::read_dir(path.join("cache/objects")).expect("a folder");
        buckets.map(|bucket| fs::read_dir(bucket.expect("a bucket").path()).expect("a bucket").count()).sum()
    };
    let site = start();
    pack(&origin, &site, page("one")).await;
    plain(site.get("/post").await.cache_status("hit"));
    site.stop(Duration::from_secs(5));

    let site = start();
    plain(site.get("/post").await.cache_status("hit"));
    site.request(taking("gzip")).await.status(200);
    site.pass_looks();
    assert_eq!(site.packed(), 1);
    // Freshened, it is written anew.
    site.clock.advance(secs(3600));
    let confirmation = not_modified().field("etag", "\"one\"").field("cache-control", "max-age=360000");
    origin.on(get("/post").field("if-none-match", "\"one\"")).reply(confirmation);
    site.request(taking("gzip")).await.x_cache("REVALIDATED");
    site.pass_looks();
    site.stop(Duration::from_secs(5));
    assert_eq!(files(place.path()), 1);

    let site = start();
    plain(site.get("/post").await.cache_status("hit"));
    site.request(taking("gzip")).await.status(200);
    site.pass_looks();
    site.purge(&PurgeTarget::Url { site: 0, url: format!("{HOST}/post").into_bytes() }, Hardness::Hard);
    site.stop(Duration::from_secs(5));
    assert_eq!(files(place.path()), 0, "the file goes with the packed page");
    assert_eq!(origin.count("/post"), 2);
}

/// RFC 9842: the version before is a dictionary for a packed page, too.
#[tokio::test]
async fn a_packed_page_is_sent_as_what_has_changed() {
    let (origin, site) = site_with("[compress]\ndictionaries = true").await;
    let version = |name: &str| text("one").replace("paragraph 50", name);
    let page = |name: &str| page_of(name, version(name));
    origin.on(get("/post")).reply(page("old"));
    site.request(taking("gzip")).await.status(200);
    site.pass_looks();
    origin.on(get("/post")).reply(page("new"));
    site.purge(&PurgeTarget::All, Hardness::Hard);
    site.request(taking("gzip")).await.status(200);
    site.pass_looks();
    assert_eq!(site.packed(), 2);
    let hash = base64(&codings::dictionary_hash(version("old").as_bytes()));
    let has_old = || taking("gzip, dcz").field("available-dictionary", format!(":{hash}:"));
    for request in [Req::get("/post"), Req::get("/post"), taking("gzip")] {
        let answer = site.request(has_old()).await.status(200).field("content-encoding", "dcz").cache_status("hit");
        let mut decoded_text = String::new();
        let mut decoder =
            zstd::stream::read::Decoder::with_dictionary(&answer.content[40..], version("old").as_bytes()).expect("a decoder");
        decoder.read_to_string(&mut decoded_text).expect("it can be decoded");
        assert_eq!(decoded_text, version("new"));
        assert_eq!(decoded(&site.request(request).await.cache_status("hit")), version("new"));
    }
}

/// A compressed file that was brought along need not be that of the file beside it. Who takes no coding gets the file.
#[tokio::test]
async fn a_form_of_something_else_is_nothing_to_unpack() {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
    std::io::Write::write_all(&mut gzip, text("old").as_bytes()).expect("memory");
    let gzip = gzip.finish().expect("memory");
    let site = Site::start_with(|folder| {
        let public = folder.join("public");
        fs::create_dir(&public).expect("made");
        fs::write(public.join("index.html"), text("one")).expect("written");
        fs::write(public.join("index.html.gz"), &gzip).expect("written");
        format!("source = \"{}\"", public.display())
    });
    let from = |codings: &str| Req::get("/").field("accept-encoding", codings);
    for _ in 0..3 {
        site.request(from("gzip")).await.status(200).field("content-encoding", "gzip");
        site.pass_looks();
    }
    site.request(from("identity")).await.body(text("one"));
    assert_eq!(site.packed(), 0);
}

/// The first looks come while forms are being made, and what is being sent meanwhile arrives whole.
#[tokio::test]
async fn what_is_being_sent_arrives_whole() {
    let (origin, site) = site().await;
    let gate = Gate::new();
    origin.on(get("/post")).reply(page("one").gate_after(2_000, &gate));
    let mut first = site.client().await;
    first.send(taking("identity")).await;
    gate.arrived().await;
    site.pass_looks();
    gate.open();
    first.read_answer().await.body(text("one"));
    site.request(taking("gzip")).await.status(200);
    site.pass_looks();
    assert_eq!(site.packed(), 1);
    plain(site.get("/post").await.cache_status("hit"));
}
