//! `seawall cluster`: the machines that act as one, as one of them sees them.

use admin_api::{ClusterState, LimitsState, MachineState, OriginPlaces, Spread, TierState};

use crate::{
    admin_client::{AdminClient, AdminError},
    foreign::visible_answer,
    terminal::{Style, styled},
    units::{count, micros, number, span},
};

/// The time after which a machine that was not seen to change is called silent, in milliseconds: more than the longest lease.
const SILENT_MS: u64 = 60_000;

/// The text about a server that is not part of a cluster.
const ALONE: &str = "This Seawall stands alone: there is no [cluster] in its configuration. See doc/cluster.md\n";

/// Shows the cluster, as text.
///
/// # Errors
/// When the server cannot be reached, is not Seawall, or refuses.
pub fn text(client: &AdminClient, colour: bool) -> Result<String, AdminError> {
    let state: Option<ClusterState> = client.get("/cluster")?;
    Ok(state.map_or_else(|| ALONE.to_owned(), |state| page(&visible_answer(&state), colour)))
}

fn page(state: &ClusterState, colour: bool) -> String {
    let mut text = String::new();
    let mut line = |label: &str, value: &str| {
        let label = styled(format_args!("{label:<10}"), Style::Bold, colour && !label.is_empty());
        text.push_str(&format!("{label}{value}\n"));
    };
    line("cluster", &format!("{} at {}", state.cluster, engine(state)));
    for said in lines(state, colour) {
        line("", &said);
    }
    text.push('\n');
    text.push_str(&table(state, colour));
    text
}

/// Returns what the server is called, or that it has not answered.
fn engine(state: &ClusterState) -> &str {
    if state.engine.is_empty() { "a server that has not answered yet" } else { &state.engine }
}

/// Says how this machine takes part, a line each. `seawall status` shows them, too.
pub(crate) fn lines(state: &ClusterState, colour: bool) -> Vec<String> {
    let mut lines = vec![lease(state, colour)];
    if state.name_is_taken {
        let said =
            format!("another machine is called {}, too: set machine in [cluster] to a name that no other machine has", state.machine);
        lines.push(styled(said, Style::Red, colour));
    }
    if state.pending > 0 {
        let purges = count(state.pending, "purge is", "purges are");
        lines.push(styled(
            format!("{purges} not known to hold everywhere; the other machines are told until they are"),
            Style::Yellow,
            colour,
        ));
    }
    if state.refused > 0 {
        let entries = count(state.refused, "entry was", "entries were");
        let said = format!("{entries} refused: they are not signed with this cluster's secret (is it the same on all machines?)");
        lines.push(styled(said, Style::Yellow, colour));
    }
    let doubts = (state.doubts > 0).then(|| format!("{} without a lease", times(state.doubts)));
    let breaks =
        (state.breaks > 0).then(|| format!("{} everything stored was validated anew, as purges may have been missed", times(state.breaks)));
    let since: Vec<String> = doubts.into_iter().chain(breaks).collect();
    if !since.is_empty() {
        lines.push(format!("since the start: {}", since.join("; ")));
    }
    if let Some(TierState { place, hits, misses, written, refused, open, why }) = &state.tier {
        let found = format!("tier in {place}: {} found, {} not, {} written", number(*hits), number(*misses), number(*written));
        let refused = if *refused == 0 { String::new() } else { format!(", {} refused", number(*refused)) };
        lines.push(format!("{found}{refused}"));
        if *open {
            let why = why.as_deref().unwrap_or("it was too slow, or failed");
            lines.push(styled(format!("the tier is left alone for a while: {why}"), Style::Yellow, colour));
        }
    }
    if let Some(limits) = &state.limits {
        lines.extend(limit_lines(limits, colour));
    }
    lines
}

/// The most origins of which a line is shown, those that need most.
const ORIGINS_SHOWN: usize = 8;

fn limit_lines(limits: &LimitsState, colour: bool) -> Vec<String> {
    let LimitsState { apart, machines, refused, origins, .. } = limits;
    let shared = match machines {
        0 | 1 if *apart => {
            styled("limits: nothing was heard of other machines yet, so this one takes all of each limit".to_owned(), Style::Yellow, colour)
        }
        _ if *apart => {
            let said = format!("limits: nothing is heard of the other machines, so this one takes one part of {machines}");
            styled(said, Style::Yellow, colour)
        }
        _ => format!("limits are shared by {}", count(u64::from((*machines).max(1)), "machine", "machines")),
    };
    let mut lines = vec![shared];
    if *refused > 0 {
        let said = format!(
            "limits: {} refused, as no machine of this cluster wrote what was there",
            count(*refused, "report or line was", "reports or lines were")
        );
        lines.push(styled(said, Style::Yellow, colour));
    }
    let mut busy: Vec<&OriginPlaces> = origins.iter().filter(|origin| origin.needed > 0).collect();
    busy.sort_by_key(|origin| std::cmp::Reverse(origin.needed));
    lines.extend(busy.iter().take(ORIGINS_SHOWN).map(|origin| {
        let OriginPlaces { origin, limit, granted, needed, .. } = origin;
        format!("origin of {origin}: {granted} of {limit} requests at once are this machine's, and it needs {needed}")
    }));
    lines
}

