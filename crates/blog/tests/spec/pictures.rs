//! Pictures, from the folder of an author to the screen of a reader.

use std::{fs, io::Cursor};

use blog::{Blog, BlogOptions};
use http::{HeaderMap, Request, StatusCode, header};
use http_body_util::BodyExt as _;
use image::{ExtendedColorType, ImageFormat, Rgb, RgbImage, codecs::jpeg::JpegEncoder};
use origins::{Arrival, Body, Origin as _};
use semantics::Scheme;

use crate::folder::{Folder, lines, page, rebuilt};

/// Returns a photograph as a camera writes it: it says where it was taken, and that it has to be turned by a quarter if `is_turned`.
fn photo(width: u32, height: u32, is_turned: bool) -> Vec<u8> {
    let mut seed = 7_u32;
    let picture = RgbImage::from_fn(width, height, |x, y| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let noise = (seed >> 29) as u8;
        Rgb([(x % 200) as u8 + noise, (y % 200) as u8 + noise, 120])
    });
    let mut jpeg = Vec::new();
    JpegEncoder::new_with_quality(&mut jpeg, 92).encode(picture.as_raw(), width, height, ExtendedColorType::Rgb8).expect("encoded");
    let orientation = if is_turned { 6 } else { 1 };
    // TIFF 6.0: one directory with the orientation and the place.
    let mut exif = b"Exif\0\0II\x2a\0\x08\0\0\0\x02\0\x12\x01\x03\0\x01\0\0\0".to_vec();
    exif.extend([orientation, 0, 0, 0]);
    exif.extend(b"\x25\x88\x04\0\x01\0\0\0\x26\0\0\0\0\0\0\0SECRET PLACE");
    let mut photo = vec![0xff, 0xd8, 0xff, 0xe1];
    photo.extend(u16::try_from(exif.len() + 2).expect("short").to_be_bytes());
    photo.extend(exif);
    photo.extend(&jpeg[2..]);
    photo
}

fn png(width: u32, height: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    let picture = RgbImage::from_fn(width, height, |x, y| Rgb([x, y, x * y].map(|value| value.to_le_bytes()[0])));
    picture.write_to(&mut Cursor::new(&mut bytes), ImageFormat::Png).expect("encoded");
    bytes
}

fn ask(blog: &Blog, path: &str, fields: &[(&str, &str)]) -> (StatusCode, HeaderMap, Vec<u8>) {
    let mut request = Request::get(path).header(header::HOST, "blog.test");
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    let request = request.body(Body::Empty).expect("a request");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    runtime.block_on(async {
        let arrival = Arrival::of_our_own(Scheme::Http, "");
        let (head, body) = blog.fetch(request, &arrival, None).await.expect("answers").into_parts();
        (head.status, head.headers, body.collect().await.expect("a whole body").to_bytes().to_vec())
    })
}

/// Returns the values of an attribute in `html`, in order.
fn values<'h>(html: &'h str, attribute: &str) -> Vec<&'h str> {
    let mark = format!(" {attribute}=\"");
    html.split(&mark).skip(1).filter_map(|rest| rest.split_once('"').map(|(value, _)| value)).collect()
}

/// Returns the addresses and widths of a `srcset`.
fn choices(srcset: &str) -> Vec<(String, u32)> {
    let one = |choice: &str| choice.split_once(' ').and_then(|(url, width)| Some((url.to_owned(), width.strip_suffix('w')?.parse().ok()?)));
    srcset.split(", ").filter_map(one).collect()
}

fn has(content: &[u8], text: &str) -> bool {
    content.windows(text.len()).any(|window| window == text.as_bytes())
}

fn article(blog: &Blog, path: &str) -> String {
    let html = page(blog, path);
    html.split_once("<main").map_or_else(|| panic!("no page at {path}"), |(_, main)| main.to_owned())
}

