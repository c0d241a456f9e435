-- The requests of one measured row: `wrk ... URL -- KIND [ETAG] [NONCE]`, with one thread.
--
-- hit    1,000 pages in a fixed, shuffled order
-- 304    the same, with If-None-Match; a %d in ETAG stands for the page's number
-- pass   like hit, under /pass/
-- miss   a path never asked before; NONCE keeps runs apart
-- one    the URL's own path, with as many threads as you like
--
-- All but the miss are built once in init, so that a request costs one table lookup here. done() prints one line for the caller.

local PAGES = 1000
local requests, at, kind -- per thread: every thread of wrk has its own Lua
local miss_head, miss_tail

local function shuffled()
    local order, random = {}, 42
    for i = 1, PAGES do order[i] = i - 1 end
    for i = PAGES, 2, -1 do
        random = random * 16807 % 2147483647
        local j = random % i + 1
        order[i], order[j] = order[j], order[i]
    end
    return order
end

function init(args)
    kind = args[1]
    local host = wrk.host .. ":" .. wrk.port
    at = 0
    miss_head = "GET /miss/" .. (args[3] or "0") .. "-"
    miss_tail = " HTTP/1.1\r\nHost: " .. host .. "\r\n\r\n"
    if kind == "miss" then return end
    if kind == "one" then
        requests = { wrk.format("GET") }
        return
    end

    local folder = kind == "pass" and "/pass/" or "/page/"
    requests = {}
    for i, page in ipairs(shuffled()) do
        local fields = ""
        if kind == "304" then fields = "If-None-Match: " .. args[2]:gsub("%%d", page) .. "\r\n" end
        requests[i] = "GET " .. folder .. page .. " HTTP/1.1\r\nHost: " .. host .. "\r\n" .. fields .. "\r\n"
    end
end

function request()
    at = at + 1
    if kind == "miss" then return miss_head .. at .. miss_tail end
    if at > #requests then at = 1 end
    return requests[at]
end

function done(summary, latency)
    local e = summary.errors
    io.write(string.format("@@ %d %d %d %d %d %d %d %d %d %d %d\n", summary.requests, summary.duration, summary.bytes, e.connect, e.read, e.write,
        e.status, e.timeout, latency:percentile(50), latency:percentile(99), latency.max))
end
