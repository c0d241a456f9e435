//! Shows the dashboard with invented numbers: `cargo run -p admin --example dashboard -- crowd`. The scenes: empty, calm, crowd, down, hostile.

use std::{env, error::Error, future::pending, io::Write as _, sync::Arc};

use admin::Token;
use tokio::net::TcpListener;

#[path = "../tests/dashboard/scenes.rs"]
mod scenes;

/// A token that everybody may know: nothing is behind it.
const TOKEN: &str = "0123456789abcdef0123456789abcdef";

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let wanted = arguments.next().unwrap_or_else(|| "calm".to_owned());
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:0".to_owned());
    let (_, scene) = scenes::Scene::ALL.into_iter().find(|(name, _)| *name == wanted).ok_or("there is no such scene")?;
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        let listener = TcpListener::bind(address).await?;
        writeln!(std::io::stdout(), "http://{}/   token {TOKEN}", listener.local_addr()?)?;
        let token = Token::new(TOKEN).ok_or("too short")?;
        Ok(admin::serve(listener, Arc::new(scenes::Fake::new(scene)), token, pending()).await?)
    })
}
