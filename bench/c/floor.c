/*
 * The floor: the least a server can do for a request on this machine.
 *
 * One thread, one edge-triggered epoll, no parsing, no date, no log, no cache. It counts the blank lines that end requests and writes one
 * prebuilt response for each. What it costs is the kernel's work plus a few hundred instructions; whatever another server costs beyond this
 * is its own doing.
 *
 * It does one read per wake-up and does not look for a blank line that is split over two reads: load generators send a request whole, and
 * anything more would stop it from being the floor. It is for measuring and for nothing else.
 *
 *   floor PORT                 answers 200 with an 8,192-byte page
 *   floor PORT not-modified    answers 304 without content
 *   floor PORT pages           answers 200 with one of 1,000 pages of 8,192 bytes, which lie apart in memory, as those of any cache do
 *   floor PORT keep-alive      the page with Connection: keep-alive, without which clients of HTTP/1.0, as ab is, wait for the end of the connection
 *   floor PORT FILE            answers 200 with what the file holds, at most 1 MB
 *   floor PORT FILE close      the same, and closes: for clients that ask once a connection
 *   floor PORT FILE sendfile   answers with a file of any length from the file itself: nothing is copied here
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BODY_BYTES = 8192, PAGES = 1000, BODY_MAX = 1 << 20, READ_BYTES = 16384, EVENTS_MAX = 512, FDS_MAX = 65536 };

static char response[BODY_MAX + 512];
static char *copies[PAGES]; /* of the response; only for `pages` */
static char page[BODY_MAX];
static size_t response_bytes;
static int closes, sent_file = -1;
static off_t file_bytes;
/* How much of head and file a connection has got; less than 0: nothing is under way. Only for sent_file. */
static off_t sent_to[FDS_MAX];

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static size_t read_page(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) fail(path);
    size_t bytes = fread(page, 1, sizeof page, file);
    fclose(file);
    return bytes;
}

static const char *more = ""; /* fields */

static size_t head_for(size_t bytes) {
    return (size_t)sprintf(response,
                           "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: %zu\r\n"
                           "Cache-Control: max-age=3600\r\nETag: \"bench-0\"\r\n%s\r\n",
                           bytes, more);
}

static void open_file(const char *path) {
    struct stat known;
    sent_file = open(path, O_RDONLY | O_CLOEXEC);
    if (sent_file < 0 || fstat(sent_file, &known) < 0) fail(path);
    file_bytes = known.st_size;
    response_bytes = head_for((size_t)file_bytes);
}

static void build_response(const char *what) {
    if (what && strcmp(what, "not-modified") == 0) {
        response_bytes = (size_t)sprintf(response, "HTTP/1.1 304 Not Modified\r\nETag: \"bench-0\"\r\nCache-Control: max-age=3600\r\n\r\n");
        return;
    }
    size_t bytes = BODY_BYTES;
    if (what) {
        bytes = read_page(what);
    } else {
        memset(page, 'x', bytes);
    }
    size_t head = head_for(bytes);
    memcpy(response + head, page, bytes);
    response_bytes = head + bytes;
}

static void copy_response(void) {
    for (int i = 0; i < PAGES; i++) {
        copies[i] = malloc(response_bytes);
        if (!copies[i]) fail("malloc");
        memcpy(copies[i], response, response_bytes);
    }
}

/* The next one in an order that no prefetcher guesses: every page once in a turn, as 617 and 1,000 have no divisor in common. */
static const char *next_response(void) {
    static unsigned at;
    if (!copies[0]) return response;
    at = (at + 617) % PAGES;
    return copies[at];
}

/* The socket buffer holds a page, so the wait is for a client that stopped reading; it may then hold up the others. */
static int send_response(int fd) {
    const char *bytes = next_response();
    size_t sent = 0;
    while (sent < response_bytes) {
        ssize_t n = send(fd, bytes + sent, response_bytes - sent, MSG_NOSIGNAL);
        if (n > 0) {
            sent += (size_t)n;
        } else if (n < 0 && errno == EAGAIN) {
            struct pollfd writable = {.fd = fd, .events = POLLOUT};
            if (poll(&writable, 1, 5000) <= 0) return -1;
        } else {
            return -1;
        }
    }
    return 0;
}

/* A long file takes many turns, so here every connection has its place in it. */
static void send_file(int fd) {
    off_t head = (off_t)response_bytes;
    while (sent_to[fd] >= 0 && sent_to[fd] < head + file_bytes) {
        off_t at = sent_to[fd] - head;
        ssize_t n = at < 0 ? send(fd, response + sent_to[fd], (size_t)-at, MSG_NOSIGNAL | MSG_MORE) : sendfile(fd, sent_file, &at, (size_t)(file_bytes - at));
        if (n <= 0) {
            if (n == 0 || errno != EAGAIN) close(fd);
            return;
        }
        sent_to[fd] += n;
    }
    sent_to[fd] = -1;
}

static void serve(int fd) {
    static char request[READ_BYTES];
    ssize_t n = read(fd, request, sizeof request);
    if (n <= 0) {
        if (n == 0 || errno != EAGAIN) close(fd);
        return;
    }
    const char *at = request, *end = request + n;
    while ((at = memmem(at, (size_t)(end - at), "\r\n\r\n", 4)) != NULL) {
        at += 4;
        if (sent_file >= 0) {
            sent_to[fd] = 0;
            send_file(fd);
            return;
        }
        if (send_response(fd) < 0 || closes) {
            close(fd);
            return;
        }
    }
}

int main(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: floor PORT [not-modified | pages | keep-alive | FILE [close | sendfile]]\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    closes = argc > 3 && strcmp(argv[3], "close") == 0;
    if (argc > 3 && !closes) {
        open_file(argv[2]);
    } else {
        int many = argc > 2 && strcmp(argv[2], "pages") == 0;
        int kept = argc > 2 && strcmp(argv[2], "keep-alive") == 0;
        if (kept) more = "Connection: keep-alive\r\n";
        build_response(argc > 2 && !many && !kept ? argv[2] : NULL);
        if (many) copy_response();
    }

    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int on = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(argv[1]))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) < 0) fail("bind");
    if (listen(listener, 4096) < 0) fail("listen");

    int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.fd = listener};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event) < 0) fail("epoll_ctl");

    for (;;) {
        struct epoll_event events[EVENTS_MAX];
        int count = epoll_wait(epoll, events, EVENTS_MAX, -1);
        for (int i = 0; i < count; i++) {
            if (events[i].data.fd != listener) {
                if (sent_file >= 0 && events[i].events & EPOLLOUT) send_file(events[i].data.fd);
                if (events[i].events & ~(uint32_t)EPOLLOUT) serve(events[i].data.fd);
                continue;
            }
            int fd;
            while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
                setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
                if (fd >= FDS_MAX) {
                    close(fd);
                    continue;
                }
                sent_to[fd] = -1;
                uint32_t wanted = EPOLLIN | EPOLLRDHUP | EPOLLET | (sent_file >= 0 ? EPOLLOUT : 0);
                struct epoll_event readable = {.events = wanted, .data.fd = fd};
                if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &readable) < 0) close(fd);
            }
        }
    }
}
