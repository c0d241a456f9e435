//! Draws a picture: what happens now above, then as many lists as have room, or one alone.

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    style::{Color, Modifier, Style},
    widgets::{Sparkline, Widget as _},
};

use super::{
    history::{Column, Second},
    panels::{PANELS, Panel},
    picture::Picture,
    screen::{KEYS, Screen},
    table::{Table, wrapped},
};
use crate::{
    foreign::{columns, fit, visible},
    units::{about, bytes, count, micros, number, rate, share, span, time_of_day},
};

/// The rows of a list that has just enough room: its title, the columns' titles, three rows.
const PANEL_MIN: u16 = 5;

/// The width from which two lists stand side by side.
const TWO_COLUMNS: u16 = 130;

/// The height below which what happens now takes two lines.
const LOW: u16 = 18;

/// The height from which a free line stands before the lists.
const HIGH: u16 = 30;

/// The width of names, and the place where curves begin.
const NAME: u16 = 10;
const CURVES: u16 = 46;

/// The width below which there are no curves.
const NARROW: u16 = 64;

/// Troubles that are named each.
const TROUBLES_MAX: usize = 3;

/// Draws a picture over the whole buffer.
pub(super) fn draw(buffer: &mut Buffer, picture: &Picture, screen: &Screen) {
    let area = buffer.area;
    if area.is_empty() {
        return;
    }
    let mut sheet = Sheet { buffer, area, y: area.y };
    sheet.title(picture, screen);
    if screen.is_help {
        sheet.help();
    } else {
        if area.height < LOW {
            sheet.now_in_short(picture);
        } else {
            sheet.now(picture);
        }
        sheet.troubles(picture);
        let room = sheet.rest(1);
        match screen.panel {
            Some(panel) => alone(sheet.buffer, room, panel, picture, screen),
            None => together(sheet.buffer, room, picture),
        }
    }
    sheet.keys(screen);
}

/// Draws a picture with all lists, as high as it has to be.
pub(super) fn whole(picture: &Picture, width: u16, rows_max: u16) -> Buffer {
    let side_by_side = side_by_side(width);
    let tables: Vec<(Panel, Table)> = shown(picture).into_iter().filter(|(_, table)| !table.rows.is_empty()).collect();
    let needs: Vec<u16> = tables.iter().map(|(_, table)| need(table, width).min(rows_max.saturating_add(3))).collect();
    let lists: u16 = needs.chunks(side_by_side.into()).map(|line| line.iter().max().copied().unwrap_or_default()).sum();
    // Title, what happens now, troubles and a line between them.
    let mut buffer = Buffer::empty(Rect::new(0, 0, width, lists.saturating_add(24)));
    let area = buffer.area;
    let mut sheet = Sheet { buffer: &mut buffer, area, y: 0 };
    sheet.title(picture, &Screen::default());
    sheet.now(picture);
    sheet.troubles(picture);
    let mut y = sheet.y;
    for (tables, needs) in tables.chunks(side_by_side.into()).zip(needs.chunks(side_by_side.into())) {
        for (column, ((panel, table), need)) in (0..side_by_side).zip(tables.iter().zip(needs)) {
            let line = Rect { y, height: need.saturating_sub(1), ..area };
            draw_panel(&mut buffer, part(line, column, side_by_side), *panel, table);
        }
        y += needs.iter().max().copied().unwrap_or_default();
    }
    buffer.resize(Rect { height: y.min(area.height), ..area });
    buffer
}

/// Takes every colour away. What matters is said in words, too.
pub(super) fn without_colour(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        (cell.fg, cell.bg) = (Color::Reset, Color::Reset);
    }
}

/// Returns the number of lists that stand side by side.
const fn side_by_side(width: u16) -> u16 {
    if width >= TWO_COLUMNS { 2 } else { 1 }
}

/// Returns the part of an area that a list has among those beside it.
const fn part(area: Rect, column: u16, columns: u16) -> Rect {
    let width = (area.width - (columns - 1) * 2) / columns;
    Rect { x: area.x + column * (width + 2), width, ..area }
}

/// Returns the height that a list needs, with a line below it.
fn need(table: &Table, width: u16) -> u16 {
    let lines = if table.rows.is_empty() { wrapped(table.empty, width.into()).len() } else { table.rows.len() + 1 };
    u16::try_from(lines + 2).unwrap_or(u16::MAX)
}

