//! The texts of the folder and what was made of them: a change reads and renders no more than what it concerns.
//!
//! A file is read when its [`Stamp`] changes, and rendered when its content changes or a link in it leads elsewhere than before. A mistake
//! concerns its file alone: the file is left out, or keeps its last good version as long as the program runs.

use std::{
    collections::{BTreeMap, HashMap},
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::Arc,
    time::SystemTime,
};

use jiff::Timestamp;

use crate::{
    digest::fingerprint,
    error::{Problem, Severity},
    folder::{Folder, Listed, ReadFailure, Stamp},
    front_matter::Moment,
    links::LeftOutText,
    markdown::{OutLink, Unpublished},
    model::Library,
    parallel,
    post::{Head, Manner, Post, Visibility, WrongHead},
    targets::{LinkTargets, ResolvedLinks, Target, Targets},
};

/// All Markdown files, by path in the folder.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    remembered: BTreeMap<String, RememberedText>,
}

/// One Markdown file and what was made of it.
#[derive(Debug)]
struct RememberedText {
    stamp: Stamp,
    /// Whether another version of the file would have another stamp.
    is_settled: bool,
    digest: u128,
    modified: Timestamp,
    head: Result<Arc<Head>, WrongHead>,
    rendering: Option<Rendering>,
    /// The last version that readers saw.
    good: Option<Arc<Post>>,
}

/// A text that was rendered, and what that depended on beside its own content.
#[derive(Debug)]
struct Rendering {
    manner: Manner,
    is_public: bool,
    asked: Arc<ResolvedLinks>,
    /// The post with its warnings, or what is wrong.
    result: Result<(Arc<Post>, Vec<Problem>), Unpublished>,
}

/// The texts as they are published.
#[derive(Debug, Default)]
pub(crate) struct Published {
    pub(crate) library: Library,
    pub(crate) problems: Vec<Problem>,
    /// The links of those texts that readers do not see as they are, because something is wrong with them.
    pub(crate) left_out: Vec<LeftOutText>,
    /// The time at which the next post becomes due.
    pub(crate) next_due: Option<Timestamp>,
    /// The number of texts that were rendered.
    pub(crate) rendered: usize,
}

/// Says what reading a file has found.
enum ReadOutcome {
    Gone,
    /// The content is what it was.
    Same,
    Read(u128, Result<Arc<Head>, WrongHead>),
    Wrong(Problem),
}

/// Says where a text will be.
struct Plan {
    name: String,
    path: String,
    standing: Visibility,
    is_public: bool,
    /// Whether another text has its address.
    is_lost: bool,
}

/// A text that has to be rendered.
struct Job {
    name: String,
    head: Arc<Head>,
    standing: Visibility,
    is_public: bool,
    date: Moment,
}

impl Texts {
    /// Reads the files of `folder` that have changed, by `read`. Returns the number of those whose content is another. `clock` is the time of
    /// the file system.
    pub(crate) fn read(
        &mut self,
        folder: &Folder,
        read: impl Fn(&Listed) -> Result<String, ReadFailure> + Sync,
        now: Timestamp,
        clock: SystemTime,
    ) -> usize {
        let mut before = mem::take(&mut self.remembered);
        let is_known = |file: &&Listed| before.get(&file.name).is_some_and(|known| known.is_settled && known.stamp == file.stamp);
        let (same, other): (Vec<&Listed>, Vec<&Listed>) = folder.texts.iter().partition(is_known);
        let found = parallel::map(&other, |file| match read(file) {
            Err(ReadFailure::Gone) => ReadOutcome::Gone,
            Err(ReadFailure::Wrong(problem)) => ReadOutcome::Wrong(problem),
            Ok(text) => {
                let digest = fingerprint(&text);
                if before.get(&file.name).is_some_and(|known| known.digest == digest) {
                    return ReadOutcome::Same;
                }
                ReadOutcome::Read(digest, Head::read(&file.name, &text, file.is_draft).map(Arc::new))
            }
        });
        let mut count = 0;
        for (file, found) in other.into_iter().zip(found) {
            let known = before.remove(&file.name);
            // A text without a date has that of its file, which must not lie ahead.
            let modified = Timestamp::try_from(file.modified).unwrap_or_default().min(now);
            let (is_settled, stamp) = (!file.stamp.is_fresh(clock), file.stamp);
            let fresh = |known: Option<RememberedText>, digest, is_settled, head: Result<Arc<Head>, _>| {
                let good = known.and_then(|known| known.good);
                RememberedText { stamp, is_settled, digest, modified, head, rendering: None, good }
            };
            let text = match (found, known) {
                (ReadOutcome::Gone | ReadOutcome::Same, None) => continue,
                // What it is now is seen at the next look.
                (ReadOutcome::Gone, Some(known)) => RememberedText { is_settled: false, ..known },
                (ReadOutcome::Same, Some(known)) => RememberedText { stamp, is_settled, modified, ..known },
                (ReadOutcome::Wrong(problem), known) => fresh(known, 0, false, Err(vec![problem].into())),
                (ReadOutcome::Read(digest, head), known) => {
                    count += 1;
                    fresh(known, digest, is_settled, head)
                }
            };
            self.remembered.insert(file.name.clone(), text);
        }
        for file in same {
            self.remembered.extend(before.remove_entry(&file.name));
        }
        // What lies in a folder that cannot be listed is not gone. The folder is told about.
        let is_hidden = |name: &str| folder.unreadable.iter().any(|prefix| name.starts_with(prefix.as_str()));
        let hidden = before.into_iter().filter(|(name, _)| is_hidden(name));
        self.remembered.extend(hidden.map(|(name, known)| {
            (name, RememberedText { is_settled: false, digest: 0, head: Err(WrongHead::default()), rendering: None, ..known })
        }));
        count
    }

