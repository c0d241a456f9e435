//! Measures a large blog: 10,000 posts with 3,000 pictures and 1,000 tags.
//!
//! ```text
//! cargo run --profile try -p blog --example ten_thousand -- /tmp/ten-thousand
//! ```
//!
//! Writes the posts to the folder, if it is not there yet, and prints how long the build takes, how much memory it needs, and what an edit
//! costs: until it is visible, and how many texts and addresses it concerns. `posts/` and `pictures/` are what other generators can be given,
//! too.

use std::{
    env, fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::mpsc::{Receiver, sync_channel},
    time::{Duration, Instant, SystemTime},
};

use blog::{Blog, BlogOptions, Change, Rebuilt, watch};

const POSTS: usize = 10_000;
const PICTURES: usize = 3_000;
const TAGS: u64 = 1_000;

const WORDS: [&str; 40] = [
    "the",
    "sea",
    "wall",
    "holds",
    "water",
    "back",
    "stone",
    "by",
    "stone",
    "and",
    "nobody",
    "remembers",
    "who",
    "laid",
    "first",
    "tide",
    "comes",
    "twice",
    "a",
    "day",
    "with",
    "wind",
    "from",
    "west",
    "while",
    "gulls",
    "watch",
    "harbour",
    "where",
    "boats",
    "wait",
    "for",
    "morning",
    "light",
    "that",
    "turns",
    "grey",
    "waves",
    "into",
    "silver",
];

/// Numbers that are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }

    fn words(&mut self, count: usize) -> String {
        let word = |_| WORDS[usize::try_from(self.next(WORDS.len() as u64)).unwrap_or_default()];
        (0..count).map(word).collect::<Vec<_>>().join(" ")
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = env::args().nth(1).map_or_else(|| env::temp_dir().join("ten-thousand"), PathBuf::from);
    let mut out = io::stdout();
    if !folder.join("posts").exists() {
        write_posts(&folder)?;
    }

    let start = Instant::now();
    let blog = Blog::open(&folder, BlogOptions::default(), now())?;
    writeln!(
        out,
        "built      {:>8.2} s, {} addresses, {} problems",
        start.elapsed().as_secs_f64(),
        blog.site().addresses().count(),
        blog.site().problems().len()
    )?;
    writeln!(out, "CPU time   {:>8.2} s", cpu()?)?;
    writeln!(out, "memory     {:>8} MiB, at most {} MiB", status("VmRSS")? / 1024, status("VmHWM")? / 1024)?;

    let start = Instant::now();
    let rebuilt = blog.rebuild(now())?;
    told(&mut out, "no change", start.elapsed(), &rebuilt)?;

    let (tell, changes) = sync_channel(8);
    let _watcher = watch(&blog, move |change| {
        let _ = tell.send(change);
    })?;
    let post = folder.join("posts/post-05000.md");
    let text = fs::read_to_string(&post)?;
    edit(&mut out, "a word", &changes, || fs::write(&post, format!("{text}\n\nOne more paragraph.\n")))?;
    edit(&mut out, "a title", &changes, || fs::write(&post, text.replace("title: \"", "title: \"Edited: ")))?;
    let new = folder.join("posts/new.md");
    edit(&mut out, "a new post", &changes, || fs::write(&new, "---\ntitle: New\ndate: 2026-01-01\ntags: [tag-1, tag-2]\n---\nText."))?;
    edit(&mut out, "it goes", &changes, || fs::remove_file(&new))?;
    edit(&mut out, "a mistake", &changes, || fs::write(&post, "---\ndate: soon\n---\n# Hi"))?;
    edit(&mut out, "it is mended", &changes, || fs::write(&post, &text))?;
    let settings = folder.join("blog.toml");
    let old = fs::read_to_string(&settings)?;
    edit(&mut out, "a setting", &changes, || fs::write(&settings, format!("{old}footer = \"Another line\"\n")))?;
    fs::write(&settings, old)?;
    writeln!(out, "memory     {:>8} MiB, at most {} MiB", status("VmRSS")? / 1024, status("VmHWM")? / 1024)?;
    Ok(())
}

/// Edits the folder, and tells how long readers wait for it.
fn edit(
    out: &mut impl io::Write,
    what: &str,
    changes: &Receiver<Change>,
    edit: impl FnOnce() -> io::Result<()>,
) -> Result<(), Box<dyn std::error::Error>> {
    let start = Instant::now();
    edit()?;
    match changes.recv_timeout(Duration::from_mins(1))? {
        Change::Published(rebuilt) => told(out, what, start.elapsed(), &rebuilt)?,
        Change::Failed(error) => return Err(error.into()),
    }
    Ok(())
}

fn told(out: &mut impl io::Write, what: &str, took: Duration, rebuilt: &Rebuilt) -> io::Result<()> {
    let Rebuilt { paths, read, rendered, .. } = rebuilt;
    let (took, cpu) = (took.as_secs_f64(), cpu()?);
    writeln!(
        out,
        "{what:<12}{took:>7.2} s, {read} read, {rendered} rendered, {} addresses changed; {cpu:.2} s of CPU time so far",
        paths.len()
    )
}