/// Returns the lists in the order in which they matter: those with rows before those without. The list of reasons keeps its place without
/// rows, too: that nothing has asked the origin is worth the first place.
fn shown(picture: &Picture) -> Vec<(Panel, Table)> {
    let has_sites = picture.shows_several();
    let panels = PANELS.into_iter().map(|(panel, _)| panel).filter(|panel| *panel != Panel::Sites || has_sites);
    let mut tables: Vec<_> = panels.map(|panel| (panel, panel.table(picture))).collect();
    tables.sort_by_key(|(panel, table)| table.rows.is_empty() && *panel != Panel::Reasons);
    tables
}

/// Draws all lists that have room.
fn together(buffer: &mut Buffer, room: Rect, picture: &Picture) {
    let side_by_side = side_by_side(room.width);
    let mut tables = shown(picture);
    tables.truncate(usize::from((room.height / PANEL_MIN).max(1)) * usize::from(side_by_side));
    for column in 0..side_by_side {
        let below: Vec<&(Panel, Table)> = tables.iter().skip(column.into()).step_by(side_by_side.into()).collect();
        let area = part(room, column, side_by_side);
        let needs: Vec<u16> = below.iter().map(|(_, table)| need(table, area.width)).collect();
        let mut y = area.y;
        for ((panel, table), height) in below.into_iter().zip(share_out(&needs, area.height)) {
            // The line below a list stays free, unless it is the last one.
            let is_last = y + height >= area.bottom();
            draw_panel(buffer, Rect { y, height: if is_last { height } else { height - 1 }, ..area }, *panel, table);
            y += height;
        }
    }
}

/// Gives everybody what they need as far as there is room: who needs less than the others leaves the rest to them.
fn share_out(needs: &[u16], room: u16) -> Vec<u16> {
    let mut order: Vec<usize> = (0..needs.len()).collect();
    order.sort_by_key(|place| needs[*place]);
    let mut given = vec![0; needs.len()];
    let mut left = room;
    for (taken, place) in order.into_iter().enumerate() {
        let others = u16::try_from(needs.len() - taken).unwrap_or(u16::MAX);
        given[place] = needs[place].min(left / others);
        left -= given[place];
    }
    given
}

fn draw_panel(buffer: &mut Buffer, area: Rect, panel: Panel, table: &Table) {
    if area.is_empty() {
        return;
    }
    heading(buffer, Rect { height: 1, ..area }, panel);
    table.draw(buffer, Rect { y: area.y + 1, height: area.height - 1, ..area }, 0, None);
}

fn heading(buffer: &mut Buffer, area: Rect, panel: Panel) {
    let (x, _) = buffer.set_stringn(area.x, area.y, format!("{} ", panel.key()), area.width.into(), Modifier::DIM);
    let title = fit(panel.title(), area.right().saturating_sub(x).into());
    let (x, _) = buffer.set_stringn(x, area.y, title, area.width.into(), Style::new().fg(Color::Cyan).add_modifier(Modifier::BOLD));
    for x in (x + 1).min(area.right())..area.right() {
        buffer.set_stringn(x, area.y, "─", 1, Modifier::DIM);
    }
}

/// Draws one list, and below it all that is known of the row that is chosen.
fn alone(buffer: &mut Buffer, room: Rect, panel: Panel, picture: &Picture, screen: &Screen) {
    let table = panel.table(picture);
    let place = screen.place(picture);
    if room.is_empty() {
        return;
    }
    heading(buffer, Rect { height: 1, ..room }, panel);
    let mut details = table.rows.get(place).map(|row| details(&row.details, room.width)).unwrap_or_default();
    // The list has half of the room, and leaves to the details what it does not need.
    let needed = need(&table, room.width).min(room.height / 2);
    details.truncate((room.height - needed).into());
    let below = u16::try_from(details.len()).unwrap_or(u16::MAX);
    let list = Rect { y: room.y + 1, height: (room.height - 1).saturating_sub(if below > 0 { below + 1 } else { 0 }), ..room };
    // The titles of the columns take a line.
    let rows = usize::from(list.height.saturating_sub(1)).max(1);
    table.draw(buffer, list, (place + 1).saturating_sub(rows), Some(place));
    for ((label, line), y) in details.iter().zip(room.bottom() - below..room.bottom()) {
        buffer.set_stringn(room.x, y, label, DETAIL.into(), Modifier::DIM);
        let x = room.x + DETAIL.min(room.width);
        buffer.set_stringn(x, y, line, (room.right() - x).into(), Style::new());
    }
}

