use std::{fs, path::Path, sync::mpsc};

use super::*;
use crate::{Form, sample};

fn source(folder: &Path, name: &str, content: &[u8]) -> Arc<Source> {
    let path = folder.join(name);
    fs::write(&path, content).expect("written");
    Arc::new(Source::read(path).expect("a picture"))
}

fn photo(folder: &Path, width: u32) -> Arc<Source> {
    source(folder, &format!("{width}.jpg"), &sample::jpeg(&sample::photo(width, 200)))
}

fn one_thread() -> Arc<Workshop> {
    let mut workshop = Workshop::new(Shelf::in_memory(64 * 1024 * 1024));
    workshop.threads_max = 1;
    Arc::new(workshop)
}

/// Keeps the only thread busy until the sender is dropped.
fn occupied(workshop: &Workshop, folder: &Path) -> mpsc::SyncSender<()> {
    let (gate, closed) = mpsc::sync_channel::<()>(0);
    let (tell, begun) = mpsc::sync_channel::<()>(1);
    let first = photo(folder, 10);
    workshop.ask(&first, first.variants()[0], move |_| {
        let _ = tell.send(());
        let _ = closed.recv();
    });
    begun.recv().expect("the thread is at it");
    gate
}

#[test]
fn what_is_asked_for_comes_before_what_nobody_waits_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let workshop = one_thread();
    let gate = occupied(&workshop, folder.path());
    let (early, late) = (photo(folder.path(), 600), photo(folder.path(), 700));
    let desk = workshop.desk();
    desk.make_ahead([Arc::clone(&early)]);
    let (tell, told) = mpsc::sync_channel(1);
    workshop.ask(&late, late.variants()[1], move |made| {
        let _ = tell.send(made);
    });
    drop(gate);
    let made = told.recv().expect("told").expect("made");
    assert!(workshop.made(&early, &early.variants()[0]).is_none(), "the other one comes later");
    assert_eq!(workshop.made(&late, &late.variants()[1]), Some(made));
    workshop.wait_until_idle();
    assert!(workshop.made(&early, &early.variants()[0]).is_some());
}

#[test]
fn all_who_ask_for_one_variant_share_it_and_one_decoding_serves_all_of_a_picture() {
    let folder = tempfile::tempdir().expect("a folder");
    let workshop = one_thread();
    let gate = occupied(&workshop, folder.path());
    let photo = photo(folder.path(), 1300);
    let (tell, told) = mpsc::sync_channel(16);
    for variant in [0, 1, 0, 2, 0] {
        let tell = tell.clone();
        workshop.ask(&photo, photo.variants()[variant], move |made| tell.send(made.is_ok()).expect("room"));
    }
    drop((gate, tell));
    assert_eq!(told.iter().collect::<Vec<_>>(), [true; 5]);
    workshop.wait_until_idle();
    let counts = workshop.counts();
    assert_eq!((counts.made, counts.decoded), (1 + 3, 1 + 1));
}

#[test]
fn ahead_of_everybody_are_made_what_most_browsers_choose_and_the_placeholder() {
    let folder = tempfile::tempdir().expect("a folder");
    let workshop = one_thread();
    let photo = photo(folder.path(), 2500);
    let (tell, told) = mpsc::sync_channel(4);
    let desk = workshop.desk();
    desk.on_rest(move || tell.send(()).expect("room"));
    desk.make_ahead([Arc::clone(&photo)]);
    told.recv().expect("told when there is news");
    for variant in photo.variants() {
        let is_there = workshop.made(&photo, variant).is_some();
        assert_eq!(is_there, variant.form == Form::WebP && variant.width <= 1600, "{variant:?}");
    }
    assert!(workshop.placeholder(&photo).expect("known").starts_with("data:image/webp;base64,"));
    // Nothing is left, so nothing is done, and nobody is told.
    desk.make_ahead([Arc::clone(&photo)]);
    workshop.wait_until_idle();
    assert_eq!((workshop.counts().decoded, told.try_recv().is_err()), (1, true));
}

#[test]
fn what_is_asked_for_twice_is_made_once_also_after_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let kept = tempfile::tempdir().expect("another");
    let photo = photo(folder.path(), 900);
    let mut expected = Vec::new();
    for start in 0..2 {
        let workshop = Workshop::new(Shelf::open(kept.path(), 1 << 30).expect("opened"));
        let mut all = Vec::new();
        workshop.make_all(&photo, |variant, made| all.push((*variant, made))).expect("made");
        assert_eq!(workshop.counts().made, if start == 0 { 4 } else { 0 });
        assert_eq!(all.len(), 4);
        if start == 0 {
            expected = all;
        } else {
            assert_eq!(all, expected);
        }
    }
}

