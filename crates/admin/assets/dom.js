// Elements. What strangers sent becomes text here and nothing else: there is no function that takes markup.

export const byId = (id) => document.getElementById(id);

/** Makes an element. `text` is its text, `on` its listeners; everything else are attributes, and what is null is left out. */
export function el(tag, { text, on, ...attributes } = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== null && value !== undefined) node.setAttribute(name, value);
  for (const [name, listener] of Object.entries(on ?? {})) node.addEventListener(name, listener);
  if (text !== undefined) node.textContent = text;
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

/** Sets a text if it is another one: what did not change is not touched, so that a selection in it stays. */
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** Replaces what is in `node`. */
export const put = (node, ...children) => node.replaceChildren(...children.filter((child) => child !== null && child !== undefined));

// The rows of each box, by their keys.
const shown = new WeakMap();

/**
 * Shows `items` in `box`, each by a node of its own that stays as long as its key does. `make` returns a node and how it shows an item: everything that
 * changes must stand in the item, as `make` is called once. While somebody points
 * at the box or has the focus in it, its rows keep their places: what is about to be pressed does not move away.
 */
export function rows(box, items, keyOf, make, nothing) {
  if (!shown.has(box)) shown.set(box, new Map());
  const known = shown.get(box);
  const still = box.matches(':hover, :focus-within') && known.size > 0;
  const wanted = new Map(items.map((item) => [keyOf(item), item]));
  for (const [key, row] of known) {
    if (!wanted.has(key) && !still) {
      row.node.remove();
      known.delete(key);
    }
  }
  let place = 0;
  for (const [key, item] of wanted) {
    let row = known.get(key);
    if (!row) {
      if (still) continue;
      row = make(item);
      known.set(key, row);
    }
    row.show(item);
    if (!still && box.children[place] !== row.node) box.insertBefore(row.node, box.children[place] ?? null);
    place += 1;
  }
  const empty = box.querySelector(':scope > .nothing');
  if (known.size > 0 || nothing === '') empty?.remove();
  else if (!empty) box.append(box.tagName === 'TBODY' ? el('tr', { class: 'nothing' }, el('td', { colspan: 9, text: nothing })) : el('li', { class: 'nothing', text: nothing }));
  else say(box.tagName === 'TBODY' ? empty.firstChild : empty, nothing);
}