/// The width of the labels of details.
const DETAIL: u16 = 18;

/// Divides details into lines.
fn details(details: &[(&'static str, String)], width: u16) -> Vec<(&'static str, String)> {
    let room = usize::from(width.saturating_sub(DETAIL));
    let lines = details.iter().flat_map(|(label, text)| {
        let lines = wrapped(text, room).into_iter().take(DETAIL_LINES_MAX).enumerate();
        lines.map(move |(number, line)| (if number == 0 { *label } else { "" }, line))
    });
    lines.collect()
}

/// The lines that one detail takes at most: an address may have thousands of letters.
const DETAIL_LINES_MAX: usize = 4;

/// The area in which lines are drawn, one below the other.
struct Sheet<'a> {
    buffer: &'a mut Buffer,
    area: Rect,
    y: u16,
}

impl Sheet<'_> {
    /// Returns the next line, if there is one.
    fn next(&mut self) -> Option<Rect> {
        let line = (self.y < self.area.bottom()).then_some(Rect { y: self.y, height: 1, ..self.area });
        self.y = self.y.saturating_add(1);
        line
    }

    /// Returns what is left but for so many lines at the end.
    const fn rest(&self, below: u16) -> Rect {
        let end = self.area.bottom().saturating_sub(below);
        Rect { y: self.y, height: end.saturating_sub(self.y), ..self.area }
    }

    fn line(&mut self, text: &str, style: impl Into<Style>) {
        let Some(line) = self.next() else { return };
        let shown = fit(text, line.width.into());
        self.buffer.set_stringn(line.x, line.y, shown, line.width.into(), style);
    }

    /// Says whose picture it is, and of when.
    fn title(&mut self, picture: &Picture, screen: &Screen) {
        let Some(line) = self.next() else { return };
        let sites = match &picture.site {
            Some(site) => visible(site).into_owned(),
            None if picture.seen.sites.len() == 1 => visible(&picture.seen.sites[0]).into_owned(),
            None => format!("all {} sites", picture.seen.sites.len()),
        };
        let state = if screen.is_paused { "stands still at " } else { "" };
        let clock = format!("{state}{} UTC", time_of_day(picture.now()));
        let left = format!("Seawall {}  {sites}", picture.address);
        let room = usize::from(line.width).saturating_sub(columns(&clock) + 2);
        // On a narrow terminal, the site matters more than the address.
        let left = if columns(&left) > room { sites } else { left };
        self.buffer.set_stringn(line.x, line.y, fit(&left, room), room, Modifier::BOLD);
        let x = line.right().saturating_sub(u16::try_from(columns(&clock)).unwrap_or(u16::MAX));
        let style = if screen.is_paused { Style::new().fg(Color::Yellow) } else { Style::new().add_modifier(Modifier::DIM) };
        self.buffer.set_stringn(x.max(line.x), line.y, clock, line.width.into(), style);
    }

    /// Says what happens now in two lines.
    fn now_in_short(&mut self, picture: &Picture) {
        let history = &picture.history;
        let ((hits, _), (requests, _)) = (history.sum(Column::Hits), history.sum(Column::Requests));
        let failed = failures(picture);
        let hits = if requests == 0 { String::new() } else { format!("  hits {}", share(hits, requests)) };
        let origin = rate(history.rate(Column::OriginRequests));
        self.line(&format!("{}{hits}  origin {origin}", rate(history.rate(Column::Requests))), Modifier::BOLD);
        if let Some(failed) = failed {
            self.line(&failed, Color::Red);
        }
    }

    /// Says what happens now, with curves of what happened before.
    fn now(&mut self, picture: &Picture) {
        let history = &picture.history;
        let sum = |column| history.sum(column).0;
        let value = |column: Column| move |second: &Second| Some(second[column as usize]);
        self.gauge(picture, "requests", &rate(history.rate(Column::Requests)), Color::Cyan, value(Column::Requests));
        let hits = match (sum(Column::Requests), sum(Column::Bytes)) {
            (0, _) => "-".to_owned(),
            (requests, 0) => share(sum(Column::Hits), requests),
            (requests, all) => format!("{}, in bytes {}", share(sum(Column::Hits), requests), share(sum(Column::HitBytes), all)),
        };
        self.gauge(picture, "hits", &hits, Color::Green, |second| {
            let (hits, requests) = (second[Column::Hits as usize], second[Column::Requests as usize]);
            hits.saturating_mul(1_000).checked_div(requests)
        });
        let origin = match sum(Column::OriginRequests) {
            0 => "not asked".to_owned(),
            asked => format!("{}, {} each", rate(history.rate(Column::OriginRequests)), micros(sum(Column::OriginMicros) / asked)),
        };
        self.gauge(picture, "origin", &origin, Color::Yellow, value(Column::OriginMicros));
        let latency =
            history.latency().map_or_else(|| "-".to_owned(), |(half, most)| format!("median {}, 99 % {}", micros(half), micros(most)));
        self.gauge(picture, "latency", &latency, Color::Magenta, value(Column::P99));
        let failed = failures(picture);
        let (words, colour) = failed.as_deref().map_or(("none", Color::Green), |failed| (failed, Color::Red));
        self.gauge(picture, "failed", words, colour, |second| {
            Some(second[Column::ServerErrors as usize] + second[Column::OriginFailures as usize])
        });
        let moment = &picture.moment;
        let connections = count(moment.connections, "connection", "connections");
        let waiting = if moment.waiting == 0 { String::new() } else { format!(", {} wait for an origin", number(moment.waiting)) };
        let memory = match moment.memory {
            (_, 0) => String::new(),
            (used, most) => format!("; memory {} of {}", bytes(used), bytes(most)),
        };
        self.named("open", &format!("{connections}{waiting}{memory}"), Style::new());
        let totals = &picture.seen.totals;
        if totals.requests > 0 {
            let since = about(picture.seen.at.saturating_sub(picture.seen.since) / 1_000);
            let saved = if totals.saved_micros > 0 { format!("; saved {}", micros(totals.saved_micros)) } else { String::new() };
            let in_bytes = if totals.bytes > 0 { format!(", in bytes {}", share(totals.hit_bytes, totals.bytes)) } else { String::new() };
            let hits = share(totals.hits, totals.requests);
            let words = format!("{} in {since}: hits {hits}{in_bytes}{saved}", number(totals.requests));
            self.named("in all", &words, Style::new());
        }
        if self.area.height >= HIGH {
            self.next();
        }
    }

    fn named(&mut self, name: &str, words: &str, style: Style) {
        let Some(line) = self.next() else { return };
        self.buffer.set_stringn(line.x, line.y, name, NAME.into(), Modifier::DIM);
        let x = line.x + NAME.min(line.width);
        let room = usize::from(line.right() - x);
        self.buffer.set_stringn(x, line.y, fit(words, room), room, style);
    }

    /// Draws a name, a value and its curve.
    fn gauge(&mut self, picture: &Picture, name: &str, words: &str, colour: Color, value: impl Fn(&Second) -> Option<u64>) {
        let y = self.y;
        let style = if name == "failed" { Style::new().fg(colour) } else { Style::new().add_modifier(Modifier::BOLD) };
        self.named(name, words, style);
        let from = NAME.max(CURVES).max(NAME + u16::try_from(columns(words)).unwrap_or(u16::MAX).saturating_add(1));
        if self.area.width < NARROW || y >= self.area.bottom() || from >= self.area.width {
            return;
        }
        let width = self.area.width - from;
        let curve: Vec<Option<u64>> = picture.history.last(width.into()).map(|second| second.and_then(&value)).collect();
        // The newest second stands at the right edge, in every curve at the same place.
        let before = usize::from(width).saturating_sub(curve.len());
        let curve = std::iter::repeat_n(None, before).chain(curve);
        let area = Rect { x: self.area.x + from, y, width, height: 1 };
        Sparkline::default()
            .data(curve.collect::<Vec<_>>())
            .style(Style::new().fg(colour))
            .absent_value_symbol(" ")
            .render(area, self.buffer);
    }

    /// Says what is not well: origins that are away, alerts, a server that gives no answer.
    fn troubles(&mut self, picture: &Picture) {
        let troubles = troubles(picture);
        let left = troubles.len().saturating_sub(TROUBLES_MAX);
        for trouble in troubles.iter().take(TROUBLES_MAX) {
            self.line(&trouble.words, Style::new().fg(trouble.colour).add_modifier(Modifier::BOLD));
        }
        if left > 0 {
            self.line(&format!("and {left} more (7 lists outages and alerts)"), Color::Red);
        }
        if !troubles.is_empty() && self.area.height >= HIGH {
            self.next();
        }
    }

    fn help(&mut self) {
        self.next();
        for (key, does) in KEYS {
            let Some(line) = self.next() else { return };
            let x = line.x + KEY.min(line.width);
            let room = usize::from(line.right() - x);
            let mut lines = wrapped(does, room).into_iter();
            let first = lines.next().unwrap_or_default();
            self.buffer.set_stringn(line.x, line.y, key, KEY.into(), Modifier::BOLD);
            self.buffer.set_stringn(x, line.y, first, room, Style::new());
            for more in lines {
                let Some(line) = self.next() else { return };
                self.buffer.set_stringn(x, line.y, more, room, Style::new());
            }
        }
        self.next();
        for (panel, key) in PANELS {
            self.line(&format!("{key}  {}", panel.title()), Style::new());
        }
    }

    /// Says on the last line which keys there are.
    fn keys(&mut self, screen: &Screen) {
        let Some(y) = self.area.bottom().checked_sub(1).filter(|y| *y > self.area.y) else { return };
        let keys = match (screen.is_help, screen.panel) {
            (true, _) => "any key goes back",
            (false, Some(Panel::Sites)) => "Esc all  ↑↓ choose  Enter this site  q end  ? keys",
            (false, Some(_)) => "Esc all  ↑↓ choose  ←→ site  space stop  q end  ? keys",
            (false, None) => "q end  ? keys  1-9 one list  ←→ site  space stop",
        };
        let width = usize::from(self.area.width);
        self.buffer.set_style(Rect { y, height: 1, ..self.area }, Style::new());
        self.buffer.set_stringn(self.area.x, y, " ".repeat(width), width, Style::new());
        self.buffer.set_stringn(self.area.x, y, fit(keys, width), width, Modifier::DIM);
    }
}