#[test]
fn a_photograph_comes_in_every_useful_width_and_takes_its_place_at_once() {
    let folder = Folder::of(&[("posts/cat.md", "# Cat\n\n![Our *cat*](<Our Cat.jpg> \"Tom\")\n\nand ![](/posts/small.png)")]);
    folder.write("posts/Our Cat.jpg", photo(1000, 600, true));
    folder.write("posts/small.png", png(300, 200));
    let blog = folder.blog();
    let html = article(&blog, "/cat/");

    let sets: Vec<_> = values(&html, "srcset").into_iter().map(choices).collect();
    let widths: Vec<Vec<u32>> = sets.iter().map(|set| set.iter().map(|(_, width)| *width).collect()).collect();
    // Turned, the photograph is 600 pixels wide. The small one has nothing to choose but the form.
    assert_eq!(widths, [vec![480, 600], vec![480, 600], vec![300]]);
    assert!(html.contains("width=\"600\" height=\"1000\"") && html.contains("width=\"300\" height=\"200\""), "{html}");
    assert!(html.contains("alt=\"Our cat\"") && html.contains("Tom"), "{html}");
    assert_eq!((values(&html, "fetchpriority"), values(&html, "loading")), (vec!["high"], vec!["lazy"]));

    let forms = [ImageFormat::WebP, ImageFormat::Jpeg, ImageFormat::WebP];
    for (set, form) in sets.iter().zip(forms) {
        for (path, width) in set {
            let (status, fields, content) = ask(&blog, path, &[]);
            assert_eq!((status, image::guess_format(&content).ok()), (StatusCode::OK, Some(form)), "{path}");
            let picture = image::load_from_memory(&content).expect("decoded");
            assert_eq!(picture.width(), *width, "{path}");
            assert!(*width == 300 || picture.height() > picture.width(), "{path} is upright");
            assert!(!has(&content, "SECRET"));
            assert_eq!(fields[header::CACHE_CONTROL], "public, max-age=31536000, immutable");
            assert_eq!(fields[header::CONTENT_TYPE], form.to_mime_type());
            let etag = fields[header::ETAG].to_str().expect("ascii");
            assert_eq!(ask(&blog, path, &[("if-none-match", etag)]).0, StatusCode::NOT_MODIFIED);
        }
    }
    for src in values(&html, "src") {
        assert!(src.starts_with("/pictures/") && ask(&blog, src, &[]).0 == StatusCode::OK, "{src}");
    }
}

/// Returns the boxes of an AVIF of the general brand `mif1` (ISO/IEC 23008-12): item 1 is the picture, item 2 says where it was taken.
fn avif() -> Vec<u8> {
    let boxed = |kind: &[u8; 4], content: &[u8]| {
        let length = u32::try_from(content.len() + 8).expect("short");
        [&length.to_be_bytes(), kind.as_slice(), content].concat()
    };
    let item = |number: u8, kind: &[u8; 4]| boxed(b"infe", &[&[2, 0, 0, 0, 0, number, 0, 0], kind.as_slice(), b"\0"].concat());
    let items = boxed(b"iinf", &[&[0, 0, 0, 0, 0, 2], item(1, b"av01").as_slice(), &item(2, b"Exif")].concat());
    let whole = |pixels: u8| {
        // Numbers of one byte are not foreseen, so offsets and lengths have four.
        let place = |number: u8, at: u8, length: u8| [0, number, 0, 0, 0, 1, 0, 0, 0, at, 0, 0, 0, length];
        let places = boxed(b"iloc", &[&[0, 0, 0, 0, 0x44, 0, 0, 2], place(1, pixels, 8).as_slice(), &place(2, pixels + 8, 12)].concat());
        let meta = boxed(b"meta", &[&[0; 4], items.as_slice(), &places].concat());
        [boxed(b"ftyp", b"mif1\0\0\0\0mif1miafavif"), meta, boxed(b"mdat", b"\x32\x06PIXELSSECRET PLACE")].concat()
    };
    let pixels = whole(0).len() - 20;
    whole(u8::try_from(pixels).expect("short"))
}

#[test]
fn an_avif_under_a_general_name_does_not_say_where_it_was_taken() {
    let folder = Folder::of(&[("a.md", "# A\n\n![x](a.avif)")]);
    folder.write("a.avif", avif());
    // Too large to be held, and with a box of nobody knows what.
    let unused = [b"\0\x20\0\x08free".to_vec(), vec![b'S'; 2 << 20]].concat();
    folder.write("large.avif", [avif(), unused].concat());
    let blog = folder.blog();
    for path in ["/a.avif", "/large.avif"] {
        let sent = ask(&blog, path, &[]).2;
        assert!(has(&sent, "PIXELS") && !has(&sent, "SECRET") && !has(&sent, "SSSSSSSS"), "{path}");
    }
    let kept = folder.blog_with(BlogOptions { pictures: Some(false), ..BlogOptions::default() });
    assert!(has(&ask(&kept, "/a.avif", &[]).2, "SECRET"), "as the author wishes");
}