/// Returns the CPU time of this process in seconds: on a busy machine it says more than the clock.
fn cpu() -> io::Result<f64> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |index: usize| fields.get(index).and_then(|field| field.parse::<f64>().ok()).unwrap_or_default();
    // User and system, in hundredths of a second on every Linux.
    Ok((ticks(11) + ticks(12)) / 100.0)
}

/// Returns a line of what the kernel says of this process, in KiB.
fn status(key: &str) -> io::Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
    Ok(line.and_then(|line| line.trim().split(' ').next()?.parse().ok()).unwrap_or_default())
}

#[expect(clippy::disallowed_methods, reason = "posts that lie ahead wait for the machine's time")]
fn now() -> semantics::Timestamp {
    SystemTime::now().into()
}

fn write_posts(folder: &Path) -> io::Result<()> {
    let (posts, pictures) = (folder.join("posts"), folder.join("pictures"));
    fs::create_dir_all(&posts)?;
    fs::create_dir_all(&pictures)?;
    // How long pictures take is another question, and they come later, one by one.
    fs::write(folder.join("blog.toml"), "title = \"Ten thousand\"\npictures = false\n")?;
    let mut numbers = Numbers(1);
    for index in 0..PICTURES {
        fs::write(pictures.join(format!("picture-{index:04}.png")), picture(&mut numbers))?;
    }
    for index in 0..POSTS {
        fs::write(posts.join(format!("post-{index:05}.md")), post(index, &mut numbers))?;
    }
    Ok(())
}

fn post(index: usize, numbers: &mut Numbers) -> String {
    let (year, month, day) = (1999 + index / 400, index % 400 / 34 + 1, index % 28 + 1);
    let mut text = format!("---\ntitle: \"{}\"\ndate: {year}-{month:02}-{day:02}\ntags:\n", numbers.words(5));
    // A few tags are on many posts, and most are on few.
    for _ in 0..=numbers.next(4) {
        let most = 1 + numbers.next(TAGS);
        text += &format!("  - tag-{}\n", numbers.next(most));
    }
    text += "---\n";
    for part in 0..3 {
        text += &format!("\n## {}\n\n", numbers.words(4));
        for _ in 0..2 {
            text += &format!("{}, *{}* and [{}](https://example.org/{index}).\n\n", numbers.words(60), numbers.words(2), numbers.words(3));
        }
        text += &format!("- {}\n- **{}**\n", numbers.words(8), numbers.words(6));
        if part == 1 && index > 0 {
            text += &format!("\nAs [before](post-{:05}.md).\n", index - 1);
        }
    }
    if index.is_multiple_of(5) {
        text += "\n```rust\nfn main() {\n    let tide = [1, 2, 3].iter().map(|n| n * 2).collect::<Vec<_>>();\n    println!(\"{tide:?}\");\n}\n```\n";
    }
    if index % 10 < 3 {
        text += &format!("\n![{}](../pictures/picture-{:04}.png)\n", numbers.words(3), index / 10 * 3 + index % 10);
    }
    text
}

/// Makes a small picture of noise, 40 by 30 pixels in shades of grey, without compression.
fn picture(numbers: &mut Numbers) -> Vec<u8> {
    const WIDTH: u32 = 40;
    const HEIGHT: u32 = 30;
    let mut lines = Vec::new();
    for _ in 0..HEIGHT {
        lines.push(0);
        lines.extend((0..WIDTH).map(|_| u8::try_from(numbers.next(256)).unwrap_or_default()));
    }
    let length = u16::try_from(lines.len()).unwrap_or_default();
    let mut data = vec![0x78, 0x01, 0x01];
    data.extend(length.to_le_bytes());
    data.extend((!length).to_le_bytes());
    data.extend(&lines);
    data.extend(adler32(&lines).to_be_bytes());
    let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
    let head = [&WIDTH.to_be_bytes()[..], &HEIGHT.to_be_bytes(), &[8, 0, 0, 0, 0]].concat();
    for (kind, content) in [(b"IHDR", head), (b"IDAT", data), (b"IEND", Vec::new())] {
        png.extend(u32::try_from(content.len()).unwrap_or_default().to_be_bytes());
        let chunk = [&kind[..], &content].concat();
        png.extend(&chunk);
        png.extend(crc32(&chunk).to_be_bytes());
    }
    png
}

fn adler32(bytes: &[u8]) -> u32 {
    let (a, b) = bytes.iter().fold((1, 0), |(a, b), byte| {
        let a = (a + u32::from(*byte)) % 65_521;
        (a, (b + a) % 65_521)
    });
    b << 16 | a
}

fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
    !bytes.iter().fold(u32::MAX, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), |crc, _| step(crc)))
}