/// The width of the names of keys.
const KEY: u16 = 13;

/// Says how much fails, if something does.
fn failures(picture: &Picture) -> Option<String> {
    let history = &picture.history;
    let parts = [(Column::ServerErrors, "5xx"), (Column::OriginFailures, "without an answer of the origin"), (Column::ClientErrors, "4xx")];
    // Clients' own mistakes are not a failure by themselves.
    if parts[..2].iter().all(|(column, _)| history.sum(*column).0 == 0) {
        return None;
    }
    let words = parts.into_iter().filter(|(column, _)| history.sum(*column).0 > 0);
    Some(words.map(|(column, words)| format!("{} {words}", rate(history.rate(column)))).collect::<Vec<_>>().join(", "))
}

/// Says what is not well, and the colour that says how bad it is.
struct Trouble {
    words: String,
    colour: Color,
}

impl Trouble {
    const fn bad(words: String) -> Self {
        Self { words, colour: Color::Red }
    }
}

/// Says what is not well, the worst first.
fn troubles(picture: &Picture) -> Vec<Trouble> {
    let mut troubles: Vec<Trouble> = picture.trouble.iter().cloned().map(Trouble::bad).collect();
    let is_shown = |site: &str| picture.site.as_deref().is_none_or(|shown| shown == site);
    for site in picture.moment.down.iter().filter(|site| is_shown(site)) {
        let outage = picture.seen.outages.iter().find(|outage| outage.site == *site && outage.until.is_none());
        let more = outage.map_or_else(String::new, |outage| {
            format!(" ({}) for {}", visible(&outage.address), span(picture.now().saturating_sub(outage.from) / 1_000))
        });
        troubles.push(Trouble::bad(format!("DOWN: the origin of {}{more}", visible(site))));
    }
    let (right, wrong): (Vec<_>, Vec<_>) =
        picture.moment.alerts.iter().filter(|alert| alert.until.is_none()).partition(|alert| alert.right_since.is_some());
    troubles.extend(wrong.iter().map(|alert| Trouble::bad(format!("ALERT: {}", visible(&alert.text)))));
    troubles.extend(right.iter().map(|alert| {
        let since = span(picture.now().saturating_sub(alert.right_since.unwrap_or_default()) / 1_000);
        Trouble { words: format!("RIGHT AGAIN for {since}. It was: {}", visible(&alert.text)), colour: Color::Green }
    }));
    troubles
}