/// Whatever its size: a fault that only readers come upon is none that its author mends.
#[test]
fn a_picture_that_cannot_be_cleaned_is_told_and_the_rest_is_published() {
    let tiff = |bytes: usize| [b"II*\0\x08\0\0\0SECRET PLACE".to_vec(), vec![0; bytes]].concat();
    let settings = "[theme]\nlogo = \"small.jpg\"\n[authors.ann]\npicture = \"large.jpg\"\n";
    let folder = Folder::of(&[
        ("blog.toml", settings),
        ("a.md", "---\nauthor: ann\ncover: large.jpg\n---\n# A\n\n![A cat](large.jpg)\n\n![B](small.jpg) [B](small.jpg)"),
    ]);
    folder.write("small.jpg", tiff(100));
    folder.write("large.jpg", tiff(2 << 20));
    let large = [avif(), b"\0\x20\0\x08free".to_vec(), vec![0; 2 << 20]].concat();
    // Without the kinds of its items, nobody knows which of them are pixels.
    folder.write("large.avif", large.iter().map(|&byte| if byte == b'n' { b'x' } else { byte }).collect::<Vec<_>>());
    folder.write("good.avif", large);
    let blog = folder.blog();
    // Its boxes do not say how large it is, which keeps nothing back.
    let mut told = lines(blog.site().problems());
    told.retain(|told| !told.starts_with("good.avif: does not say how large it is"));
    let expected = ["large.avif: is damaged", "large.jpg: is not a picture of a known kind", "small.jpg: is not a picture of a known kind"];
    assert_eq!(told.len(), expected.len(), "{told:?}");
    for (told, expected) in told.iter().zip(expected) {
        assert!(told.starts_with(expected) && told.contains("so it is left out: its metadata cannot be told from its pixels"), "{told}");
    }
    let html = page(&blog, "/a/");
    assert!(
        html.contains("<p>A cat</p>") && !html.contains("large.jpg") && !html.contains("small.jpg"),
        "neither in the text, nor as a logo: {html}"
    );
    for (path, expected) in [("/small.jpg", 404), ("/large.jpg", 404), ("/large.avif", 404), ("/good.avif", 200)] {
        assert_eq!(ask(&blog, path, &[]).0.as_u16(), expected, "{path}");
    }
    assert!(rebuilt(&blog).problems.is_empty(), "nothing is told twice");
    assert_eq!(blog.site().problems().len(), 4);

    let into = tempfile::tempdir().expect("a folder");
    blog.export(&into.path().join("site"), "https://blog.test").expect("written");
    let written = |name: &str| into.path().join("site").join(name).exists();
    assert!(written("a/index.html") && written("good.avif") && !written("large.jpg") && !written("small.jpg"));

    folder.write("large.jpg", photo(300, 200, false));
    assert_eq!(lines(&rebuilt(&blog).mended).len(), 1);
    assert!(page(&blog, "/a/").contains("/large-300.jpg"));
}

/// Pictures of a theme have no variants, and readers need not learn where they were taken all the same.
#[test]
fn a_picture_of_the_theme_does_not_say_where_it_was_taken() {
    let folder = Folder::of(&[("a.md", "# A"), ("theme/custom.css", "body { background: url(sea.jpg) }")]);
    folder.write("theme/sea.jpg", photo(300, 200, false));
    let sent = |blog: &Blog| {
        let site = blog.site();
        let (path, _) = site.addresses().find(|(path, _)| path.starts_with("/theme/sea-")).expect("it is served");
        ask(blog, path, &[]).2
    };
    let blog = folder.blog();
    let picture = image::load_from_memory(&sent(&blog)).expect("decoded");
    assert!(picture.width() == 300 && !has(&sent(&blog), "SECRET"));
    folder.write("blog.toml", "pictures = false");
    rebuilt(&blog);
    assert!(has(&sent(&blog), "SECRET"), "as the author wishes");
    // What cannot be told apart from its pixels is left out and told.
    folder.write("blog.toml", "");
    folder.write("theme/sea.jpg", "");
    folder.write("theme/sky.avif", avif().iter().map(|&byte| if byte == b'l' { b'x' } else { byte }).collect::<Vec<_>>());
    let told = lines(&rebuilt(&blog).problems);
    assert!(
        told.len() == 1 && told[0].starts_with("theme/sky.avif: is damaged: its description cannot be read, so it is left out"),
        "{told:?}"
    );
}

