//! The times in which origins could not be reached, and the purges that were carried out: the last ones.

use std::collections::VecDeque;

use admin_api::{Outage, PurgeLine};

use crate::{
    disk::{Broken, Reader, put, put_text},
    memory::of_text,
    site::SITE_BYTES_MAX,
    text::shortened,
};

/// Outages that are kept. Of a site with many, the oldest leave first.
const OUTAGES_MAX: usize = 128;
/// Purges that are kept.
const PURGES_MAX: usize = 64;
/// Bytes of the longest text of either.
const TEXT_BYTES_MAX: usize = 160;

/// The last outages, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Outages(Vec<Outage>);

impl Outages {
    /// Begins an outage, unless one of the same origin lasts.
    pub(crate) fn begin(&mut self, site: &str, address: &str, at: u64) {
        let address = shortened(address, TEXT_BYTES_MAX);
        if self.lasting(site, &address).is_some() {
            return;
        }
        if self.0.len() == OUTAGES_MAX {
            // The oldest that has ended, of the site that has most: another site's are not pushed out.
            let count = |site: &str| self.0.iter().filter(|outage| outage.site == site).count();
            let most = self.0.iter().max_by_key(|outage| count(&outage.site)).map(|outage| outage.site.clone()).unwrap_or_default();
            let oldest = self.0.iter().position(|outage| outage.site == most && outage.until.is_some());
            self.0.remove(oldest.unwrap_or(0));
        }
        self.0.push(Outage { site: site.to_owned(), address, from: at, until: None });
    }

    /// Ends an outage, if there is one.
    pub(crate) fn end(&mut self, site: &str, address: &str, at: u64) {
        let address = shortened(address, TEXT_BYTES_MAX);
        if let Some(outage) = self.lasting(site, &address) {
            outage.until = Some(at.max(outage.from));
        }
    }

    fn lasting(&mut self, site: &str, address: &str) -> Option<&mut Outage> {
        self.0.iter_mut().find(|outage| outage.until.is_none() && outage.site == site && outage.address == address)
    }

    /// Ends the outages of origins that are none of these sites' any more.
    pub(crate) fn end_all_but(&mut self, sites: &[&str], at: u64) {
        for outage in self.0.iter_mut().filter(|outage| outage.until.is_none() && !sites.contains(&&*outage.site)) {
            outage.until = Some(at.max(outage.from));
        }
    }

    /// Returns the outages of a site, or all, the newest first.
    pub(crate) fn of(&self, site: Option<&str>) -> Vec<Outage> {
        let mut outages: Vec<Outage> = self.0.iter().filter(|outage| site.is_none_or(|site| outage.site == site)).cloned().collect();
        outages.sort_by_key(|outage| std::cmp::Reverse(outage.from));
        outages
    }

    /// Returns the sites whose origin cannot be reached, each once.
    pub(crate) fn down(&self) -> Vec<String> {
        let mut down: Vec<String> = self.0.iter().filter(|outage| outage.until.is_none()).map(|outage| outage.site.clone()).collect();
        down.sort();
        down.dedup();
        down
    }

    pub(crate) fn bytes(&self) -> usize {
        let texts: usize = self.0.iter().map(|outage| of_text(&outage.site) + of_text(&outage.address)).sum();
        self.0.capacity() * size_of::<Outage>() + texts
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        put(out, self.0.len() as u64);
        for outage in &self.0 {
            put_text(out, &outage.site);
            put_text(out, &outage.address);
            put(out, outage.from);
            put(out, outage.until.map_or(0, |until| until + 1));
        }
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Broken> {
        let mut outages = Self::default();
        for _ in 0..reader.number()? {
            let site = reader.text_within(SITE_BYTES_MAX)?.to_owned();
            let address = reader.text_within(TEXT_BYTES_MAX)?.to_owned();
            let (from, until) = (reader.number()?, reader.number()?.checked_sub(1));
            if outages.0.len() < OUTAGES_MAX {
                outages.0.push(Outage { site, address, from, until });
            }
        }
        Ok(outages)
    }
}

/// The last purges, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Purges(VecDeque<PurgeLine>);

impl Purges {
    pub(crate) fn push(&mut self, purge: &PurgeLine) {
        if self.0.len() == PURGES_MAX {
            self.0.pop_front();
        }
        self.0.push_back(PurgeLine {
            site: shortened(&purge.site, SITE_BYTES_MAX),
            by: shortened(&purge.by, TEXT_BYTES_MAX),
            covered: shortened(&purge.covered, TEXT_BYTES_MAX),
            ..*purge
        });
    }

