/*
 * The origin behind the caches: fast, so that a miss measures the cache and not the origin; scripted, so that a test knows what it was asked.
 *
 *   origin PORT [--delay MS] [--no-store]
 *
 *   /                  a page, max-age=3600
 *   /page/X, /miss/X   a page of 8,192 bytes, max-age=3600, ETag "bench-X", Last-Modified
 *   /pass/X            the same page, no-store
 *   /count             "REQUESTS CONCURRENT-MAX ABANDONED\n" so far, itself not counted
 *   anything else      404
 *
 * Every page carries a serial number that rises with each page made: two answers with one serial were made once. --delay holds every page back
 * (all equally long, so a queue in order of arrival is the whole timer); --no-store forbids storing whatever the path.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { BODY_BYTES = 8192, HEAD_BYTES = 8192, PATH_BYTES = 256, OUT_BYTES = BODY_BYTES + 1024, EVENTS_MAX = 512 };

struct connection {
    int fd;
    int waiting; /* its answer is in the queue */
    int gone;    /* the client left while waiting */
    int close_after;
    int head_only;
    size_t in_bytes, out_bytes, out_sent;
    long long due_ms;
    struct connection *next;
    char path[PATH_BYTES];
    char in[HEAD_BYTES];
    char out[OUT_BYTES];
};

static struct connection *queue_first, *queue_last;
static char page[BODY_BYTES];
static long long delay_ms;
static int no_store;
static unsigned long requests, concurrent, concurrent_max, abandoned, serial;

static long long now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

static void end(struct connection *c) {
    close(c->fd);
    free(c);
}

/* Text that compresses about as prose does: words from a fixed generator. */
static void build_page(void) {
    static const char *words[] = {"garden", "ferry",  "the",    "winter", "of",    "letters", "a",     "harbour", "and",   "copper",
                                  "wheel",  "stream", "reader", "in",     "quiet", "morning", "bread", "window",  "paper", "to"};
    unsigned random = 1;
    size_t at = 0;
    while (at < BODY_BYTES) {
        random = random * 1103515245u + 12345u;
        const char *word = words[(random >> 16) % 20];
        for (; *word && at < BODY_BYTES; word++) page[at++] = *word;
        if (at < BODY_BYTES) page[at++] = (random >> 20) % 12 ? ' ' : '\n';
    }
}

static void answer(struct connection *c) {
    char fields[512] = "";
    int not_found = 0, is_count = strcmp(c->path, "/count") == 0;
    size_t body_bytes = BODY_BYTES;
    char small[96];

    if (is_count) {
        body_bytes = (size_t)sprintf(small, "%lu %lu %lu\n", requests, concurrent_max, abandoned);
        strcpy(fields, "Cache-Control: no-store\r\n");
    } else if (no_store || strncmp(c->path, "/pass/", 6) == 0) {
        strcpy(fields, "Cache-Control: no-store\r\n");
    } else if (strcmp(c->path, "/") == 0 || strncmp(c->path, "/page/", 6) == 0 || strncmp(c->path, "/miss/", 6) == 0) {
        snprintf(fields, sizeof fields,
                 "Cache-Control: max-age=3600\r\nETag: \"bench-%.200s\"\r\nLast-Modified: Thu, 01 Jan 2026 00:00:00 GMT\r\n",
                 strrchr(c->path, '/') + 1);
    } else {
        not_found = 1;
        body_bytes = (size_t)sprintf(small, "Nothing here.\n");
    }

    char date[64];
    time_t seconds = time(NULL);
    struct tm tm;
    strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&seconds, &tm));
    int head = snprintf(c->out, OUT_BYTES - BODY_BYTES, "HTTP/1.1 %s\r\nDate: %s\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: %zu\r\n%s%s\r\n",
                        not_found ? "404 Not Found" : "200 OK", date, body_bytes, fields, c->close_after ? "Connection: close\r\n" : "");
    c->out_bytes = (size_t)head;
    c->out_sent = 0;
    if (c->head_only) return;
    char *body = c->out + head;
    if (is_count || not_found) {
        memcpy(body, small, body_bytes);
    } else {
        memcpy(body, page, BODY_BYTES);
        char top[320];
        int n = snprintf(top, sizeof top, "<!doctype html><!-- serial %010lu --><title>%.200s</title>\n<p>", ++serial, c->path);
        memcpy(body, top, (size_t)n);
    }
    c->out_bytes += body_bytes;
}

/* -1: the connection is over. 1: all written. 0: the rest when the socket takes it. */
static int flush_out(struct connection *c) {
    while (c->out_sent < c->out_bytes) {
        ssize_t n = send(c->fd, c->out + c->out_sent, c->out_bytes - c->out_sent, MSG_NOSIGNAL);
        if (n < 0) return errno == EAGAIN ? 0 : -1;
        c->out_sent += (size_t)n;
    }
    return c->close_after ? -1 : 1;
}