/// What a head says may be all that there is of a picture: that is known only when its variants are made. A folder has no file then whose name says another
/// kind than its content is.
#[test]
fn a_folder_has_no_variants_of_a_picture_that_cannot_be_decoded() {
    let folder = Folder::of(&[("a.md", "# A\n\n![A cat](cat.jpg)")]);
    let photo = photo(1000, 700, false);
    // A frame of a kind that nobody decodes.
    let frame = photo.windows(2).position(|window| window == b"\xff\xc0").expect("a frame");
    folder.write("cat.jpg", [&photo[..=frame], b"\xc9", &photo[frame + 2..]].concat());
    let blog = folder.blog();
    assert!(page(&blog, "/a/").contains("/pictures/"));
    assert_eq!(blog.make_pictures(), 1);
    rebuilt(&blog);
    let told = lines(&blog.problems());
    assert!(told.len() == 1 && told[0].starts_with("cat.jpg: is damaged"), "{told:?}");
    let into = tempfile::tempdir().expect("a folder");
    blog.export(&into.path().join("site"), "https://blog.test").expect("written");
    let html = fs::read_to_string(into.path().join("site/a/index.html")).expect("a page");
    assert!(html.contains("src=\"/cat.jpg\"") && !html.contains("/pictures/"), "{html}");
    assert!(into.path().join("site/cat.jpg").exists() && !into.path().join("site/pictures").exists());
}

#[test]
fn what_an_author_photographed_does_not_say_where() {
    let folder = Folder::of(&[("a.md", "# A")]);
    let (small, mut large) = (photo(300, 200, false), photo(1400, 900, true));
    large.extend(vec![b'S'; 1024 * 1024]);
    large.extend(b"SECRET FILM");
    for (name, content) in [("small.jpg", &small), ("large.jpg", &large)] {
        folder.write(name, content);
        assert!(has(content, "SECRET"));
    }
    let blog = folder.blog();
    for (path, width, height) in [("/small.jpg", 300, 200), ("/large.jpg", 1400, 900)] {
        let (status, fields, sent) = ask(&blog, path, &[]);
        assert_eq!((status, fields[header::CONTENT_LENGTH].to_str().ok()), (StatusCode::OK, Some(sent.len().to_string().as_str())));
        assert!(!has(&sent, "SECRET") && !has(&sent, "SSSSSSSS"), "{path}");
        let picture = image::load_from_memory(&sent).expect("a picture");
        assert_eq!((picture.width(), picture.height()), (width, height));
    }
    // The files themselves are the author's.
    assert!(fs::read(folder.path().join("large.jpg")).expect("read") == large);
}

#[test]
fn nobody_can_have_pictures_made_that_no_page_shows() {
    let folder = Folder::of(&[("cat.md", "# Cat\n\n![](cat.jpg)"), ("drafts/new.md", "# New\n\n![](new.jpg)\n\n![](../cat.jpg)")]);
    folder.write("cat.jpg", photo(700, 500, false));
    folder.write("other.jpg", photo(710, 500, false));
    folder.write("drafts/new.jpg", photo(720, 500, false));
    let blog = folder.blog();
    let html = article(&blog, "/cat/");
    let (path, _) = choices(values(&html, "srcset")[0]).remove(0);
    assert_eq!(ask(&blog, &path, &[]).0, StatusCode::OK);
    for (from, to) in
        [("-480.", "-481."), ("-480.", "-2400."), (".webp", ".png"), (".webp", ".avif"), ("/cat-", "/dog-"), ("-480.webp", "")]
    {
        let path = path.replace(from, to);
        assert_eq!(ask(&blog, &path, &[]).0, StatusCode::NOT_FOUND, "{path}");
    }
    // A digest that nobody knows leads to what is there anyway; one that is none, or with a name that no page shows, leads nowhere.
    let digest = path.split('/').nth(2).expect("an address");
    let unknown = "0123456789abcdef";
    let (status, fields, _) = ask(&blog, &path.replace(digest, unknown), &[]);
    assert_eq!((status, fields[header::LOCATION].to_str().ok()), (StatusCode::FOUND, Some(path.as_str())));
    for name in ["new-480.webp", "other-480.webp", "cat-480", "cat.webp", "cat-x.webp", "cat-480.gif"] {
        assert_eq!(ask(&blog, &format!("/pictures/{unknown}/{name}"), &[]).0, StatusCode::NOT_FOUND, "{name}");
    }
    for none in ["0123456789abcdeg", "0123456789ABCDEF", "0123"] {
        assert_eq!(ask(&blog, &path.replace(digest, none), &[]).0, StatusCode::NOT_FOUND, "{none}");
    }
    let of_pictures: Vec<_> =
        blog.site().addresses().filter(|(path, _)| path.starts_with("/pictures/")).map(|(path, _)| path.to_owned()).collect();
    assert!(!of_pictures.is_empty() && of_pictures.iter().all(|path| path.contains("/cat-")), "{of_pictures:?}");
}