    /// Publishes what was read, as of `now`: renders what has to be rendered. With `drafts`, texts that are not for readers are published,
    /// too. `files` are the other files to which links can lead.
    pub(crate) fn publish(&mut self, files: &HashMap<String, Target>, manner: &Manner, drafts: bool, now: Timestamp) -> Published {
        let mut published = Published::default();
        let plans = self.plans(files, drafts, now, &mut published);
        let target = |plan: &Plan| Target {
            address: plan.path.clone(),
            is_published: plan.is_public,
            is_left_out: false,
            version: 0,
            picture: None,
        };
        let texts = plans.iter().map(|plan| (plan.name.clone(), target(plan))).collect();
        let known = Arc::new(LinkTargets { texts, files: files.clone() });

        let jobs: Vec<Job> = plans.iter().filter_map(|plan| self.job(plan, manner, &known)).collect();
        published.rendered = jobs.len();
        let renderings = parallel::map(&jobs, |job| job.run(manner, &known));
        for (job, rendering) in jobs.into_iter().zip(renderings) {
            if let Some(text) = self.remembered.get_mut(&job.name) {
                text.rendering = Some(rendering);
            }
        }
        for plan in plans {
            if let Some(text) = self.remembered.get_mut(&plan.name) {
                text.publish(&plan, &mut published);
            }
        }
        let Library { posts, drafts, .. } = &mut published.library;
        for texts in [posts, drafts] {
            texts.sort_by(|a, b| b.date.instant.cmp(&a.date.instant).then_with(|| a.path.cmp(&b.path)));
        }
        published
    }

    /// Decides where every text will be. Of two with the same address, the older one gets it, as readers have its links; then the first by name.
    fn plans(&self, files: &HashMap<String, Target>, drafts: bool, now: Timestamp, published: &mut Published) -> Vec<Plan> {
        let mut taken: HashMap<String, String> = files.iter().map(|(name, target)| (target.address.clone(), name.clone())).collect();
        let mut plans = Vec::with_capacity(self.remembered.len());
        let mut claims: Vec<(Timestamp, usize)> = Vec::with_capacity(self.remembered.len());
        for (name, text) in &self.remembered {
            let (path, standing) = match (&text.head, &text.good) {
                (Ok(head), _) => (head.path.clone(), head.standing(now)),
                (Err(_), Some(good)) => (good.path.clone(), good.standing.at(now)),
                (Err(_), None) => (Head::likely_path(name), Visibility::Published),
            };
            if let Visibility::Due(due) = standing {
                published.next_due = Some(published.next_due.map_or(due, |next| next.min(due)));
            }
            let date = match (&text.head, &text.good) {
                (Ok(head), _) => Some(head.date(text.modified)),
                (Err(_), Some(good)) => Some(good.date),
                (Err(_), None) => None,
            };
            claims.extend(date.map(|date| (date.instant, plans.len())));
            let is_public = drafts || standing == Visibility::Published;
            plans.push(Plan { name: name.clone(), path, standing, is_public, is_lost: false });
        }
        claims.sort_unstable();
        for (_, index) in claims {
            let plan: &mut Plan = &mut plans[index];
            match taken.get(&plan.path) {
                None if plan.is_public => {
                    taken.insert(plan.path.clone(), plan.name.clone());
                }
                None => {}
                Some(other) => {
                    let message = format!("has the same address {} as {other}; give one of them another `slug`", plan.path);
                    plan.is_lost = plan.is_public;
                    let severity = if plan.is_public { Severity::Error } else { Severity::Warning };
                    published.problems.push(Problem { severity, ..Problem::new(Path::new(&plan.name), 1, message) });
                }
            }
        }
        plans
    }

