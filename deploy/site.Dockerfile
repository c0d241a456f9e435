# Your site and Seawall as one image, for platforms that run one: copy this file beside your site as `Dockerfile`.
# The platform sets PORT. Its router ends TLS, has a private address, and says in X-Forwarded-Proto whether a visitor used https.
FROM seawall
ENV SEAWALL_TRUSTED_PROXIES=private SEAWALL_HTTPS_REDIRECT=true
COPY _site /site