/* Takes one request head off the buffer. 1: taken, 0: not complete yet, -1: not for us. */
static int take_request(struct connection *c) {
    char *blank = memmem(c->in, c->in_bytes, "\r\n\r\n", 4);
    if (!blank) return c->in_bytes == HEAD_BYTES ? -1 : 0;
    *blank = '\0';
    char *space = strchr(c->in, ' ');
    char *after = space ? strchr(space + 1, ' ') : NULL;
    if (!after || (size_t)(after - space) > sizeof c->path) return -1;
    c->head_only = strncmp(c->in, "HEAD ", 5) == 0;
    if (!c->head_only && strncmp(c->in, "GET ", 4) != 0) return -1;
    memcpy(c->path, space + 1, (size_t)(after - space - 1));
    c->path[after - space - 1] = '\0';
    char *query = strchr(c->path, '?');
    if (query) *query = '\0';
    c->close_after = strncmp(after + 1, "HTTP/1.0", 8) == 0 || strcasestr(after, "\nconnection: close") != NULL;
    size_t used = (size_t)(blank + 4 - c->in);
    memmove(c->in, c->in + used, c->in_bytes - used);
    c->in_bytes -= used;
    return 1;
}

static void enqueue(struct connection *c) {
    c->waiting = 1;
    c->due_ms = now_ms() + delay_ms;
    c->next = NULL;
    if (queue_last) queue_last->next = c;
    else queue_first = c;
    queue_last = c;
}

/* Answers what is complete in the buffer, until an answer must wait or the socket is full. -1: over. */
static int work(struct connection *c) {
    for (;;) {
        if (c->waiting) return 0;
        int flushed = c->out_bytes > c->out_sent ? flush_out(c) : 1;
        if (flushed <= 0) return flushed;
        int taken = take_request(c);
        if (taken <= 0) return taken;
        int counts = strcmp(c->path, "/count") != 0;
        if (counts) {
            requests++;
            if (++concurrent > concurrent_max) concurrent_max = concurrent;
        }
        if (counts && delay_ms > 0) {
            enqueue(c);
            return 0;
        }
        answer(c);
        if (counts) concurrent--;
        int sent = flush_out(c);
        if (sent <= 0) return sent;
    }
}

static void on_event(struct connection *c) {
    for (;;) {
        if (c->in_bytes == HEAD_BYTES) break;
        ssize_t n = read(c->fd, c->in + c->in_bytes, HEAD_BYTES - c->in_bytes);
        if (n < 0 && errno == EAGAIN) break;
        if (n <= 0) {
            if (c->waiting) {
                if (!c->gone) abandoned++;
                c->gone = 1;
            } else {
                end(c);
            }
            return;
        }
        c->in_bytes += (size_t)n;
    }
    if (work(c) < 0) end(c);
}

static void answer_due(void) {
    long long now = now_ms();
    while (queue_first && queue_first->due_ms <= now) {
        struct connection *c = queue_first;
        queue_first = c->next;
        if (!queue_first) queue_last = NULL;
        c->waiting = 0;
        concurrent--;
        if (c->gone) {
            end(c);
            continue;
        }
        answer(c);
        if (flush_out(c) < 0 || work(c) < 0) end(c);
    }
}

int main(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: origin PORT [--delay MS] [--no-store]\n");
        return 2;
    }
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--no-store") == 0) no_store = 1;
        else if (strcmp(argv[i], "--delay") == 0 && i + 1 < argc) delay_ms = atoll(argv[++i]);
    }
    signal(SIGPIPE, SIG_IGN);
    build_page();

    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(argv[1]))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) < 0 || listen(listener, 4096) < 0) {
        perror("listen");
        return 1;
    }
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.ptr = NULL};
    epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);

    for (;;) {
        int timeout = -1;
        if (queue_first) {
            long long wait = queue_first->due_ms - now_ms();
            timeout = wait > 0 ? (int)wait : 0;
        }
        struct epoll_event events[EVENTS_MAX];
        int count = epoll_wait(epoll, events, EVENTS_MAX, timeout);
        for (int i = 0; i < count; i++) {
            if (events[i].data.ptr) {
                on_event(events[i].data.ptr);
                continue;
            }
            int fd;
            while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
                setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
                struct connection *c = calloc(1, sizeof *c);
                if (!c) {
                    close(fd);
                    continue;
                }
                c->fd = fd;
                struct epoll_event both = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = c};
                epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &both);
            }
        }
        answer_due();
    }
}