/// `seawall build` makes all variants of a picture, a reader asks for one: what is sent must not depend on who came first.
#[test]
fn a_variant_is_the_same_bytes_alone_and_with_all_others() {
    let folder = tempfile::tempdir().expect("a folder");
    let sharp = image::RgbaImage::from_fn(900, 300, |x, y| {
        image::Rgba([x % 7 * 30, y % 5 * 50, 90, 255 - x % 2].map(|value| value.to_le_bytes()[0]))
    });
    let sources = [photo(folder.path(), 2500), source(folder.path(), "sharp.png", &sample::png(&sharp))];
    for source in sources {
        let (all, mut together) = (one_thread(), Vec::new());
        all.make_all(&source, |variant, made| together.push((*variant, made))).expect("made");
        let ahead = one_thread();
        let desk = ahead.desk();
        desk.make_ahead([Arc::clone(&source)]);
        ahead.wait_until_idle();
        assert_eq!(ahead.placeholder(&source), all.placeholder(&source));
        for (variant, expected) in together {
            let alone = one_thread();
            let (tell, told) = mpsc::sync_channel(1);
            alone.ask(&source, variant, move |made| tell.send(made).expect("room"));
            assert!(told.recv().expect("told") == Ok(expected.clone()), "{variant:?} alone");
            assert!(ahead.made(&source, &variant).is_none_or(|made| made == expected), "{variant:?} ahead of everybody");
        }
    }
}

/// A shelf that is full would give up for the one picture what it made for the other, forever.
#[test]
fn nothing_is_made_ahead_when_the_shelf_is_full() {
    let folder = tempfile::tempdir().expect("a folder");
    let workshop = Arc::new(Workshop::new(Shelf::in_memory(SPARE_BYTES)));
    let desk = workshop.desk();
    let photos: Vec<_> = [600, 700, 800].into_iter().map(|width| photo(folder.path(), width)).collect();
    desk.make_ahead(photos.clone());
    workshop.wait_until_idle();
    assert_eq!(workshop.counts().decoded, 1, "the first one took what was not spare");
    let (tell, told) = mpsc::sync_channel(1);
    workshop.ask(&photos[2], photos[2].variants()[0], move |made| tell.send(made.is_ok()).expect("room"));
    assert!(told.recv().expect("told"), "who asks gets it all the same");
}

#[test]
fn a_bad_picture_is_tried_once_and_the_rest_is_made() {
    let folder = tempfile::tempdir().expect("a folder");
    let workshop = one_thread();
    let png = sample::png_of(&sample::photo(600, 400));
    // A decoder finds it out: by the head and the end, it is a picture.
    let mut damaged = png;
    let middle = damaged.len() / 2;
    damaged[middle..middle + 100].fill(0);
    let bad = source(folder.path(), "bad.png", &damaged);
    let good = photo(folder.path(), 500);
    let desk = workshop.desk();
    desk.make_ahead([Arc::clone(&bad), Arc::clone(&good)]);
    workshop.wait_until_idle();
    assert!(workshop.made(&good, &good.variants()[0]).is_some());
    assert!(bad.fault().is_some());
    let (tell, told) = mpsc::sync_channel(1);
    workshop.ask(&bad, bad.variants()[0], move |made| tell.send(made).expect("room"));
    assert_eq!(told.recv().expect("told").err(), bad.fault());
    assert_eq!(workshop.counts().failed, 1);
}

#[test]
fn too_many_wishes_are_refused_and_those_of_a_closed_workshop_are_answered() {
    let folder = tempfile::tempdir().expect("a folder");
    let workshop = one_thread();
    let gate = occupied(&workshop, folder.path());
    let photo = photo(folder.path(), 300);
    let (tell, told) = mpsc::sync_channel(2 * WAITING_MAX);
    for _ in 0..=WAITING_MAX {
        let tell = tell.clone();
        workshop.ask(&photo, photo.variants()[0], move |made| tell.send(made).expect("room"));
    }
    assert_eq!(told.try_recv().expect("refused at once"), Err(Fault::Busy));
    assert_eq!(workshop.counts().refused, 1);
    drop(tell);
    let shared = Arc::clone(&workshop.shared);
    let closing = thread::spawn(move || drop(workshop));
    while !shared.queue.lock().closed {
        thread::yield_now();
    }
    drop(gate);
    closing.join().expect("it ends");
    assert_eq!(told.iter().filter(|made| *made == Err(Fault::Busy)).count(), WAITING_MAX);
}

#[test]
fn sites_do_not_forget_each_others_pictures_and_one_that_left_is_told_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let workshop = one_thread();
    let gate = occupied(&workshop, folder.path());
    let photos: Vec<_> = [500, 510, 520, 530].into_iter().map(|width| photo(folder.path(), width)).collect();
    let (one, other, gone) = (workshop.desk(), workshop.desk(), workshop.desk());
    let (tell, told) = mpsc::sync_channel(4);
    gone.on_rest(|| unreachable!("nobody is there"));
    other.on_rest(move || tell.send(()).expect("room"));
    one.make_ahead([Arc::clone(&photos[0])]);
    other.make_ahead([Arc::clone(&photos[1])]);
    other.make_ahead([Arc::clone(&photos[2])]);
    gone.make_ahead([Arc::clone(&photos[3])]);
    drop((gone, gate));
    told.recv().expect("told");
    let made: Vec<_> = photos.iter().map(|photo| workshop.made(photo, &photo.variants()[0]).is_some()).collect();
    assert_eq!(made, [true, false, true, false]);
}
