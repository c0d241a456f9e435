/*
 * A crowd at one door: N connections are opened first, then the same GET goes out on all of them at once.
 *
 *   crowd PORT HOST PATH CLIENTS [--lead MS] [--drop MS] [--wait S]
 *
 * --lead sends the first client's request that much before the others; --drop closes the first client's connection that long after it asked.
 * One line for each client: number, status (0: none, -1: left on purpose), microseconds since the first request at which it asked, got its first
 * byte and got its last (-1: never), bytes received, and the serial number found in the page. Times are taken when epoll reports the bytes,
 * before any is read, so that reading a thousand answers adds little to the thousandth's time.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
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

enum { HEAD_BYTES = 4096, EVENTS_MAX = 4096 };

struct client {
    int fd, status, done;
    long long asked_us, first_us, last_us;
    size_t bytes, head_bytes, expected; /* expected: the whole answer; 0 when the head does not say */
    unsigned long serial;
    char head[HEAD_BYTES + 1]; /* the first bytes of the answer, enough for the fields and the serial number */
    char tail[8];              /* the last bytes: where a chunked body shows its end */
};

static long long now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000LL + t.tv_nsec / 1000;
}

static int connect_to(int port) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((unsigned short)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) < 0) {
        perror("connect");
        exit(1);
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
}

static void ask(struct client *c, const char *request, size_t bytes) {
    c->asked_us = now_us();
    if (send(c->fd, request, bytes, MSG_NOSIGNAL) != (ssize_t)bytes) c->done = 1;
}

static void keep_tail(struct client *c, const char *data, size_t n) {
    if (n >= sizeof c->tail) {
        memcpy(c->tail, data + n - sizeof c->tail, sizeof c->tail);
    } else {
        memmove(c->tail, c->tail + n, sizeof c->tail - n);
        memcpy(c->tail + sizeof c->tail - n, data, n);
    }
}

static void read_head(struct client *c) {
    if (c->status == 0 && c->head_bytes >= 12) c->status = atoi(c->head + 9);
    char *blank = strstr(c->head, "\r\n\r\n");
    if (!c->expected && blank) {
        char *length = strcasestr(c->head, "\r\ncontent-length:");
        if (length && length < blank) c->expected = (size_t)(blank + 4 - c->head) + strtoul(length + 17, NULL, 10);
    }
    char *serial = strstr(c->head, "serial ");
    if (!c->serial && serial && c->head_bytes >= (size_t)(serial - c->head) + 17) c->serial = strtoul(serial + 7, NULL, 10);
}

static int is_complete(const struct client *c) {
    if (c->expected) return c->bytes >= c->expected;
    return memcmp(c->tail + 1, "\r\n0\r\n\r\n", 7) == 0;
}

/* Returns 1 when the answer is complete or the connection is over. */
static int take_bytes(struct client *c, long long now) {
    char data[65536];
    for (;;) {
        ssize_t n = recv(c->fd, data, sizeof data, 0);
        if (n < 0 && errno == EAGAIN) return 0;
        if (n <= 0) return 1;
        if (c->bytes == 0) c->first_us = now;
        size_t room = HEAD_BYTES - c->head_bytes, kept = (size_t)n < room ? (size_t)n : room;
        memcpy(c->head + c->head_bytes, data, kept);
        c->head_bytes += kept;
        keep_tail(c, data, (size_t)n);
        c->bytes += (size_t)n;
        c->last_us = now;
        if (kept) read_head(c);
        if (is_complete(c)) return 1;
    }
}

int main(int argc, char **argv) {
    if (argc < 5) {
        fprintf(stderr, "usage: crowd PORT HOST PATH CLIENTS [--lead MS] [--drop MS] [--wait S]\n");
        return 2;
    }
    int port = atoi(argv[1]), count = atoi(argv[4]);
    long long lead_us = 0, drop_us = 0, wait_us = 30000000;
    for (int i = 5; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--lead") == 0) lead_us = atoll(argv[i + 1]) * 1000;
        else if (strcmp(argv[i], "--drop") == 0) drop_us = atoll(argv[i + 1]) * 1000;
        else if (strcmp(argv[i], "--wait") == 0) wait_us = atoll(argv[i + 1]) * 1000000;
    }
    if (count < 1) return 2;
    signal(SIGPIPE, SIG_IGN);
    char request[2048];
    size_t request_bytes = (size_t)snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: crowd\r\nAccept: text/html\r\n\r\n", argv[3], argv[2]);
    if (request_bytes >= sizeof request) return 2;

    struct client *clients = calloc((size_t)count, sizeof *clients);
    int epoll = epoll_create1(EPOLL_CLOEXEC), open = count;
    for (int i = 0; i < count; i++) {
        clients[i].fd = connect_to(port);
        struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP | EPOLLET, .data.ptr = &clients[i]};
        epoll_ctl(epoll, EPOLL_CTL_ADD, clients[i].fd, &event);
    }
    usleep(500000); /* the server accepts them all before the clock starts */

    long long started = now_us();
    ask(&clients[0], request, request_bytes);
    if (lead_us) usleep((useconds_t)lead_us);
    for (int i = 1; i < count; i++) ask(&clients[i], request, request_bytes);

    struct epoll_event *events = calloc(EVENTS_MAX, sizeof *events);
    while (open > 0 && now_us() - started < wait_us) {
        long long timeout = 1000;
        if (drop_us && !clients[0].done) {
            timeout = (clients[0].asked_us + drop_us - now_us()) / 1000;
            if (timeout <= 0) {
                close(clients[0].fd);
                clients[0].status = -1;
                clients[0].done = 1;
                open--;
                continue;
            }
        }
        int n = epoll_wait(epoll, events, EVENTS_MAX, (int)timeout);
        long long now = now_us();
        for (int i = 0; i < n; i++) {
            struct client *c = events[i].data.ptr;
            if (c->done || !take_bytes(c, now)) continue;
            c->done = 1;
            open--;
        }
    }
    for (int i = 0; i < count; i++) {
        struct client *c = &clients[i];
        printf("%d %d %lld %lld %lld %zu %lu\n", i, c->status, c->asked_us - started, c->bytes ? c->first_us - started : -1,
               c->bytes ? c->last_us - started : -1, c->bytes, c->serial);
    }
    return 0;
}
