/*
 * Clients that only shake hands: several at once, each again and again. It measures handshakes and nothing else.
 *
 *   handshakes PORT full|resumed CLIENTS seconds|count N
 *
 * TLS 1.3; cipher suite and key exchange come from OpenSSL's configuration (OPENSSL_CONF). "resumed" makes one full handshake first and shows its
 * ticket in all others. When it has a ticket, a client says goodbye, and it is done when the server has closed the connection: by then the server has
 * seen all of the handshake. (Who was resumed does not get a ticket from every server: then it is not waited for.) Certificates are not compared with anything, but that the server has their key is verified, as every client does.
 *
 * It prints one line: handshakes, microseconds, failures, of the handshakes those that were resumed, and the median, 99th percentile and
 * longest in microseconds from the first packet on.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { CLIENTS_MAX = 1024, SAMPLES_MAX = 1 << 20, SOURCES = 100, FAILURES_MAX = 1000, PATIENCE_MS = 30000 };

struct client {
    int fd, shaken, has_ticket, said_goodbye;
    long long began_us;
    SSL *ssl;
};

static struct client clients[CLIENTS_MAX];
static unsigned samples[SAMPLES_MAX];
static SSL_CTX *context;
static SSL_SESSION *session; /* shown by all, once there is one */
static int port, epoll, resumes, awaits_ticket = 1;
static long long begun, done, failed, resumed;

static long long now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000LL + t.tv_nsec / 1000;
}

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static int keep_ticket(SSL *ssl, SSL_SESSION *ticket) {
    ((struct client *)SSL_get_app_data(ssl))->has_ticket = 1;
    if (!resumes || session) return 0;
    session = ticket;
    return 1; /* ours now */
}

/* The end that closes first keeps the port for a minute: a hundred source addresses have enough of them. */
static int connect_from(long long number) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1;
    if (fd < 0) fail("socket");
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    struct sockaddr_in source = {.sin_family = AF_INET}, target = {.sin_family = AF_INET, .sin_port = htons((unsigned short)port)};
    source.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1 + (uint32_t)(number % SOURCES));
    target.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(fd, (struct sockaddr *)&source, sizeof source) < 0) fail("bind");
    if (connect(fd, (struct sockaddr *)&target, sizeof target) < 0 && errno != EINPROGRESS) fail("connect");
    return fd;
}

static void begin(struct client *c) {
    c->began_us = now_us();
    c->fd = connect_from(begun++);
    c->shaken = c->has_ticket = c->said_goodbye = 0;
    c->ssl = SSL_new(context);
    if (!c->ssl || !SSL_set_fd(c->ssl, c->fd) || !SSL_set_tlsext_host_name(c->ssl, "bench.example")) exit(1);
    SSL_set_app_data(c->ssl, c);
    if (session) {
        /* OpenSSL does not show a ticket again once there is another in its place; a copy it does. */
        SSL_SESSION *copy = SSL_SESSION_dup(session);
        SSL_set_session(c->ssl, copy);
        SSL_SESSION_free(copy);
    }
    SSL_set_connect_state(c->ssl);
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = c};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, c->fd, &event) < 0) fail("epoll_ctl");
}

static void end(struct client *c) {
    SSL_free(c->ssl);
    close(c->fd);
}

static void say_goodbye(struct client *c) {
    c->said_goodbye = 1;
    SSL_shutdown(c->ssl);
    /* Not every server looks for a goodbye that comes with the last of the handshake: the end of the connection it sees. */
    shutdown(c->fd, SHUT_WR);
}

/* 1: done, -1: failed, 0: there is more to come. */
static int go_on(struct client *c) {
    char nothing[64];
    int result = 1;
    ERR_clear_error();
    if (!c->shaken && (result = SSL_connect(c->ssl)) == 1) c->shaken = 1;
    if (c->shaken) {
        if (!awaits_ticket && !c->said_goodbye) say_goodbye(c);
        result = SSL_read(c->ssl, nothing, sizeof nothing); /* tickets, and the end */
        if (c->has_ticket && !c->said_goodbye) say_goodbye(c);
    }
    int why = SSL_get_error(c->ssl, result);
    if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) return 0;
    int closed = why == SSL_ERROR_ZERO_RETURN || why == SSL_ERROR_SYSCALL || ERR_GET_REASON(ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING;
    return c->said_goodbye && closed ? 1 : -1;
}

static int by_size(const void *a, const void *b) {
    unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;
    return (x > y) - (x < y);
}

/* Shakes hands until `until`, or `count` times; 0: without that limit. Whoever is still at it then goes on to the end. The server may stop for
 * `patience_ms`; then 0 is returned. */
static int run(int at_once, long long until, long long count, int patience_ms) {
    int open = 0;
    long long target = count ? begun + count : 0;
    for (; open < at_once && (!target || begun < target); open++) begin(&clients[open]);
    while (open > 0) {
        struct epoll_event events[256];
        int n = epoll_wait(epoll, events, 256, patience_ms);
        if (n == 0) return 0;
        for (int i = 0; i < n; i++) {
            struct client *c = events[i].data.ptr;
            int result = go_on(c);
            if (!result) continue;
            long long now = now_us();
            if (result < 0) {
                if (++failed > FAILURES_MAX) {
                    fprintf(stderr, "too many failures\n");
                    exit(1);
                }
            } else {
                resumed += SSL_session_reused(c->ssl);
                samples[done++ % SAMPLES_MAX] = (unsigned)(now - c->began_us);
            }
            end(c);
            if ((until && now >= until) || (target && begun >= target)) open--;
            else begin(c);
        }
    }
    return 1;
}

int main(int argc, char **argv) {
    if (argc != 6) {
        fprintf(stderr, "usage: handshakes PORT full|resumed CLIENTS seconds|count N\n");
        return 2;
    }
    port = atoi(argv[1]);
    resumes = strcmp(argv[2], "resumed") == 0;
    int at_once = atoi(argv[3]);
    long long limit = atoll(argv[5]);
    if (at_once < 1 || at_once > CLIENTS_MAX || limit < 1) return 2;
    signal(SIGPIPE, SIG_IGN);
    epoll = epoll_create1(EPOLL_CLOEXEC);
    context = SSL_CTX_new(TLS_client_method());
    if (!context || !SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION)) return 1;
    SSL_CTX_set_verify(context, SSL_VERIFY_NONE, NULL);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(context, keep_ticket);
    if (resumes) {
        if (!run(1, 0, 1, PATIENCE_MS) || !session) {
            fprintf(stderr, "the server gives no ticket\n");
            return 1;
        }
        awaits_ticket = run(1, 0, 1, 2000);
        if (!awaits_ticket) end(&clients[0]);
        done = failed = resumed = 0;
    }
    long long started = now_us();
    int by_time = strcmp(argv[4], "seconds") == 0;
    if (!run(at_once, by_time ? started + limit * 1000000 : 0, by_time ? 0 : limit, PATIENCE_MS)) {
        fprintf(stderr, "the server has not gone on for %d s\n", PATIENCE_MS / 1000);
        return 1;
    }
    long long took = now_us() - started, kept = done < SAMPLES_MAX ? done : SAMPLES_MAX;
    qsort(samples, (size_t)kept, sizeof *samples, by_size);
    printf("%lld %lld %lld %lld %u %u %u\n", done, took, failed, resumed, samples[kept / 2], samples[kept * 99 / 100], kept ? samples[kept - 1] : 0);
    return 0;
}
