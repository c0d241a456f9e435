# Your site and Seawall as one image, for platforms that run one: copy this file beside your site as `Dockerfile`.
# The platform gives PORT; its router ends TLS, has a private address, and says in X-Forwarded-Proto how a visitor came.
FROM seawall
ENV SEAWALL_TRUSTED_PROXIES=private SEAWALL_HTTPS_REDIRECT=true
COPY _site /site
