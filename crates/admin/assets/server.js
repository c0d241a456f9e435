// What is asked of the server: answers as JSON, one event each second, commands by whoever has signed in.

const KEY = 'seawall-key';
const POLL = 5_000;
// The first pause before the stream of events is asked for again, and the longest.
const PAUSES = [1_000, 30_000];
// Without an event for so long, the connection is taken for dead.
const SILENCE = 8_000;

/** Says why there is no answer, in the server's own words. */
export class Refused extends Error {
  constructor(status, { error, remedy } = {}) {
    super(error ?? (status ? `the server answered with status ${status}` : 'the server does not answer'));
    this.status = status;
    this.remedy = remedy ?? (status ? '' : 'is Seawall running?');
  }
}

async function asked(path, options = {}) {
  let response;
  try {
    response = await fetch(path, { credentials: 'same-origin', cache: 'no-store', redirect: 'error', ...options });
  } catch {
    throw new Refused(0);
  }
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Refused(response.status, answer);
  return answer;
}

const query = (parameters) => new URLSearchParams(Object.entries(parameters).filter(([, value]) => value !== '' && value !== null && value !== undefined));

export const ask = (path, parameters = {}) => asked(`${path}?${query(parameters)}`);

// The key of the session is kept for this origin alone, port included; the cookie that belongs to it, no script can read.
const key = {
  get: () => localStorage.getItem(KEY) ?? '',
  set: (value) => localStorage.setItem(KEY, value),
  drop: () => localStorage.removeItem(KEY),
};

export const command = (path, body, method = 'POST') => asked(path, { method, headers: { 'content-type': 'application/json', 'seawall-session': key.get() }, body: body === undefined ? undefined : JSON.stringify(body) });

/** Returns whether this browser has a session, and whether it may read. */
export async function standing() {
  const { signed_in, reads } = await ask('/session');
  return { signedIn: signed_in && key.get() !== '', reads };
}

export async function signIn(token) {
  key.set((await command('/session', { token })).key);
}

export async function signOut() {
  key.drop();
  await command('/session', undefined, 'DELETE');
}

/** Hears a moment each second. While there are none, `fallback` is called now and then, and `state` says how it stands: `live`, `polling` or `lost`. */
export function listen({ moment, fallback, state }) {
  let pause = PAUSES[0];
  let source;
  let silence;
  let polling;

  const poll = async () => {
    try {
      await fallback();
      if (polling) state('polling');
    } catch {
      if (polling) state('lost');
    }
  };
  const fallBack = () => {
    if (polling) return;
    polling = setInterval(poll, POLL);
    poll();
  };
  const again = () => {
    source?.close();
    source = undefined;
    clearTimeout(silence);
    fallBack();
    setTimeout(open, pause);
    pause = Math.min(2 * pause, PAUSES[1]);
  };
  const heard = () => {
    clearTimeout(silence);
    silence = setTimeout(again, SILENCE);
  };
  function open() {
    source = new EventSource('/events');
    heard();
    source.addEventListener('error', again);
    source.addEventListener('second', (event) => {
      heard();
      pause = PAUSES[0];
      clearInterval(polling);
      polling = undefined;
      state('live');
      moment(JSON.parse(event.data));
    });
  }
  open();
}
