//! Keeps what somebody has chosen to see, and what each key does.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::{
    panels::{PANELS, Panel},
    picture::Picture,
};

/// The rows that a key for a page moves.
const PAGE: isize = 10;

/// Holds what somebody has chosen to see.
#[derive(Clone, Debug, Default)]
pub(super) struct Screen {
    /// The panel that is shown alone. `None` means that all panels are shown that have room.
    pub(super) panel: Option<Panel>,
    /// The row that is chosen in it, by its key.
    pub(super) chosen: Option<String>,
    /// Whether the picture stands still.
    pub(super) is_paused: bool,
    /// Whether the keys are explained.
    pub(super) is_help: bool,
}

/// Says what follows from a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Follows {
    /// The screen is drawn anew.
    Draw,
    /// Another site is asked about.
    Site(Option<String>),
    /// It is over.
    End,
    /// Nothing follows.
    Nothing,
}

/// The keys, with what they do.
pub(super) const KEYS: [(&str, &str); 9] = [
    ("1 to 9, 0", "show one list alone, with all that is known of a row"),
    ("Tab", "show the next list alone (Shift-Tab: the one before)"),
    ("Esc", "show all lists that have room"),
    ("up, down", "choose a row (page up and page down: ten rows; Home: the first)"),
    ("right, left", "show the next site, or the one before; all together have their turn"),
    ("Enter", "in the list of sites: show this one"),
    ("space", "let the picture stand still, and go on"),
    ("?", "show this"),
    ("q", "end (Ctrl-C, too)"),
];

