-- The requests that stand in a file: `wrk ... URL -- FILE`, with one thread. A line is a path, then field lines, parted by tabs.
--
-- All are built once in init and sent in turn. done() prints one line for the caller.

local requests, at

function init(args)
    requests, at = {}, 0
    local host = "Host: " .. wrk.host .. ":" .. wrk.port .. "\r\n"
    for line in io.lines(args[1]) do
        local parts = {}
        for part in line:gmatch("[^\t]+") do parts[#parts + 1] = part end
        local fields = #parts > 1 and table.concat(parts, "\r\n", 2) .. "\r\n" or ""
        requests[#requests + 1] = "GET " .. parts[1] .. " HTTP/1.1\r\n" .. host .. fields .. "\r\n"
    end
end

function request()
    at = at % #requests + 1
    return requests[at]
end

function done(summary, latency)
    local e = summary.errors
    io.write(string.format("@@ %d %d %d %d %d %d %d %d %d %d %d\n", summary.requests, summary.duration, summary.bytes, e.connect, e.read, e.write,
        e.status, e.timeout, latency:percentile(50), latency:percentile(99), latency.max))
end