    /// Returns the purges of a site and those of all sites, the newest first.
    pub(crate) fn of(&self, site: Option<&str>) -> Vec<PurgeLine> {
        let is_of = |purge: &&PurgeLine| site.is_none_or(|site| purge.site == site || purge.site.is_empty());
        self.0.iter().rev().filter(is_of).cloned().collect()
    }

    pub(crate) fn bytes(&self) -> usize {
        let texts: usize = self.0.iter().map(|purge| of_text(&purge.site) + of_text(&purge.by) + of_text(&purge.covered)).sum();
        self.0.capacity() * size_of::<PurgeLine>() + texts
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        put(out, self.0.len() as u64);
        for purge in &self.0 {
            put(out, purge.at);
            put_text(out, &purge.site);
            put_text(out, &purge.by);
            put_text(out, &purge.covered);
            put(out, purge.count.map_or(0, |count| count.saturating_add(1)));
            put(out, u64::from(purge.hard));
        }
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Broken> {
        let mut purges = Self::default();
        for _ in 0..reader.number()? {
            let at = reader.number()?;
            let [site, by, covered] = [reader.text()?, reader.text()?, reader.text()?].map(ToOwned::to_owned);
            let (count, hard) = (reader.number()?.checked_sub(1), reader.number()? != 0);
            purges.push(&PurgeLine { at, site, by, covered, count, hard });
        }
        Ok(purges)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_begins_once_and_ends_once() {
        let mut outages = Outages::default();
        outages.begin("a", "127.0.0.1:1", 10);
        outages.begin("a", "127.0.0.1:1", 20);
        outages.end("b", "127.0.0.1:1", 25);
        assert_eq!(outages.down(), ["a"]);
        outages.end("a", "127.0.0.1:1", 30);
        outages.end("a", "127.0.0.1:1", 40);
        assert_eq!(outages.of(None), [Outage { site: "a".into(), address: "127.0.0.1:1".into(), from: 10, until: Some(30) }]);
        assert!(outages.down().is_empty() && outages.of(Some("b")).is_empty());
    }

    #[test]
    fn a_site_whose_origin_comes_and_goes_pushes_out_its_own_outages() {
        let mut outages = Outages::default();
        outages.begin("quiet", "q", 1);
        outages.end("quiet", "q", 2);
        for n in 0..1_000 {
            outages.begin("flapping", "f", 10 + n);
            outages.end("flapping", "f", 10 + n);
        }
        assert_eq!((outages.0.len(), outages.of(Some("quiet")).len()), (OUTAGES_MAX, 1));
        assert_eq!(outages.of(None)[0].from, 1_009, "the newest is first");
    }

    #[test]
    fn the_last_purges_are_kept_shortened() {
        let mut purges = Purges::default();
        for at in 0..100 {
            purges.push(&PurgeLine { at, site: "a".into(), covered: "/x".repeat(1_000), ..PurgeLine::default() });
        }
        purges.push(&PurgeLine { at: 100, ..PurgeLine::default() });
        let of_a = purges.of(Some("a"));
        assert_eq!((of_a.len(), of_a[0].at, of_a[1].at), (PURGES_MAX, 100, 99));
        assert!(of_a[1].covered.len() <= TEXT_BYTES_MAX);
        assert_eq!(purges.of(Some("b")).len(), 1, "one of all sites is also b's");
    }
}