fn times(number: u64) -> String {
    if number == 1 { "once".to_owned() } else { count(number, "time", "times") }
}

fn lease(state: &ClusterState, colour: bool) -> String {
    if state.leased {
        return format!("{} has a lease: purges of all machines hold here", styled(&state.machine, Style::Bold, colour));
    }
    let since = span(state.in_doubt_ms / 1_000);
    let why = state.why.as_deref().map(|why| format!(" ({why})")).unwrap_or_default();
    let said = format!("{} has had no lease for {since}{why}: it validates what it has stored before it shows it", state.machine);
    styled(said, Style::Red, colour)
}

fn table(state: &ClusterState, colour: bool) -> String {
    if state.machines.is_empty() {
        return "No machine is known: the server has not answered yet.\n".to_owned();
    }
    let is_shared = state.machines.iter().filter(|machine| machine.name == state.machine).count() > 1;
    let row = |machine: &MachineState| {
        // Of two with the same name, one alone has a lease.
        let is_this = machine.name == state.machine && (machine.leased == state.leased || !is_shared);
        let lease = if machine.leased { "yes" } else { "no" };
        let behind = match machine.behind {
            Some(0) => "0".to_owned(),
            Some(behind) => count(behind, "purge", "purges"),
            None => "unknown".to_owned(),
        };
        let seen = match machine.seen_ms {
            _ if is_this => "this machine".to_owned(),
            silent if silent >= SILENT_MS => format!("silent for {}", span(silent / 1_000)),
            seen => format!("{} ago", micros(seen * 1_000)),
        };
        [machine.name.clone(), machine.version.clone(), lease.to_owned(), behind, seen]
    };
    let head = ["MACHINE", "VERSION", "LEASE", "BEHIND", "SEEN"].map(str::to_owned);
    let rows: Vec<[String; 5]> = std::iter::once(head).chain(state.machines.iter().map(row)).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths = [0, 1, 2, 3].map(width);
    let mut text = String::new();
    for (at, [name, version, lease, behind, seen]) in rows.iter().enumerate() {
        let line = format!("{name:<0$}  {version:<1$}  {lease:<2$}  {behind:<3$}  {seen}", widths[0], widths[1], widths[2], widths[3]);
        let is_leased = at == 0 || state.machines[at - 1].leased;
        text.push_str(&if is_leased { line } else { styled(line, Style::Yellow, colour) });
        text.push('\n');
    }
    text
}

/// Says how far a purge went: whether it holds everywhere, and what is known of each machine.
pub(crate) fn spread_in_words(spread: &Spread) -> String {
    let took = micros(spread.took_ms * 1_000);
    let of = |names: &[String], one: &str, many: &str| match names {
        [] => None,
        [name] => Some(format!("{name} {one}")),
        names => Some(format!("{} {many}", listed(names))),
    };
    let known = [
        of(&spread.confirmed, "has confirmed it", "have confirmed it"),
        of(&spread.expired, "did not answer, and validates what it has stored", "did not answer, and validate what they have stored"),
        of(&spread.missing, "is not known to have it", "are not known to have it"),
    ];
    let known: Vec<String> = known.into_iter().flatten().collect();
    let known = if known.is_empty() { String::new() } else { format!(" {}.", known.join("; ")) };
    if spread.everywhere {
        return format!("It holds everywhere, after {took}.{known}");
    }
    let why = spread.why.as_deref().map(|why| format!(": {}", why.trim_end_matches('.'))).unwrap_or_default();
    format!("It is not known to hold everywhere{why}.{known}")
}

