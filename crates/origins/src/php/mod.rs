//! A folder with an application in PHP: its files are sent, its scripts are run by php-fpm.
//!
//! The one idea: what is run and what is sent is decided by what is in the folder, and never by php-fpm, which would run whatever it is told. What a
//! path stands for is said in `lookup.rs`, what is never sent in `../names.rs` and `htaccess.rs`.

mod handed_over;
mod htaccess;
mod lookup;
mod supercache;

#[cfg(test)]
mod tests;

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use ::http::{HeaderValue, Method, Request, Response, StatusCode, header, request::Parts};
use semantics::Scheme;

use crate::{
    Arrival, Body, Fault, LocalFuture, OfFolder, OnInterim, Origin, OriginError,
    fastcgi::{FastCgi, Script},
    files::{Folder, Links, Root, plain, redirect},
};
use handed_over::{AllowedFolders, HandedOver};
use lookup::ScriptLookup;

/// The options for a folder with an application in PHP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PhpOptions {
    /// The path of the folder as php-fpm sees it, if that is another one: in a container of its own, say.
    pub document_root: Option<String>,
    /// Folders below which nothing is run, as visitors leave files there: names one below the other, which may stand anywhere in a path.
    pub not_run: Vec<PathBuf>,
    /// The symbolic links that are followed.
    pub links: Links,
    /// Folders whose files a script may hand over: with `X-Sendfile` by their path, and with `X-Accel-Redirect` by the prefix, if there is one.
    pub handed_over: Vec<(Option<String>, PathBuf)>,
    /// Parameters that every script is told, beside those of CGI: names, and their values. One replaces what CGI or the client says under its name.
    pub params: Vec<(String, String)>,
}

impl Default for PhpOptions {
    fn default() -> Self {
        Self {
            document_root: None,
            not_run: vec!["wp-content/uploads".into(), "wp-content/blogs.dir".into()],
            links: Links::default(),
            handed_over: Vec::new(),
            params: Vec::new(),
        }
    }
}

/// A folder with an application in PHP, as all workers know it.
#[derive(Debug)]
pub struct PhpFolder {
    folder: Folder,
    places: AllowedFolders,
    more: Arc<[(String, String)]>,
    options: PhpOptions,
}

impl PhpFolder {
    /// Opens the folder, which may itself be a symbolic link. It reads from the disk, so call it at start.
    ///
    /// # Errors
    /// Fails when it, or a folder of the options, is not a folder that can be read.
    pub fn open(folder: impl AsRef<Path>, options: PhpOptions) -> io::Result<Self> {
        let places = AllowedFolders::open(&options.handed_over)?;
        Ok(Self { folder: Folder::open(folder.as_ref(), options.links)?, places, more: options.params.as_slice().into(), options })
    }

    /// Says which script answers a request, if the system need not read from a disk for that. Otherwise [`look`](Self::look) says more.
    fn script_at_hand(&self, parts: &Parts, base: &BaseAddress) -> Option<Script> {
        let root = self.folder.root();
        let at_hand = root.at_hand()?;
        if base.prefix.is_empty() && supercache::find(at_hand, parts, base.scheme, &base.authority).ok()?.is_some() {
            return None;
        }
        match lookup::find(at_hand, parts.uri.path(), &self.options.not_run) {
            Ok(ScriptLookup::Script { name, path_info }) => Some(self.script(&root, name, path_info)),
            Ok(_) | Err(_) => None,
        }
    }

    fn script(&self, root: &Root, name: String, path_info: String) -> Script {
        let document_root = self.options.document_root.clone().unwrap_or_else(|| root.path().to_string_lossy().into_owned());
        Script { document_root, name, path_info, more: Arc::clone(&self.more) }
    }