#[test]
fn colours_stand_in_for_a_picture_once_it_was_made_and_only_its_pages_change() {
    let folder = Folder::of(&[("cat.md", "# Cat\n\n![](cat.jpg)"), ("dog.md", "# Dog")]);
    folder.write("cat.jpg", photo(700, 500, false));
    let blog = folder.blog();
    assert!(!article(&blog, "/cat/").contains("data:"));
    assert_eq!(blog.make_pictures(), 1);
    let changed = rebuilt(&blog).paths;
    assert!(changed.contains(&"/cat/".to_owned()) && !changed.contains(&"/dog/".to_owned()), "{changed:?}");
    let html = article(&blog, "/cat/");
    let style = values(&html, "style").remove(0);
    assert!(style.starts_with("background:url(data:image/webp;base64,") && style.len() < 280, "{style}");
    assert!(rebuilt(&blog).is_empty());
}

#[test]
fn another_picture_under_the_same_name_has_other_addresses() {
    let folder = Folder::of(&[("cat.md", "# Cat\n\n![](cat.jpg)"), ("dog.md", "# Dog")]);
    folder.write("cat.jpg", photo(700, 500, false));
    let blog = folder.blog();
    let before = choices(values(&article(&blog, "/cat/"), "srcset")[0]);
    folder.write("cat.jpg", photo(700, 501, false));
    let changed = rebuilt(&blog).paths;
    let after = choices(values(&article(&blog, "/cat/"), "srcset")[0]);
    for ((old, _), (new, _)) in before.iter().zip(&after) {
        assert!(old != new && changed.contains(old), "what is stored of the old one is purged: {changed:?}");
        assert_eq!(ask(&blog, new, &[]).0, StatusCode::OK);
        // Pages with the old address are still in caches and feed readers, and browsers were told that it never changes.
        let (status, fields, _) = ask(&blog, old, &[]);
        assert_eq!((status, fields[header::LOCATION].to_str().ok()), (StatusCode::FOUND, Some(new.as_str())));
        assert_eq!(fields[header::CACHE_CONTROL], "public, max-age=60");
    }
    folder.remove("cat.jpg");
    assert!(after.iter().all(|(path, _)| rebuilt(&blog).paths.contains(path) || ask(&blog, path, &[]).0 == StatusCode::NOT_FOUND));
}

/// An old address leads to the width that is nearest, and to a form that whoever asked for the old one reads.
#[test]
fn the_address_of_a_replaced_picture_leads_to_the_nearest_variant_of_the_new_one() {
    let folder = Folder::of(&[("a/one.md", "# One\n\n![](cat.jpg)"), ("b/two.md", "# Two\n\n![](cat.jpg)")]);
    folder.write("a/cat.jpg", photo(1000, 600, false));
    folder.write("b/cat.jpg", photo(900, 600, false));
    let blog = folder.blog();
    let first = |path: &str| values(&article(&blog, path), "src").remove(0).to_owned();
    let (one, two) = (first("/one/"), first("/two/"));
    assert!(one.ends_with("/cat-1000.jpg") && two.ends_with("/cat-900.jpg"), "{one} {two}");
    // A PNG takes the place of the photograph. Which of two pictures of one name was at an address, the blog remembers.
    folder.write("a/cat.jpg", png(700, 400));
    rebuilt(&blog);
    let new = first("/one/");
    for (old, expected) in [
        (one.clone(), new.clone()),
        (one.replace("-1000.jpg", "-480.jpg"), new.replace("-700.png", "-480.png")),
        (one.replace("-1000.jpg", "-800.webp"), new.replace("-700.png", "-700.webp")),
    ] {
        let (status, fields, _) = ask(&blog, &old, &[]);
        assert_eq!((status, fields[header::LOCATION].to_str().ok()), (StatusCode::FOUND, Some(expected.as_str())), "{old}");
        assert_eq!(ask(&blog, &expected, &[]).0, StatusCode::OK);
    }
    assert_eq!(ask(&blog, &two, &[]).0, StatusCode::OK);
    // After a restart nobody knows it, and a wrong picture is worse than none.
    assert_eq!(ask(&folder.blog(), &one, &[]).0, StatusCode::NOT_FOUND);
}

