//! Somebody who has signed in, and writes as the block editor and the pages of `/wp-admin/` do.

use serde_json::Value;

use super::{
    blog::FACTS,
    client::{Answer, Client},
};

impl Client {
    /// Sends a form.
    pub(crate) fn post(&self, target: &str, form: &str) -> Answer {
        self.clone().with("Content-Type", "application/x-www-form-urlencoded").send("POST", target, form.as_bytes())
    }
}

#[derive(Clone)]
pub(crate) struct Editor {
    client: Client,
    nonce: String,
}

impl Editor {
    /// Signs in with the form of `/wp-login.php`.
    #[track_caller]
    pub(crate) fn sign_in(client: &Client, name: &str) -> Client {
        let password = FACTS["people"][name]["password"].as_str().expect("somebody of the blog");
        let form = format!("log={name}&pwd={password}&wp-submit=Log+In&testcookie=1");
        let answer = client.clone().with_cookie("wordpress_test_cookie", "WP%20Cookie%20check").post("/wp-login.php", &form).status(302);
        let client = client.clone().after(&answer);
        assert!(client.cookie_names().iter().any(|name| name.starts_with("wordpress_logged_in_")), "{answer}");
        client
    }

    #[track_caller]
    pub(crate) fn new(client: Client) -> Self {
        let nonce = client.get("/wp-admin/admin-ajax.php?action=rest-nonce").status(200).text();
        Self { client, nonce }
    }

    /// Returns the client with the cookies of who signed in.
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Returns the client as it asks the REST API, with cookies and a nonce.
    pub(crate) fn rest(&self) -> Client {
        self.client.clone().with("X-WP-Nonce", &self.nonce)
    }

    #[track_caller]
    pub(crate) fn get(&self, what: &str) -> Value {
        self.rest().get(&format!("/wp-json/wp/v2/{what}")).status(200).json()
    }

    #[track_caller]
    pub(crate) fn send(&self, method: &str, what: &str, content: &Value) -> Value {
        let answer = self.rest().send_json(method, &format!("/wp-json/wp/v2/{what}"), content);
        assert!(matches!(answer.status, 200..=299), "{answer}");
        answer.json()
    }

    /// Changes a post that the seeder wrote.
    #[track_caller]
    pub(crate) fn edit(&self, slug: &str, change: &Value) -> Value {
        self.send("POST", &format!("posts/{}", Self::post(slug)), change)
    }

    /// Follows a link of a page of `/wp-admin/` with these parts: they write, and are protected by `_wpnonce`.
    #[track_caller]
    pub(crate) fn follow(&self, page: &str, parts: &[&str]) -> Answer {
        let text = self.client.get(page).status(200).text();
        let link = text
            .split(['"', '\''])
            .map(|part| part.replace("\\/", "/").replace("&#038;", "&").replace("&amp;", "&"))
            .find(|part| part.contains("_wpnonce=") && parts.iter().all(|wanted| part.contains(wanted)))
            .unwrap_or_else(|| panic!("no link with {parts:?} in {page}"));
        let target = match link.split_once("://") {
            Some((_, rest)) => rest[rest.find('/').expect("a path")..].to_owned(),
            None => format!("/wp-admin/{link}"),
        };
        self.client.get(&target)
    }

    /// Sends the form of a page of `/wp-admin/` as it is, except for what is given, and with its own hidden fields.
    #[track_caller]
    pub(crate) fn submit(&self, page: &str, to: &str, hidden: &[&str], given: &str) -> Answer {
        let text = self.client.get(page).status(200).text();
        let mut form = given.to_owned();
        for name in hidden {
            form += &format!("&{name}={}", value_of(&text, name).unwrap_or_else(|| panic!("no {name} in {page}")));
        }
        self.client.post(to, &form)
    }

    /// Returns the number of a post that the seeder wrote.
    pub(crate) fn post(slug: &str) -> u64 {
        FACTS["posts"][slug]["id"].as_u64().expect("a post")
    }
}

/// Returns the value of an input of a form.
pub(crate) fn value_of<'a>(page: &'a str, name: &str) -> Option<&'a str> {
    page.split("<input").find_map(|input| {
        let input = input.split('>').next()?;
        let is_it = ["'", "\""].iter().any(|quote| input.contains(&format!("name={quote}{name}{quote}")));
        let value = input.split("value=").nth(1)?;
        is_it.then(|| value[1..].split(value.chars().next()?).next()).flatten()
    })
}
