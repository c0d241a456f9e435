// The script of the search in Node, with as much of a page as it needs: node --test crates/blog/tests/search.test.mjs
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import vm from "node:vm";

const script = readFileSync(new URL("../theme/search.js", import.meta.url), "utf8");

class Element {
  constructor(name, dataset = {}) {
    Object.assign(this, { name, dataset, children: [], listeners: {}, textContent: "", value: "" });
  }
  addEventListener(kind, listener) {
    this.listeners[kind] = listener;
  }
  appendChild(child) {
    this.children.push(child);
    return child;
  }
  append() {}
  replaceChildren(...children) {
    this.children = children;
  }
  querySelector() {
    return this.input;
  }
}

/** Opens a search page whose index is `index`, at an address with this query. */
function open(index, { query = "", language = "en", answer } = {}) {
  const form = new Element("form", { search: "/search.json" });
  form.input = new Element("input");
  const status = new Element("p", { searching: "Searching…", nothing: "Nothing.", failed: "Failed.", partial: "Not all.", one: "{n} result", few: "{n} few", many: "{n} many", other: "{n} results" });
  const list = new Element("ol");
  const found = { "[data-search]": form, "[data-search-status]": status, "[data-search-results]": list };
  const page = { form, status, list, fetched: [], address: undefined };
  const context = vm.createContext({
    document: { documentElement: { lang: language }, querySelector: (selector) => found[selector], createElement: (name) => new Element(name) },
    fetch: async (url) => {
      page.fetched.push(url);
      return answer ? answer() : { ok: true, json: async () => index };
    },
    history: { replaceState: (_, __, address) => (page.address = address) },
    location: { search: query, pathname: "/search/" },
    Intl, URLSearchParams, encodeURIComponent, Promise,
  });
  vm.runInContext(script, context);
  page.type = async (text) => {
    form.input.value = text;
    form.input.listeners.input();
    await new Promise((resolve) => setImmediate(resolve));
  };
  page.titles = () => list.children.map((item) => item.children[0].textContent);
  return page;
}

/** Makes an index as search.rs does, of texts whose words are given. */
function index(posts, more = {}) {
  const words = new Map();
  posts.forEach(({ words: ofText = [] }, place) => {
    for (const word of new Set(ofText)) words.set(word, [...(words.get(word) || []), place]);
  });
  const sorted = [...words].sort(([a], [b]) => (a < b ? -1 : 1));
  const distances = (places) => places.map((place, at) => (place - (places[at - 1] ?? 0)).toString(36)).join(",");
  return {
    posts: posts.map(({ title, tags = [], summary = "", url = "/x/", day = "2026-03-01", date = "1 March 2026" }) => [title, url, day, date, summary, tags]),
    words: sorted.map(([word]) => word).join(" "),
    places: sorted.map(([, places]) => distances(places)).join(";"),
    left_out: 0,
    unsearched: 0,
    ...more,
  };
}

const posts = [
  { title: "Waves", words: ["storm", "sea"], tags: ["Ærø"] },
  { title: "Straße am Meer", words: ["zurich", "wellen", "wall"] },
  { title: "日本語の話", words: ["海の", "の波", "波"] },
  { title: "A wall", words: ["stone", "wave"], summary: "Of Łódź." },
];

test("the index is loaded when somebody types, and once", async () => {
  const page = open(index(posts));
  assert.deepEqual(page.fetched, []);
  await page.type("w");
  await page.type("wa");
  assert.deepEqual(page.fetched, ["/search.json"]);
});

test("words are found by their beginning, without accents, in titles, tags, summaries and texts", async () => {
  const page = open(index(posts));
  const cases = [
    ["wave", ["Waves", "A wall"]],
    ["STRASSE", ["Straße am Meer"]],
    ["straße meer", ["Straße am Meer"]],
    ["Zürich", ["Straße am Meer"]],
    ["aero", ["Waves"]],
    ["lodz", ["A wall"]],
    ["日本", ["日本語の話"]],
    ["日本語", ["日本語の話"]],
    ["海の波", ["日本語の話"]],
    ["波", ["日本語の話"]],
    ["wall stone", ["A wall"]],
    ["wall storm", []],
    ["eave", []],
  ];
  for (const [typed, expected] of cases) {
    await page.type(typed);
    assert.deepEqual(page.titles(), expected, typed);
  }
});

test("titles count more than texts, and the newest comes first among equals", async () => {
  const page = open(index([{ title: "New", words: ["tide"] }, { title: "Tide" }, { title: "Old", words: ["tide"] }]));
  await page.type("tide");
  assert.deepEqual(page.titles(), ["Tide", "New", "Old"]);
});

test("the number of results is said, in the plural of the language", async () => {
  const page = open(index(posts), { language: "ru" });
  await page.type("wa");
  assert.equal(page.status.textContent, "3 few");
  await page.type("nothing at all");
  assert.equal(page.status.textContent, "Nothing.");
  await page.type("");
  assert.deepEqual([page.status.textContent, page.titles()], ["", []]);
});

test("an index that does not hold everything says so", async () => {
  const page = open(index(posts, { unsearched: 3 }));
  await page.type("stone");
  assert.equal(page.status.textContent, "1 result Not all.");
});

test("what is asked in the address is searched, and what is typed goes there", async () => {
  const page = open(index(posts), { query: "?q=stone" });
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(page.titles(), ["A wall"]);
  await page.type("a b&c");
  assert.equal(page.address, "?q=a%20b%26c");
  await page.type("");
  assert.equal(page.address, "/search/");
});

test("a failure is said, and the next key tries again", async () => {
  const page = open(index(posts), { answer: () => ({ ok: page.fetched.length > 1, json: async () => index(posts) }) });
  await page.type("w");
  assert.equal(page.status.textContent, "Failed.");
  await page.type("wa");
  assert.equal(page.titles().length, 3);
});

test("results are text, whatever is in a title", async () => {
  const page = open(index([{ title: "<img src=x onerror=alert(1)>", url: "/a/" }]));
  await page.type("img");
  const [link] = page.list.children[0].children;
  assert.deepEqual([link.name, link.textContent, link.href], ["a", "<img src=x onerror=alert(1)>", "/a/"]);
});

// The cases of search.rs: `words_are_those_that_people_type`.
test("words are made as in the index", async () => {
  const cases = [
    ["Don't panic, 42!", ["don", "t", "panic", "42"]],
    ["Zürich Straße ÆRØ Łódź İstanbul", ["zurich", "strasse", "aero", "lodz", "istanbul"]],
    ["Ёлка Αθήνα ΟΔΟΣ", ["елка", "αθηνα", "οδοσ"]],
    ["日本語 Rustの話", ["日本", "本語", "語", "rust", "の話", "話"]],
    ["ガラス", ["ガラ", "ラス", "ス"]],
    ["हिन्दी", ["हिन्दी"]],
    ["서울 여행", ["서울", "여행"]],
    ["ﬁne １２", ["fine", "12"]],
    ["שָׁלוֹם", ["שלום"]],
  ];
  const context = vm.createContext({ document: { querySelector: () => null } });
  const made = script.match(/ {2}const range = [\s\S]*?(?= {2}\/\/ What is typed last)/)[0];
  const terms = vm.runInContext(`${made}; terms`, context);
  for (const [text, expected] of cases) assert.deepEqual([...terms(text)], expected.map((term) => term.normalize("NFC")), text);
});
