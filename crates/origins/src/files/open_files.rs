//! Large files that were asked for lately, kept open with what is said about them: looking one up costs more than sending a part of it,
//! and whoever watches a film asks for parts of it all the time.
//!
//! Whatever changes in the folder ends them all, and a file itself is looked at each time: one that was written to since is looked up anew
//! also if nobody has told yet. Where nobody tells of changes, none is kept.

use std::{collections::VecDeque, fs::File, os::unix::fs::MetadataExt};

use http::{HeaderMap, Response, StatusCode};
use semantics::range::Part;

use crate::{Body, FileBody, FileForms};

/// The most files kept open; with their siblings that is at most four times as many descriptors. The oldest is closed first.
const OPEN_MAX: usize = 64;

/// The open files of a site.
#[derive(Debug, Default)]
pub(super) struct OpenFiles {
    /// A number that every change raises: a file that was looked up before a change must not be added after it.
    generation: u64,
    files: VecDeque<OpenFile>,
}

#[derive(Debug)]
struct OpenFile {
    path: Box<str>,
    was: State,
    fields: HeaderMap,
    content: FileBody,
    forms: Option<FileForms>,
}

/// The length of a file and its last change of any kind, in seconds and nanoseconds.
type State = (u64, i64, i64);

fn state(file: &File) -> Option<State> {
    file.metadata().ok().map(|now| (now.len(), now.ctime(), now.ctime_nsec()))
}

impl OpenFiles {
    /// Returns the number to pass to [`OpenFiles::keep`]. Call it before a file is looked up.
    pub(super) const fn generation(&self) -> u64 {
        self.generation
    }

    /// Closes all files, because something has changed.
    pub(super) fn forget(&mut self) {
        self.generation += 1;
        self.files.clear();
    }

    /// Returns the answer for a path, if it is a large file that is open.
    pub(super) fn answer(&self, path: &str) -> Option<Response<Body>> {
        let open = self.files.iter().find(|open| *open.path == *path).filter(|open| state(open.content.file()) == Some(open.was))?;
        let mut response = Response::new(Body::File(Box::new(open.content.cut([Part::Slice(0..open.content.left())]))));
        *response.headers_mut() = open.fields.clone();
        if let Some(forms) = &open.forms {
            response.extensions_mut().insert(forms.clone());
        }
        Some(response)
    }

    /// Keeps an answer, if it is a large file's and nothing has changed since `generation`.
    pub(super) fn keep(&mut self, generation: u64, path: &str, response: &Response<Body>) {
        let Body::File(content) = response.body() else { return };
        let Some(was) = state(content.file()).filter(|was| was.0 == content.left()) else { return };
        if generation != self.generation || response.status() != StatusCode::OK {
            return;
        }
        self.files.retain(|open| *open.path != *path);
        if self.files.len() == OPEN_MAX {
            self.files.pop_front();
        }
        let content = content.cut([Part::Slice(0..content.left())]);
        let forms = response.extensions().get().cloned();
        self.files.push_back(OpenFile { path: path.into(), was, fields: response.headers().clone(), content, forms });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn of(file: &File) -> Response<Body> {
        let file = file.try_clone().expect("cloned");
        Response::new(Body::File(Box::new(FileBody::new(Arc::new(file), 5))))
    }

    fn film() -> File {
        let file = tempfile::tempfile().expect("a file");
        file.set_len(5).expect("lengthened");
        file
    }

    fn large() -> Response<Body> {
        of(&film())
    }

    #[test]
    fn a_file_that_was_written_to_is_not_answered_from() {
        let (mut opened, film) = (OpenFiles::default(), film());
        opened.keep(0, "/film", &of(&film));
        assert!(opened.answer("/film").is_some());
        film.set_len(4).expect("cut");
        assert!(opened.answer("/film").is_none());
        opened.keep(0, "/film", &of(&film));
        assert!(opened.answer("/film").is_none(), "its length was looked up before it was cut");
    }

    #[test]
    fn what_was_looked_up_before_a_change_does_not_come_in_after_it() {
        let mut opened = OpenFiles::default();
        let before = opened.generation();
        opened.keep(before, "/film", &large());
        assert!(opened.answer("/film").is_some() && opened.answer("/other").is_none());
        opened.forget();
        assert!(opened.answer("/film").is_none());
        opened.keep(before, "/film", &large());
        assert!(opened.answer("/film").is_none());
        opened.keep(opened.generation(), "/film", &large());
        assert!(opened.answer("/film").is_some());
    }

    #[test]
    fn only_so_many_are_kept_and_nothing_but_files() {
        let mut opened = OpenFiles::default();
        opened.keep(0, "/page", &Response::new(Body::Empty));
        assert!(opened.answer("/page").is_none());
        for number in 0..=OPEN_MAX {
            opened.keep(0, &number.to_string(), &large());
            opened.keep(0, &number.to_string(), &large());
        }
        assert_eq!(opened.files.len(), OPEN_MAX);
        assert!(opened.answer("0").is_none() && opened.answer("1").is_some());
    }
}