/// A WebP of the author has no other form, and a small one no choice at all: its address has to be there all the same.
#[test]
fn a_small_webp_has_the_address_that_its_page_names() {
    let folder = Folder::of(&[("a.md", "# A\n\n![](cat.webp)")]);
    let mut webp = Vec::new();
    let picture = image::load_from_memory(&png(300, 200)).expect("decoded");
    picture.write_to(&mut Cursor::new(&mut webp), ImageFormat::WebP).expect("encoded");
    folder.write("cat.webp", &webp);
    let blog = folder.blog();
    let html = article(&blog, "/a/");
    let src = values(&html, "src").remove(0);
    assert_eq!((ask(&blog, src, &[]).0, src.ends_with("/cat-300.webp")), (StatusCode::OK, true), "{src}");
}

/// A face of an inch does not load a photograph of a wall's size. The finest screens have three pixels for one of the page.
#[test]
fn faces_and_logos_are_sent_in_about_the_size_in_which_they_are_shown() {
    let settings = "author = \"Ann\"\n[theme]\nlogo = \"logo.png\"\n[authors.Ann]\npicture = \"/people/ann%20b.jpg\"\n\
                    [authors.Bob]\npicture = \"bob.png\"\n";
    let folder = Folder::of(&[("blog.toml", settings), ("a.md", "# A\n\nText."), ("b.md", "---\nauthor: Bob\n---\n# B\n\nText.")]);
    folder.write("people/ann b.jpg", photo(1200, 800, false));
    folder.write("bob.png", png(90, 120));
    folder.write("logo.png", png(2000, 300));
    let blog = folder.blog();
    assert_eq!(lines(blog.site().problems()), Vec::<String>::new());
    let shown = |address: &str, form| {
        let (status, fields, content) = ask(&blog, address, &[]);
        assert_eq!((status, image::guess_format(&content).ok()), (StatusCode::OK, Some(form)), "{address}");
        assert_eq!(fields[header::CACHE_CONTROL], "public, max-age=31536000, immutable");
        let picture = image::load_from_memory(&content).expect("decoded");
        (picture.width(), picture.height())
    };
    let html = page(&blog, "/a/");
    let (brand, _) = html.split_once("<main").expect("a page");
    // It is 36 pixels high, so 108 at most: of its widths, 800 is the first that has as many.
    assert_eq!(shown(values(brand, "srcset")[0], ImageFormat::WebP), (800, 120));
    assert_eq!(shown(values(brand, "src")[0], ImageFormat::Png), (800, 120));
    // 2000 by 300 is 240 by 36.
    assert!(brand.contains(" width=\"240\" height=\"36\">"), "{brand}");
    let faces = [
        ("/a/", 56, ImageFormat::Jpeg, (480, 320)),
        ("/authors/ann/", 72, ImageFormat::Jpeg, (480, 320)),
        ("/b/", 56, ImageFormat::Png, (90, 120)),
    ];
    for (path, side, own, size) in faces {
        let html = article(&blog, path);
        assert_eq!(shown(values(&html, "srcset")[0], ImageFormat::WebP), size, "{path}");
        assert_eq!(shown(values(&html, "src")[0], own), size, "{path}");
        assert!(html.contains(&format!(" alt=\"\" width=\"{side}\" height=\"{side}\"")), "{html}");
    }
    // Without variants, the files stand for themselves.
    folder.write("blog.toml", format!("pictures = false\n{settings}"));
    rebuilt(&blog);
    let html = page(&blog, "/a/");
    assert!(html.contains("src=\"/people/ann%20b.jpg\"") && html.contains("src=\"/logo.png\"") && !html.contains("<source"), "{html}");
}