fn listed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [name] => name.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn state() -> ClusterState {
        let machine = |name: &str, leased, behind, seen_ms| MachineState {
            name: name.to_owned(),
            version: "1.2.3".to_owned(),
            leased,
            position: "1-0".to_owned(),
            behind,
            seen_ms,
        };
        ClusterState {
            cluster: "seawall".to_owned(),
            machine: "web1".to_owned(),
            engine: "redis://10.0.0.5:6379, valkey 8.1.1".to_owned(),
            leased: true,
            machines: vec![machine("web1", true, Some(0), 12), machine("web2", true, Some(1), 340), machine("web3", false, None, 90_000)],
            ..ClusterState::default()
        }
    }

    #[test]
    fn a_person_sees_every_machine_and_its_lease() {
        let expected = "\
cluster   seawall at redis://10.0.0.5:6379, valkey 8.1.1
          web1 has a lease: purges of all machines hold here

MACHINE  VERSION  LEASE  BEHIND   SEEN
web1     1.2.3    yes    0        this machine
web2     1.2.3    yes    1 purge  340 ms ago
web3     1.2.3    no     unknown  silent for 1 min 30 s
";
        assert_eq!(page(&state(), false), expected);
    }

    #[test]
    fn a_machine_in_doubt_says_why_and_what_it_does() {
        let state = ClusterState {
            leased: false,
            why: Some("redis://10.0.0.5:6379 did not answer within 1000 ms".to_owned()),
            in_doubt_ms: 61_500,
            doubts: 1,
            breaks: 2,
            refused: 1,
            pending: 3,
            name_is_taken: true,
            ..state()
        };
        let shown = page(&state, false);
        for expected in [
            "web1 has had no lease for 1 min 1 s (redis://10.0.0.5:6379 did not answer within 1000 ms): it validates what it has stored",
            "another machine is called web1, too",
            "3 purges are not known to hold everywhere",
            "1 entry was refused: they are not signed",
            "since the start: once without a lease; 2 times everything stored was validated anew",
        ] {
            assert!(shown.contains(expected), "{expected} in {shown}");
        }
    }

    #[test]
    fn a_tier_says_where_it_is_and_why_it_is_left_alone() {
        let tier = |open, why: Option<&str>| TierState {
            place: "s3://pages/seawall".to_owned(),
            hits: 1_200,
            misses: 3,
            written: 4,
            refused: 5,
            open,
            why: why.map(str::to_owned),
        };
        for (tier, expected) in [
            (tier(false, None), "tier in s3://pages/seawall: 1,200 found, 3 not, 4 written, 5 refused\n"),
            (tier(true, None), "the tier is left alone for a while: it was too slow, or failed\n"),
            (tier(true, Some("there is no bucket of this name")), "the tier is left alone for a while: there is no bucket of this name\n"),
        ] {
            let shown = page(&ClusterState { tier: Some(tier), ..state() }, false);
            assert!(shown.contains(expected), "{expected} in {shown}");
        }
    }

    /// A machine whose server has never answered, as with a wrong password, knows of no other machine.
    #[test]
    fn a_machine_that_hears_nothing_says_which_part_of_the_limits_it_takes() {
        for (apart, machines, expected) in [
            (true, 0, "limits: nothing was heard of other machines yet, so this one takes all of each limit\n"),
            (true, 1, "limits: nothing was heard of other machines yet, so this one takes all of each limit\n"),
            (true, 3, "limits: nothing is heard of the other machines, so this one takes one part of 3\n"),
            (false, 0, "limits are shared by 1 machine\n"),
            (false, 3, "limits are shared by 3 machines\n"),
        ] {
            let shown = page(&ClusterState { limits: Some(LimitsState { apart, machines, ..LimitsState::default() }), ..state() }, false);
            assert!(shown.contains(expected), "{expected} in {shown}");
        }
    }

    #[test]
    fn of_two_machines_with_one_name_this_one_is_told_apart() {
        let mut state = ClusterState { leased: false, name_is_taken: true, breaks: 1, ..state() };
        state.machines.truncate(2);
        (state.machines[0].leased, state.machines[1].name) = (false, "web1".to_owned());
        let shown = page(&state, false);
        for expected in [
            "web1     1.2.3    no     0        this machine\n",
            "web1     1.2.3    yes    1 purge  340 ms ago\n",
            "since the start: once everything stored was validated anew",
        ] {
            assert!(shown.contains(expected), "{expected} in {shown}");
        }
    }

    #[test]
    fn a_purge_says_which_machines_have_it() {
        let spread = Spread { everywhere: true, confirmed: names(&["web1", "web2", "web3"]), took_ms: 4, ..Spread::default() };
        assert_eq!(spread_in_words(&spread), "It holds everywhere, after 4.0 ms. web1, web2 and web3 have confirmed it.");
        let spread =
            Spread { everywhere: true, confirmed: names(&["web1"]), expired: names(&["web2"]), took_ms: 2_060, ..Spread::default() };
        assert_eq!(
            spread_in_words(&spread),
            "It holds everywhere, after 2.1 s. web1 has confirmed it; web2 did not answer, and validates what it has stored."
        );
        let why = Some("the server did not answer; it is told again until it does".to_owned());
        let spread = Spread { confirmed: names(&["web1"]), missing: names(&["web2"]), why, ..Spread::default() };
        assert_eq!(
            spread_in_words(&spread),
            "It is not known to hold everywhere: the server did not answer; it is told again until it does. \
             web1 has confirmed it; web2 is not known to have it."
        );
        assert_eq!(spread_in_words(&Spread::default()), "It is not known to hold everywhere.");
    }
}
