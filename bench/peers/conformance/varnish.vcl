# Varnish with its built-in rules. Three of its defaults contradict what the suite asks first, and are set on its command line: responses without a lifetime
# are kept for 120 s (default_ttl=0), stale ones go out for 10 s to everyone (default_grace=0), and none is held for validation (default_keep=3600).
vcl 4.1;

backend origin {
    .host = "127.0.0.1";
    .port = "@ORIGIN@";
}
