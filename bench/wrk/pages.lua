-- The requests of one measured row: `wrk ... URL -- KIND [ETAG] [NONCE]`, with one thread.
--
-- hit       1,000 pages in a fixed, shuffled order, each with the same head whenever it is asked for
-- browsers  the same pages with the heads of 5,000 browsers in turn (browsers.lua); page and head meet anew each time, so that no head is sent twice
-- 304       like hit, with If-None-Match; a %d in ETAG stands for the page's number
-- pass      like hit, under /pass/
-- miss      a path never asked before; NONCE keeps runs apart
-- one       the URL's own path, with as many threads as you like
--
-- Requests are built once in init, but for those of miss and browsers, which are put together from two or three parts. done() prints one line for the caller.

local PAGES = 1000
local requests, at, kind -- per thread: every thread of wrk has its own Lua
local miss_head, miss_tail
local heads -- of the browsers; then `requests` holds only what stands before them

local folder_of_scripts = debug.getinfo(1, "S").source:match("^@(.*)pages%.lua$")

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

    if kind == "browsers" then heads = dofile(folder_of_scripts .. "browsers.lua") end
    local folder = kind == "pass" and "/pass/" or "/page/"
    requests = {}
    for i, page in ipairs(shuffled()) do
        local fields = ""
        if kind == "304" then fields = "If-None-Match: " .. args[2]:gsub("%%d", page) .. "\r\n" end
        requests[i] = "GET " .. folder .. page .. " HTTP/1.1\r\nHost: " .. host .. "\r\n" .. fields .. (heads and "" or "\r\n")
    end
end

function request()
    at = at + 1
    if kind == "miss" then return miss_head .. at .. miss_tail end
    if heads then
        -- Another page for the same browser in each of a thousand turns: five million requests until one comes back.
        return requests[(at + math.floor(at / #heads)) % PAGES + 1] .. heads[at % #heads + 1]
    end
    if at > #requests then at = 1 end
    return requests[at]
end

function done(summary, latency)
    local e = summary.errors
    io.write(string.format("@@ %d %d %d %d %d %d %d %d %d %d %d\n", summary.requests, summary.duration, summary.bytes, e.connect, e.read, e.write,
        e.status, e.timeout, latency:percentile(50), latency:percentile(99), latency.max))
end
