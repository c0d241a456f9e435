-- The field lines that 5,000 browsers send on a navigation: browser, version, system, language and the page they come from differ; no two are alike.
--
-- None has a cookie, and none names Accept-Encoding: then every server answers with the same 8,192 bytes, and the row compares what heads cost, not who compresses.

local HEADS = 5000

local chrome = "Mozilla/5.0 (%s) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/%d.0.0.0 Safari/537.36"
local phone = "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/%d.0.0.0 Mobile Safari/537.36"
local firefox = "Mozilla/5.0 (%s; rv:%d.0) Gecko/20100101 Firefox/%d.0"
local safari = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/%d.%d Safari/605.1.15"
local iphone = "Mozilla/5.0 (iPhone; CPU iPhone OS %d_%d like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/%d.%d Mobile/15E148 Safari/604.1"
local desktops = { { "Windows NT 10.0; Win64; x64", "Windows" }, { "Macintosh; Intel Mac OS X 10_15_7", "macOS" }, { "X11; Linux x86_64", "Linux" } }
local html = "text/html,application/xhtml+xml,application/xml;q=0.9,"
local images = "image/avif,image/webp,image/apng,*/*;q=0.8,application/signed-exchange;v=b3;q=0.7"

local languages = { "en-US,en;q=0.9", "en-GB,en;q=0.9", "de-DE,de;q=0.9,en-US;q=0.8,en;q=0.7", "fr-FR,fr;q=0.9,en-US;q=0.8,en;q=0.7", "es-ES,es;q=0.9,en;q=0.8",
    "pt-BR,pt;q=0.9,en-US;q=0.8,en;q=0.7", "it-IT,it;q=0.9,en-US;q=0.8,en;q=0.7", "nl-NL,nl;q=0.9,en;q=0.8", "pl-PL,pl;q=0.9,en-US;q=0.8,en;q=0.7", "ja,en-US;q=0.9,en;q=0.8",
    "zh-CN,zh;q=0.9,en;q=0.8", "ko-KR,ko;q=0.9,en-US;q=0.8,en;q=0.7", "ru-RU,ru;q=0.9,en-US;q=0.8,en;q=0.7", "tr-TR,tr;q=0.9,en-US;q=0.8,en;q=0.7", "sv-SE,sv;q=0.9,en-US;q=0.8,en;q=0.7",
    "uk-UA,uk;q=0.9,en-US;q=0.8,en;q=0.7" }
local referers = { false, "https://www.google.com/", "https://duckduckgo.com/", "https://www.bing.com/", "https://news.ycombinator.com/", "https://lobste.rs/",
    "https://www.reddit.com/", "https://old.reddit.com/", "https://mastodon.social/", "https://bsky.app/", "https://t.co/", "https://github.com/", "https://www.linkedin.com/",
    "https://blog.example/", "https://blog.example/archive/", "https://blog.example/about/" }

-- A browser's own lines, in the order in which it sends them; the one of the language comes behind them.
local function chromium(agent, version, name, mobile, system)
    return string.format('sec-ch-ua: "Chromium";v="%d", "%s";v="%d", "Not.A/Brand";v="99"\r\nsec-ch-ua-mobile: ?%d\r\nsec-ch-ua-platform: "%s"\r\nUpgrade-Insecure-Requests: 1\r\n'
        .. "User-Agent: %s\r\nAccept: %s%s\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-User: ?1\r\nSec-Fetch-Dest: document\r\n",
        version, name, version, mobile, system, agent, html, images)
end

local function plain(agent)
    return "User-Agent: " .. agent .. "\r\nAccept: " .. html .. "*/*;q=0.8\r\nUpgrade-Insecure-Requests: 1\r\nSec-Fetch-Dest: document\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Site: cross-site\r\n"
end

local function browsers()
    local all = {}
    for _, system in ipairs(desktops) do
        for version = 130, 143 do
            local agent = string.format(chrome, system[1], version)
            all[#all + 1] = chromium(agent, version, "Google Chrome", 0, system[2])
            all[#all + 1] = chromium(agent .. " Edg/" .. version .. ".0.0.0", version, "Microsoft Edge", 0, system[2])
            all[#all + 1] = plain(string.format(firefox, system[1], version, version))
        end
    end
    for version = 130, 143 do all[#all + 1] = chromium(string.format(phone, version), version, "Google Chrome", 1, "Android") end
    for minor = 0, 6 do
        for major = 16, 18 do
            all[#all + 1] = plain(string.format(safari, major, minor))
            all[#all + 1] = plain(string.format(iphone, major, minor, major, minor))
        end
    end
    return all
end

-- Steps without a common divisor with the number of combinations: each is met once, and neighbours differ in everything.
local all = browsers()
local combinations = #all * #languages * #referers
local function divisor(a, b) return b == 0 and a or divisor(b, a % b) end
local step = 7919
while divisor(step, combinations) ~= 1 do step = step + 1 end

local heads = {}
for i = 1, HEADS do
    local at = i * step % combinations
    local browser, language, referer = all[at % #all + 1], languages[math.floor(at / #all) % #languages + 1], referers[math.floor(at / #all / #languages) + 1]
    heads[i] = browser .. (referer and "Referer: " .. referer .. "\r\n" or "") .. "Accept-Language: " .. language .. "\r\n\r\n"
end
return heads