    /// Returns the job of rendering a text, unless what was rendered before still holds.
    fn job(&self, plan: &Plan, manner: &Manner, known: &LinkTargets) -> Option<Job> {
        let text = self.remembered.get(&plan.name)?;
        // What cannot be published is rendered, too: its author should hear at once of all that is wrong with it.
        let head = text.head.as_ref().map_or_else(|wrong| wrong.rest.as_ref(), Some)?;
        let holds = |rendering: &Rendering| {
            rendering.manner == *manner && rendering.is_public == plan.is_public && known.still_answers(&rendering.asked)
        };
        if text.rendering.as_ref().is_some_and(holds) {
            return None;
        }
        let Plan { ref name, standing, is_public, .. } = *plan;
        Some(Job { name: name.clone(), head: Arc::clone(head), standing, is_public, date: head.date(text.modified) })
    }
}

impl Job {
    fn run(&self, manner: &Manner, known: &Arc<LinkTargets>) -> Rendering {
        let Self { name, head, standing, is_public, date } = self;
        let known = Arc::clone(known);
        let targets = if *is_public { Targets::new(known) } else { Targets::of_draft(known, &head.path) };
        let rendered = catch_unwind(AssertUnwindSafe(|| head.render(name, manner, &targets, *standing, *date)));
        let asked = Arc::new(targets.into_asked());
        let result = match rendered {
            Ok(result) => result.map(|(post, warnings)| (Arc::new(Post { asked: Arc::clone(&asked), ..post }), warnings)),
            Err(_) => {
                let message = "a bug in Seawall keeps it from being rendered; please report it with this file";
                Err(Unpublished { problems: vec![Problem::new(Path::new(name), None, message)], ..Unpublished::default() })
            }
        };
        Rendering { manner: manner.clone(), is_public: *is_public, asked, result }
    }
}

impl RememberedText {
    /// Puts the text where it belongs, and tells what is wrong with it.
    fn publish(&mut self, plan: &Plan, published: &mut Published) {
        let (head, wrong) = match &self.head {
            Ok(head) => (Some(head), [].as_slice()),
            Err(wrong) => (wrong.rest.as_ref(), wrong.problems.as_slice()),
        };
        type Body<'t> = (Option<&'t Arc<Post>>, &'t [Problem], &'t [OutLink], Option<&'t [String]>);
        let (post, problems, links, anchors): Body<'_> = match self.rendering.as_ref().map(|rendering| &rendering.result) {
            Some(Ok((post, warnings))) => (Some(post), warnings, &post.links, Some(&post.anchors)),
            Some(Err(Unpublished { problems, links, anchors, .. })) => (None, problems, links, anchors.as_deref()),
            None => (None, &[], &[], None),
        };
        let all = || wrong.iter().chain(head.iter().flat_map(|head| &head.warnings)).chain(problems);
        let post = match (&self.head, post) {
            (Ok(head), Some(post)) if !plan.is_lost => Some(post.at(&plan.path, plan.standing, head.date(self.modified))),
            _ => None,
        };
        if post.is_none() && plan.is_public {
            let (links, anchors) = (links.to_vec(), anchors.map(<[_]>::to_vec));
            published.left_out.push(LeftOutText { name: plan.name.clone(), path: plan.path.clone(), links, anchors });
        }
        if plan.is_lost {
            published.problems.extend(all().map(|problem| told(problem, plan, false)));
            return;
        }
        // A text that its author withdrew has no version for readers.
        let good = self.good.take().filter(|_| plan.is_public);
        let is_kept = post.is_none() && good.is_some();
        published.problems.extend(all().map(|problem| told(problem, plan, is_kept)));
        let shown = post.or_else(|| good.map(|good| good.at(&plan.path, plan.standing, good.date)));
        self.good = shown.clone().filter(|_| plan.is_public);
        let Library { posts, pages, drafts } = &mut published.library;
        if let Some(post) = shown {
            let list = match (plan.is_public, post.is_page) {
                (false, _) => drafts,
                (true, true) => pages,
                (true, false) => posts,
            };
            list.push(post);
        }
    }
}

/// Returns the problem of a text as its author is told.
fn told(problem: &Problem, plan: &Plan, is_kept: bool) -> Problem {
    let mut problem = problem.clone();
    if problem.is_warning() {
        // It keeps nothing back.
    } else if is_kept {
        problem.message.push_str(". Readers still see the version before");
    } else if plan.standing == Visibility::Draft && !plan.is_public {
        // Nobody misses a draft.
        problem.severity = Severity::Warning;
    }
    problem
}
