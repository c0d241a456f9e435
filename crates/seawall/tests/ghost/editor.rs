//! The owner of the blog, who is signed in and writes through Ghost's admin API, as the editor in the browser does.

use serde_json::{Value, json};

use super::{
    blog::FACTS,
    client::{Answer, Client},
};

#[derive(Clone)]
pub(crate) struct Editor {
    client: Client,
    path: &'static str,
}

impl Editor {
    /// Makes the editor of a client that is signed in, and says that it is at the blog's own address: Ghost takes a session from nowhere
    /// else.
    pub(crate) fn new(client: Client, path: &'static str) -> Self {
        Self { client: client.with("Accept-Version", "v6.0"), path }
    }

    /// Returns the client with the owner's session.
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    pub(crate) fn target(&self, what: &str) -> String {
        format!("{}/ghost/api/admin/{what}", self.path)
    }

    #[track_caller]
    pub(crate) fn get(&self, what: &str) -> Value {
        self.client.get(&self.target(what)).status(200).json()
    }

    #[track_caller]
    pub(crate) fn send(&self, method: &str, what: &str, content: &Value) -> Answer {
        let answer = self.client.send_json(method, &self.target(what), content);
        assert!(matches!(answer.status, 200..=299), "{answer}");
        answer
    }

    /// Publishes a post, and returns its identity.
    #[track_caller]
    pub(crate) fn publish(&self, slug: &str, words: &str) -> String {
        self.write(&json!({"title": format!("Title of {slug}"), "slug": slug, "html": format!("<p>{words}</p>"), "status": "published"}))
    }

    /// Creates a post with these attributes, and returns its identity.
    #[track_caller]
    pub(crate) fn write(&self, post: &Value) -> String {
        let made = self.send("POST", "posts/?source=html", &json!({"posts": [post]})).json();
        made["posts"][0]["id"].as_str().expect("an identity").to_owned()
    }

    /// Changes some attributes of a post. Ghost wants to know which version of it they come from.
    #[track_caller]
    pub(crate) fn edit(&self, id: &str, change: &Value) -> Value {
        let updated_at = self.get(&format!("posts/{id}/?fields=id,updated_at"))["posts"][0]["updated_at"].clone();
        let mut post = change.clone();
        post["updated_at"] = updated_at;
        self.send("PUT", &format!("posts/{id}/?source=html"), &json!({"posts": [post]})).json()["posts"][0].take()
    }

    #[track_caller]
    pub(crate) fn delete(&self, id: &str) {
        self.send("DELETE", &format!("posts/{id}/"), &json!({}));
    }

    #[track_caller]
    pub(crate) fn set(&self, key: &str, value: &Value) {
        self.send("PUT", "settings/", &json!({"settings": [{"key": key, "value": value}]}));
    }

    #[track_caller]
    pub(crate) fn upload(&self, what: &str, field: &str, file: &str, kind: &str, content: &[u8]) -> Answer {
        let answer = self.client.upload(&self.target(what), field, file, kind, content);
        assert!(matches!(answer.status, 200..=299), "{answer}");
        answer
    }

    /// Returns the identity of a post that the seeder wrote.
    pub(crate) fn post(slug: &str) -> &'static str {
        FACTS["posts"][slug]["id"].as_str().expect("a post")
    }
}
