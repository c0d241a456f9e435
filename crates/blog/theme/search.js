// Finds posts without a server: loads the index when somebody types, and shows what matches. The page says what is where, in data attributes.
(() => {
  const form = document.querySelector("[data-search]");
  const status = document.querySelector("[data-search-status]");
  const list = document.querySelector("[data-search-results]");
  const input = form && form.querySelector("input[type=search]");
  if (!input || !status || !list) return;
  const SHOWN_MAX = 50;
  const language = document.documentElement.lang || "en";
  let index;
  let loading;
  let shown;

  // As in search.rs.
  const range = "\\u0e00-\\u0eff\\u1000-\\u109f\\u1780-\\u17ff\\u3005-\\u30ff\\u3400-\\u9fff\\uf900-\\ufaff\\u{20000}-\\u{3ffff}";
  const unspaced = new RegExp(`[${range}]`, "u");
  const runs = new RegExp(`[${range}]+|[^${range}]+`, "gu");
  const letters = { ß: "ss", æ: "ae", œ: "oe", þ: "th", ø: "o", ł: "l", đ: "d", ð: "d", ħ: "h", ı: "i", ς: "σ", "\u200c": "", "\u200d": "", "\u00ad": "" };
  const fold = (text) =>
    text
      .toLowerCase()
      .normalize("NFKD")
      .replace(/[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u064b-\u0652\u0670]/g, "")
      .normalize("NFC")
      .replace(/[ßæœþøłđðħıς\u200c\u200d\u00ad]/g, (letter) => letters[letter]);
  const terms = (text) =>
    (fold(text).match(/[\p{Alphabetic}\p{N}\p{M}]+/gu) || []).flatMap((word) =>
      word.match(runs).flatMap((run) => {
        const signs = Array.from(run);
        if (!unspaced.test(signs[0])) return signs.length > 32 ? [] : [run];
        return signs.map((sign, at) => sign + (signs[at + 1] || ""));
      }),
    );
  // What is typed last may go on: of scripts without spaces, its last sign alone is part of the pair before it.
  const wanted = (text) => {
    const all = terms(text);
    return [...new Set(all.filter((term, at) => !(at && unspaced.test(term) && Array.from(term).length === 1 && all[at - 1].endsWith(term))))];
  };

  const open = (data) => {
    const places = data.places ? data.places.split(";") : [];
    return {
      isPartial: data.left_out + data.unsearched > 0,
      posts: data.posts.map(([title, url, day, date, summary, tags]) => {
        return { title, url, day, date, summary, inTitle: terms(title), inTags: tags.flatMap(terms), inSummary: terms(summary) };
      }),
      words: data.words ? data.words.split(" ") : [],
      places: (at) => {
        let place = 0;
        return places[at].split(",").map((distance) => (place += parseInt(distance, 36)));
      },
    };
  };

  const best = (words, term, whole, part) => {
    let score = 0;
    for (const word of words) if (word.startsWith(term)) score = Math.max(score, word === term ? whole : part);
    return score;
  };
  const find = ({ posts, words, places }, text) => {
    const all = wanted(text);
    if (!all.length) return [];
    const scores = posts.map(() => 0);
    const found = posts.map(() => 0);
    for (const term of all) {
      const points = posts.map((post) => Math.max(best(post.inTitle, term, 20, 12), best(post.inTags, term, 10, 6), best(post.inSummary, term, 4, 3)));
      let low = 0;
      for (let high = words.length; low < high; ) {
        const middle = (low + high) >> 1;
        if (words[middle] < term) low = middle + 1;
        else high = middle;
      }
      for (; low < words.length && words[low].startsWith(term); low++) {
        for (const place of places(low)) points[place] = Math.max(points[place], words[low] === term ? 2 : 1);
      }
      points.forEach((score, at) => {
        scores[at] += score;
        if (score) found[at]++;
      });
    }
    const hits = posts.map((post, at) => at).filter((at) => found[at] === all.length);
    // The newest first among equals: they come in this order, and sorting keeps it.
    return hits.sort((a, b) => scores[b] - scores[a]).map((at) => posts[at]);
  };

  const say = (text) => {
    if (status.textContent !== text) status.textContent = text;
  };
  const row = ({ title, url, day, date, summary }) => {
    const item = document.createElement("li");
    const add = (name, text) => {
      const element = item.appendChild(document.createElement(name));
      element.textContent = text;
      item.append(" ");
      return element;
    };
    add("a", title).href = url;
    if (day) add("time", date).dateTime = day;
    if (summary) add("p", summary);
    return item;
  };
  const show = () => {
    const text = input.value.trim();
    if (!index || text === shown) return;
    shown = text;
    const results = find(index, text);
    list.replaceChildren(...results.slice(0, SHOWN_MAX).map(row));
    const form = new Intl.PluralRules(language).select(results.length);
    const count = (status.dataset[form] || status.dataset.other).replace("{n}", results.length);
    const told = results.length ? count : status.dataset.nothing;
    say(!text ? "" : index.isPartial ? told + " " + status.dataset.partial : told);
  };
  const search = async () => {
    const text = input.value.trim();
    history.replaceState(null, "", text ? "?q=" + encodeURIComponent(text) : location.pathname);
    if (!index && text) {
      say(status.dataset.searching);
      try {
        loading = loading || fetch(form.dataset.search).then((answer) => (answer.ok ? answer.json() : Promise.reject()));
        index = open(await loading);
      } catch {
        loading = undefined;
        say(status.dataset.failed);
        return;
      }
    }
    show();
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    search();
  });
  input.addEventListener("input", search);
  const asked = new URLSearchParams(location.search).get("q");
  if (asked) {
    input.value = asked;
    search();
  }
})();
