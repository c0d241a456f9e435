// Loads this page again when its author has changed it. Only pages on the author's own machine have this script.
(() => {
  const { page } = document.currentScript.dataset;
  if (!['localhost', '127.0.0.1', '[::1]'].includes(location.hostname)) return;
  let events;
  // A hidden tab needs no news, and a browser has few connections for one host.
  const listen = () => {
    events?.close();
    if (document.hidden) return;
    events = new EventSource(`/.seawall/reload?${location.pathname}`);
    events.onmessage = ({ data }) => {
      if (data !== page) location.reload();
    };
  };
  document.addEventListener('visibilitychange', listen);
  addEventListener('pagehide', () => events?.close());
  listen();
})();