impl Screen {
    /// Does what a key says.
    pub(super) fn key(&mut self, key: KeyEvent, picture: &Picture) -> Follows {
        if key.kind == KeyEventKind::Release {
            return Follows::Nothing;
        }
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if is_control => return Follows::End,
            KeyCode::Char('q') => return Follows::End,
            _ if self.is_help => self.is_help = false,
            KeyCode::Char('?' | 'h') => self.is_help = true,
            KeyCode::Char(' ' | 'p') => self.is_paused = !self.is_paused,
            KeyCode::Esc | KeyCode::Backspace => self.show(None),
            KeyCode::Tab => self.turn(1),
            KeyCode::BackTab => self.turn(-1),
            KeyCode::Up | KeyCode::Char('k') => self.choose(-1, picture),
            KeyCode::Down | KeyCode::Char('j') => self.choose(1, picture),
            KeyCode::PageUp => self.choose(-PAGE, picture),
            KeyCode::PageDown => self.choose(PAGE, picture),
            KeyCode::Home => self.chosen = None,
            KeyCode::Right | KeyCode::Char('s') => return Follows::Site(picture.next_site(1)),
            KeyCode::Left | KeyCode::Char('S') => return Follows::Site(picture.next_site(-1)),
            KeyCode::Enter if self.panel == Some(Panel::Sites) => {
                let place = self.place(picture);
                let site = picture.seen.sites.get(place).cloned();
                self.show(None);
                return Follows::Site(site);
            }
            KeyCode::Char(typed) => match PANELS.into_iter().find(|(_, key)| *key == typed) {
                // The same key again goes back.
                Some((panel, _)) => self.show((self.panel != Some(panel)).then_some(panel)),
                None => return Follows::Nothing,
            },
            _ => return Follows::Nothing,
        }
        Follows::Draw
    }

    fn show(&mut self, panel: Option<Panel>) {
        (self.panel, self.chosen) = (panel, None);
    }

    /// Shows the next panel alone, or the one before.
    fn turn(&mut self, step: isize) {
        let count = PANELS.len();
        let next = match self.panel.and_then(|here| PANELS.into_iter().position(|(panel, _)| panel == here)) {
            Some(here) => (here + count).saturating_add_signed(step) % count,
            None if step < 0 => count - 1,
            None => 0,
        };
        self.show(Some(PANELS[next].0));
    }

    /// Chooses the row so many below the one that is chosen.
    fn choose(&mut self, step: isize, picture: &Picture) {
        let Some(panel) = self.panel else {
            // Somebody who wants a row wants the list that matters most.
            return self.turn(1);
        };
        let rows = panel.table(picture).rows;
        let place = self.place(picture).saturating_add_signed(step).min(rows.len().saturating_sub(1));
        self.chosen = rows.into_iter().nth(place).map(|row| row.key);
    }

    /// Returns the place of the row that is chosen: the first one, unless another one was and is still there.
    pub(super) fn place(&self, picture: &Picture) -> usize {
        let place = self
            .panel
            .zip(self.chosen.as_ref())
            .and_then(|(panel, chosen)| panel.table(picture).rows.iter().position(|row| row.key == *chosen));
        place.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use admin_api::{Reason, Seen};

    use super::*;

    fn picture(rules: &[&str]) -> Picture {
        let reasons = rules.iter().map(|rule| Reason { rule: (*rule).to_owned(), ..Reason::default() }).collect();
        Picture { seen: Seen { reasons, sites: vec!["a".to_owned(), "b".to_owned()], ..Seen::default() }, ..Picture::default() }
    }

    fn press(screen: &mut Screen, picture: &Picture, keys: &[KeyCode]) -> Follows {
        let mut follows = Follows::Nothing;
        for code in keys {
            follows = screen.key(KeyEvent::new(*code, KeyModifiers::NONE), picture);
        }
        follows
    }

    #[test]
    fn a_choice_stays_with_its_row_when_the_rows_change_places() {
        let (mut screen, before) = (Screen::default(), picture(&["cold", "cookie", "no-store"]));
        press(&mut screen, &before, &[KeyCode::Char('1'), KeyCode::Down]);
        assert_eq!(screen.place(&before), 1);
        let after = picture(&["no-store", "cold", "cookie"]);
        assert_eq!(screen.place(&after), 2);
        press(&mut screen, &after, &[KeyCode::Down, KeyCode::Up]);
        assert_eq!(screen.place(&after), 1, "there is no row below the last one");
        assert_eq!(screen.place(&picture(&[])), 0, "a row that is gone is chosen no more");
        press(&mut screen, &picture(&[]), &[KeyCode::Down, KeyCode::PageDown, KeyCode::PageUp]);
    }

    #[test]
    fn every_panel_has_a_key_and_is_reached_by_tab() {
        let (mut screen, picture) = (Screen::default(), picture(&[]));
        for (panel, key) in PANELS {
            press(&mut screen, &picture, &[KeyCode::Esc, KeyCode::Char(key)]);
            assert_eq!(screen.panel, Some(panel));
            press(&mut screen, &picture, &[KeyCode::Char(key)]);
            assert_eq!(screen.panel, None, "the same key again goes back");
        }
        for (panel, _) in PANELS {
            press(&mut screen, &picture, &[KeyCode::Tab]);
            assert_eq!(screen.panel, Some(panel));
        }
        press(&mut screen, &picture, &[KeyCode::Tab, KeyCode::BackTab]);
        assert_eq!(screen.panel, Some(Panel::Sites));
    }

    #[test]
    fn a_site_is_chosen_by_arrows_or_from_the_list() {
        let (mut screen, picture) = (Screen::default(), picture(&[]));
        assert_eq!(press(&mut screen, &picture, &[KeyCode::Right]), Follows::Site(Some("a".to_owned())));
        assert_eq!(press(&mut screen, &picture, &[KeyCode::Left]), Follows::Site(Some("b".to_owned())));
        let of_list = press(&mut screen, &picture, &[KeyCode::Char('0'), KeyCode::Down, KeyCode::Enter]);
        assert_eq!((of_list, screen.panel), (Follows::Site(Some("b".to_owned())), None));
    }

    #[test]
    fn it_ends_by_q_and_by_control_c_also_while_keys_are_explained() {
        for is_help in [false, true] {
            let mut screen = Screen { is_help, ..Screen::default() };
            assert_eq!(press(&mut screen, &picture(&[]), &[KeyCode::Char('q')]), Follows::End);
            let control_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
            assert_eq!(screen.key(control_c, &picture(&[])), Follows::End);
        }
    }
}
