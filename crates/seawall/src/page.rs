//! Pages in `doc/`: parts that are made from the code, so that they cannot disagree, and links.

/// Checks that the part of `doc/FILE` between `<!-- begin NAME -->` and `<!-- end NAME -->` is `expected`. After a change of the code,
/// `SEAWALL_WRITE_MANUAL=1 cargo test -p seawall page_in_doc` writes it again.
pub(crate) fn holds(file: &str, name: &str, expected: &str) {
    let path = format!("{}/../../doc/{file}", env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(&path).expect("a page in doc");
    let (begin, end) = (format!("<!-- begin {name} -->\n"), format!("<!-- end {name} -->"));
    let (before, rest) = page.split_once(&begin).expect("a beginning");
    let (part, after) = rest.split_once(&end).expect("an end");
    if part == expected {
        return;
    }
    if std::env::var_os("SEAWALL_WRITE_MANUAL").is_some() {
        std::fs::write(path, format!("{before}{begin}{expected}{end}{after}")).expect("the page can be written");
        return;
    }
    panic!("doc/{file} is not what the code says: run this test with SEAWALL_WRITE_MANUAL=1");
}

/// Returns the pages in the root of the repository, in `doc/` and in `doc/inside/`.
fn pages() -> Vec<std::path::PathBuf> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let all = [root.clone(), root.join("doc"), root.join("doc/inside")]
        .into_iter()
        .flat_map(|folder| std::fs::read_dir(folder).expect("a folder"));
    all.map(|entry| entry.expect("an entry").path()).filter(|path| path.extension().is_some_and(|end| end == "md")).collect()
}

/// Returns the anchor that GitHub makes of a heading: small letters, no punctuation, hyphens for spaces.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

#[test]
fn every_link_in_the_pages_leads_somewhere() {
    let mut links = 0;
    for page in pages() {
        let text = std::fs::read_to_string(&page).expect("a page");
        // What stands in backticks shows how links are written.
        let text: String = text.lines().flat_map(|line| line.split('`').step_by(2).chain(["\n"])).collect();
        for (at, _) in text.match_indices("](") {
            let Some((link, _)) = text[at + 2..].split_once(')') else { continue };
            if link.contains("://") || link.contains(char::is_whitespace) {
                continue;
            }
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { page.clone() } else { page.with_file_name(file) };
            assert!(target.exists(), "{}: {link}", page.display());
            if !heading.is_empty() {
                let text = std::fs::read_to_string(&target).expect("a page");
                let mut headings =
                    text.lines().filter_map(|line| line.strip_prefix('#')).map(|line| anchor(line.trim_start_matches('#').trim()));
                assert!(headings.any(|anchor| anchor == heading), "{}: {link}", page.display());
            }
            links += 1;
        }
    }
    assert!(links > 50, "{links}: are the pages where they were?");
}

/// A path in backticks that begins with `crates/` is meant to be opened.
#[test]
fn every_file_that_the_pages_name_is_there() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut paths = 0;
    for page in pages().into_iter().filter(|page| !page.ends_with("CHANGELOG.md")) {
        let text = std::fs::read_to_string(&page).expect("a page");
        for path in text.lines().flat_map(|line| line.split('`').skip(1).step_by(2)) {
            let is_path = path.starts_with("crates/") && !path.contains(|c: char| c.is_whitespace() || "*,{".contains(c));
            if is_path {
                assert!(root.join(path).exists(), "{}: {path}", page.display());
                paths += 1;
            }
        }
    }
    assert!(paths > 100, "{paths}: are the paths where they were?");
}
