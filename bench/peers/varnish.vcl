# Varnish with its built-in rules: no-store is a hit-for-miss there, so the pass row names the path to make it a plain pass.
vcl 4.1;

backend origin {
    .host = "127.0.0.1";
    .port = "@ORIGIN@";
}

sub vcl_recv {
    if (req.url ~ "^/pass/") {
        return (pass);
    }
}

sub vcl_deliver {
    if (obj.hits > 0) {
        set resp.http.X-Cache = "HIT";
    } else {
        set resp.http.X-Cache = "MISS";
    }
}