#[test]
fn what_moves_or_is_drawn_is_shown_as_it_is() {
    let svg = "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 40 30'><script>alert(1)</script></svg>";
    let folder = Folder::of(&[("a.md", "# A\n\n![](b.svg) ![](c.gif)\n\n<img src=\"cat.jpg\">"), ("b.svg", svg)]);
    let mut gif = Vec::new();
    let mut encoder = image::codecs::gif::GifEncoder::new(&mut gif);
    for shade in [1, 200] {
        let frame = image::RgbaImage::from_pixel(30, 20, image::Rgba([shade, 0, 0, 255]));
        encoder.encode_frame(image::Frame::new(frame)).expect("encoded");
    }
    drop(encoder);
    folder.write("c.gif", &gif);
    folder.write("cat.jpg", photo(700, 500, false));
    let blog = folder.blog();
    let html = article(&blog, "/a/");
    assert_eq!(values(&html, "src"), ["/b.svg", "/c.gif", "cat.jpg"], "raw HTML is the author's own");
    assert_eq!((values(&html, "width"), values(&html, "height")), (vec!["40", "30"], vec!["30", "20"]));
    assert!(!html.contains("srcset"));
    assert!(ask(&blog, "/c.gif", &[]).2 == gif);
    // Opened by itself, a drawing is a document of the blog: what came with it from elsewhere must not run there.
    let (_, fields, content) = ask(&blog, "/b.svg", &[]);
    let policy = fields[header::CONTENT_SECURITY_POLICY].to_str().expect("ascii");
    assert!(policy.contains("script-src 'none'") && policy.contains("sandbox"), "{policy}");
    assert!(content == svg.as_bytes());
}

#[test]
fn covers_are_pictures_of_the_folder_or_of_elsewhere() {
    let folder = Folder::of(&[
        ("posts/a.md", "+++\ncover = \"cat.jpg\"\ncover_alt = \"A cat\"\n+++\n# A"),
        ("posts/b.md", "+++\ncover = \"/posts/cat.jpg\"\n+++\n# B"),
        ("posts/c.md", "+++\ncover = \"https://other.test/x.png\"\n+++\n# C"),
        ("posts/d.md", "+++\ncover = \"gone.jpg\"\n+++\n# D"),
    ]);
    folder.write("posts/cat.jpg", photo(700, 500, false));
    let blog = folder.blog();
    let problems = lines(blog.site().problems());
    assert!(problems.len() == 1 && problems[0].starts_with("posts/d.md:") && problems[0].contains("\"gone.jpg\""), "{problems:?}");
    let pictures = blog.site().addresses().filter(|(path, _)| path.starts_with("/pictures/")).count();
    assert_eq!(pictures, 4, "two widths in two forms");
}

#[test]
fn a_bad_picture_is_told_with_its_name_and_the_rest_lives() {
    let folder = Folder::of(&[("a.md", "# A\n\n![](half.png)\n\n![](wide.png)\n\n![](bomb.png)\n\n![](good.jpg)")]);
    let mut half = png(600, 400);
    let middle = half.len() / 2;
    half[middle..].iter_mut().take(200).for_each(|byte| *byte = 0);
    folder.write("half.png", &half);
    folder.write("wide.png", png(50_000, 2));
    let mut bomb = png(20, 20);
    bomb[16..24].copy_from_slice(&[60_000_u32.to_be_bytes(), 60_000_u32.to_be_bytes()].concat());
    folder.write("bomb.png", &bomb);
    folder.write("good.jpg", photo(500, 400, false));
    let blog = folder.blog();
    let html = article(&blog, "/a/");
    assert!(html.contains("src=\"/wide.png\"") && html.contains("src=\"/bomb.png\"") && html.contains("/good-500.jpg"), "{html}");
    let problems = lines(blog.site().problems());
    for (name, why) in [("wide.png", "50000 × 2 pixels"), ("bomb.png", "60000 × 60000 pixels")] {
        assert!(problems.iter().any(|line| line.starts_with(name) && line.contains(why)), "{problems:?}");
    }

    // What is wrong with the other one shows when it is made: then the author's own file stands for it.
    let path = values(&html, "src").remove(0).to_owned();
    assert!(path.starts_with("/pictures/"), "{path}");
    let (status, fields, content) = ask(&blog, &path, &[]);
    assert_eq!((status, fields[header::CACHE_CONTROL].as_bytes()), (StatusCode::OK, &b"no-store"[..]));
    assert!(!fields.contains_key(header::ETAG) && content.starts_with(b"\x89PNG"));
    let told = rebuilt(&blog);
    assert!(lines(&told.problems).iter().any(|line| line.starts_with("half.png")), "{told:?}");
    assert!(article(&blog, "/a/").contains("src=\"/half.png\" alt=\"\" width=\"600\" height=\"400\""));
}