    /// Says what answers a request: a script, or a response that is ready. Blocks.
    fn look(&self, parts: &Parts, base: &BaseAddress) -> io::Result<Result<Script, Response<Body>>> {
        let root = self.folder.root();
        let path = parts.uri.path();
        let page = if base.prefix.is_empty() { supercache::find(&root, parts, base.scheme, &base.authority)? } else { None };
        if let Some(page) = page {
            let mut response = self.folder.send(&root, page, parts)?;
            // It is for whoever has no cookies, and not for everybody as a file is: as the plugin says of its pages.
            response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("max-age=0, must-revalidate"));
            response.headers_mut().append(header::VARY, HeaderValue::from_static("Cookie"));
            return Ok(Err(response));
        }
        let response = match lookup::find(&root, path, &self.options.not_run)? {
            ScriptLookup::Script { name, path_info } => return Ok(Ok(self.script(&root, name, path_info))),
            ScriptLookup::File(_) if !matches!(parts.method, Method::GET | Method::HEAD) => {
                let mut response = plain(StatusCode::METHOD_NOT_ALLOWED);
                response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
                response
            }
            ScriptLookup::File(entry) => self.folder.send(&root, entry, parts)?,
            ScriptLookup::WithSlash => {
                let query = parts.uri.query().map(|query| format!("?{query}")).unwrap_or_default();
                redirect(StatusCode::MOVED_PERMANENTLY, format!("{}{path}/{query}", base.prefix.trim_end_matches('/')))?
            }
            ScriptLookup::Forbidden => plain(StatusCode::FORBIDDEN),
            ScriptLookup::Nothing => plain(StatusCode::NOT_FOUND),
        };
        Ok(Err(response))
    }
}

/// The address for which a request came, before its target.
struct BaseAddress {
    scheme: Scheme,
    authority: String,
    prefix: String,
}

/// An application in PHP, as one worker sees it.
///
/// Runs where [`tokio::task::spawn_local`] does.
#[derive(Debug)]
pub struct Php {
    folder: Arc<PhpFolder>,
    client: FastCgi,
}

impl Php {
    /// Makes an origin for one worker. The folder is shared by all of them.
    #[must_use]
    pub const fn new(folder: Arc<PhpFolder>, client: FastCgi) -> Self {
        Self { folder, client }
    }

    /// Returns the client of the server that runs the scripts.
    #[must_use]
    pub const fn client(&self) -> &FastCgi {
        &self.client
    }

    async fn answer(
        &self,
        request: Request<Body>,
        arrival: &Arrival<'_>,
        interim: Option<&OnInterim<'_>>,
    ) -> Result<Response<Body>, OriginError> {
        let (parts, body) = request.into_parts();
        let base = BaseAddress {
            scheme: arrival.scheme,
            authority: arrival.authority.to_owned(),
            prefix: arrival.prefix.unwrap_or_default().to_owned(),
        };
        let (script, parts) = match self.folder.script_at_hand(&parts, &base) {
            Some(script) => (script, parts),
            None => {
                let folder = Arc::clone(&self.folder);
                match on_a_thread_that_may_wait(move || folder.look(&parts, &base).map(|looked| (looked, parts))).await? {
                    (Ok(script), parts) => (script, parts),
                    (Err(mut response), _) => {
                        response.extensions_mut().insert(OfFolder);
                        return Ok(response);
                    }
                }
            }
        };
        let mut response = self.client.run(&script, Request::from_parts(parts, body), arrival, interim).await?;
        let handed = HandedOver::take(response.headers_mut());
        handed_over::remove_orders(response.headers_mut());
        let Some(handed) = handed else { return Ok(response) };
        let folder = Arc::clone(&self.folder);
        // What the script says beside it is for nobody, and its child is free.
        *response.body_mut() = Body::Empty;
        on_a_thread_that_may_wait(move || folder.places.send(response, &handed)).await
    }
}

async fn on_a_thread_that_may_wait<T: Send + 'static>(look: impl FnOnce() -> io::Result<T> + Send + 'static) -> Result<T, OriginError> {
    let looked = tokio::task::spawn_blocking(look).await.map_err(io::Error::other).flatten();
    looked.map_err(|e| OriginError::new(Fault::Internal, "looking for a file").because(e))
}

impl Origin for Php {
    fn fetch<'a>(
        &'a self,
        request: Request<Body>,
        arrival: &'a Arrival<'a>,
        interim: Option<&'a OnInterim<'a>>,
    ) -> LocalFuture<'a, Result<Response<Body>, OriginError>> {
        Box::pin(self.answer(request, arrival, interim))
    }
}