/// `seawall check` has to tell what makes no picture: nobody should have to see it first.
#[test]
fn broken_pictures_are_told_before_anybody_asks_for_them() {
    let text = "# A\n\n![](empty.png) ![](page.jpg) ![](cut.jpg) ![](cut.png)";
    let folder =
        Folder::of(&[("a.md", text), ("page.jpg", "<!doctype html><title>404</title>"), ("empty.png", ""), ("later.svg", "<svg/>")]);
    let (jpeg, whole_png) = (photo(900, 600, false), png(600, 400));
    let cut_jpeg = &jpeg[..jpeg.len() / 2];
    folder.write("cut.jpg", cut_jpeg);
    folder.write("cut.png", &whole_png[..whole_png.len() / 2]);
    folder.write("good.jpg", &jpeg);
    let blog = folder.blog();
    let told = lines(blog.site().problems());
    let expected = [
        ("cut.jpg: ends too early", "copy it here again"),
        ("cut.png: ends too early", "copy it here again"),
        ("empty.png: is empty", "copy the picture here again"),
        ("page.jpg: is not a picture", "save it as one of these"),
    ];
    assert_eq!(told.len(), expected.len(), "{told:?}");
    for (line, (start, remedy)) in told.iter().zip(expected) {
        assert!(line.starts_with(start) && line.contains(remedy), "{line}");
    }
    assert!(blog.site().problems().iter().all(blog::Problem::is_warning), "the text is published nevertheless");
    // What is left of them is sent under their own names, and still does not say where it was taken.
    let html = article(&blog, "/a/");
    assert_eq!(values(&html, "src"), ["/empty.png", "/page.jpg", "/cut.jpg", "/cut.png"]);
    let sent = ask(&blog, "/cut.jpg", &[]).2;
    assert!(has(cut_jpeg, "SECRET") && !has(&sent, "SECRET") && cut_jpeg.ends_with(&sent[sent.len() - 1000..]));

    folder.write("cut.jpg", &jpeg);
    let mended = rebuilt(&blog);
    assert_eq!((lines(&mended.mended), mended.problems.len()), (told[..1].to_vec(), 0));
    assert!(article(&blog, "/a/").contains("/cut-900.jpg"));
}

#[test]
fn pictures_can_be_left_as_they_are() {
    let folder = Folder::of(&[("blog.toml", "pictures = false"), ("cat.md", "# Cat\n\n![](cat.jpg)")]);
    let original = photo(700, 500, false);
    folder.write("cat.jpg", &original);
    let blog = folder.blog();
    assert!(article(&blog, "/cat/").contains("<img src=\"/cat.jpg\" alt=\"\" width=\"700\" height=\"500\" fetchpriority=\"high\""));
    assert!(ask(&blog, "/cat.jpg", &[]).2 == original);
    folder.write("blog.toml", "pictures = true");
    rebuilt(&blog);
    assert!(article(&blog, "/cat/").contains("srcset=") && !has(&ask(&blog, "/cat.jpg", &[]).2, "SECRET"));
}

#[test]
fn feeds_name_one_picture_by_its_whole_address() {
    let folder = Folder::of(&[("cat.md", "# Cat\n\n![x](cat.jpg)")]);
    folder.write("cat.jpg", photo(1700, 500, false));
    let options = BlogOptions { base_url: Some("https://blog.test".to_owned()), ..BlogOptions::default() };
    let feed = page(&folder.blog_with(options), "/feed.xml");
    let img = feed.split_once("&lt;img").map(|(_, rest)| rest.split_once("&gt;").expect("whole").0).expect("a picture");
    assert!(img.contains("https://blog.test/pictures/") && img.contains("/cat-1200.jpg") && !img.contains("srcset"), "{img}");
}
