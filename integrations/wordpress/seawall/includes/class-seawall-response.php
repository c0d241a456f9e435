<?php
/**
 * The fields of a response that are for Seawall.
 *
 * @package Seawall
 */

defined( 'ABSPATH' ) || exit;

/**
 * Sends `Seawall-Plugin`, `Cache-Tag`, `Seawall-Cache-Control` and `Seawall-Purge` before the head of a response leaves.
 *
 * The head of a page must say what the page lists, which is known only at its end. So the pages of the site are held back until they are
 * whole, as page caches do. It costs readers nothing: Seawall stores whole pages too, and a theme makes its page in tens of milliseconds.
 * What is not a page (the REST API, admin, downloads, event streams) is not held back.
 */
final class Seawall_Response {

	/** Seconds that a page may be stored: changes purge it, so this is only for what no hook tells, such as files changed on disk. */
	const SECONDS_MAX = 86400;

	/** Bytes of a page that are held back. A longer one is sent as it comes, and not stored. */
	const HELD_BYTES_MAX = 8388608;

	/**
	 * What the page is made of.
	 *
	 * @var Seawall_Tags
	 */
	private $tags;

	/**
	 * What takes changes to Seawall.
	 *
	 * @var Seawall_Purger
	 */
	private $purger;

	/**
	 * What is held back of the page.
	 *
	 * @var string
	 */
	private $held = '';

	/**
	 * What became of the page: '' before it begins, 'held', 'whole', or 'broken' if its head had to leave before its end.
	 *
	 * @var string
	 */
	private $page = '';

	/**
	 * Whether the fields of this response have been written, or left out on purpose.
	 *
	 * @var bool
	 */
	private $is_described = false;

	/**
	 * Whether words are watched in this request.
	 *
	 * @var bool
	 */
	private $is_watched = false;

	/**
	 * Makes a response.
	 *
	 * @param Seawall_Tags   $tags   What the page is made of.
	 * @param Seawall_Purger $purger What takes changes to Seawall.
	 */
	public function __construct( Seawall_Tags $tags, Seawall_Purger $purger ) {
		$this->tags   = $tags;
		$this->purger = $purger;
	}

	/**
	 * Begins to watch.
	 */
	public function watch() {
		// wp-cron.php has answered before it loads WordPress: what the jobs change is sent beside the response.
		if ( 'cli' === PHP_SAPI || headers_sent() || ! isset( $_SERVER['REQUEST_METHOD'] ) ) {
			return;
		}
		if ( Seawall_Plugin::only_reads() && ! is_admin() && ! wp_doing_cron() && ! Seawall_Plugin::has_login_cookie() ) {
			$this->is_watched = true;
			$this->tags->watch();
			add_action( 'template_redirect', array( $this, 'hold' ), PHP_INT_MIN );
			add_filter( 'rest_pre_echo_response', array( $this, 'pass' ), PHP_INT_MAX );
			add_action( 'shutdown', array( $this, 'finish' ), PHP_INT_MIN );
		}
		add_filter( 'wp_redirect', array( $this, 'redirect' ), PHP_INT_MAX, 2 );
		// Whatever makes the response, and however early its head leaves.
		header_register_callback( array( $this, 'leave' ) );
		// Until then, and should another plugin take the callback.
		header( 'Seawall-Plugin: wordpress/' . SEAWALL_PLUGIN_VERSION );
	}

	/**
	 * Begins to hold the page back.
	 */
	public function hold() {
		if ( ! headers_sent() ) {
			$this->page = 'held';
			ob_start( array( $this, 'buffer' ) );
		}
	}

	/**
	 * Takes a piece of the page.
	 *
	 * @param string $piece The piece.
	 * @param int    $phase PHP_OUTPUT_HANDLER_ bits.
	 * @return string What goes out now.
	 */
	public function buffer( $piece, $phase ) {
		if ( $phase & PHP_OUTPUT_HANDLER_CLEAN ) {
			// A plugin throws away the page, to send something else. What it sends then, no words describe.
			$this->held = '';
			if ( $phase & PHP_OUTPUT_HANDLER_FINAL && 'held' === $this->page ) {
				$this->page = 'broken';
			}
			return '';
		}
		$page       = $this->held . $piece;
		$this->held = '';
		if ( $phase & PHP_OUTPUT_HANDLER_FINAL ) {
			if ( 'held' === $this->page ) {
				$this->page = 'broken'; // finish() has not run: the page goes on.
			}
			return $page;
		}
		if ( 'held' === $this->page && strlen( $page ) <= self::HELD_BYTES_MAX && $this->is_page() ) {
			// A theme that flushes its head early.
			$this->held = $page;
			return '';
		}
		if ( 'held' === $this->page ) {
			$this->page = 'broken';
		}
		return $page;
	}

	/**
	 * Returns whether the response is HTML or XML; event streams and downloads are neither.
	 *
	 * @return bool
	 */
	private function is_page() {
		foreach ( headers_list() as $line ) {
			if ( 0 === stripos( $line, 'content-type:' ) ) {
				return (bool) preg_match( '/html|xml/i', $line );
			}
		}
		return true;
	}

	/**
	 * Writes the fields of a page that is whole. No output buffer of ours is at work: what other plugins do on the way may use one.
	 */
	public function finish() {
		if ( 'held' === $this->page ) {
			$this->page = 'whole';
			$this->describe();
		} elseif ( '' === $this->page ) {
			$this->describe();
		}
	}

	/**
	 * Writes the fields of an answer of the REST API.
	 *
	 * @param mixed $data The answer.
	 * @return mixed
	 */
	public function pass( $data ) {
		$this->describe();
		return $data;
	}

	/**
	 * Writes the fields of a redirect.
	 *
	 * @param string $location Where to.
	 * @param int    $status   The status.
	 * @return string
	 */
	public function redirect( $location, $status = 302 ) {
		if ( $location && $this->is_watched ) {
			if ( is_404() ) {
				// WordPress found a post with a similar name.
				$this->tags->add( 'guess' );
			}
			$this->describe( (int) $status );
		}
		$this->purge();
		return $location;
	}

	/**
	 * Writes what is still missing when the head leaves.
	 */
	public function leave() {
		header( 'Seawall-Plugin: wordpress/' . SEAWALL_PLUGIN_VERSION );
		if ( 'broken' === $this->page || ( $this->is_watched && 'held' === $this->page ) ) {
			header_remove( 'Cache-Tag' );
			header( 'Seawall-Cache-Control: no-store' );
		} elseif ( $this->is_watched && ( $this->is_marked() || ( ! $this->is_described && ! $this->has_own_lifetime() ) ) ) {
			header( 'Seawall-Cache-Control: no-store' );
		}
		$this->purge();
	}

	/**
	 * Writes what this request has changed so far.
	 */
	private function purge() {
		$value = headers_sent() ? '' : $this->purger->field();
		if ( '' !== $value ) {
			header( 'Seawall-Purge: ' . $value );
		}
	}

	/**
	 * Writes what the response is made of, and how long it may be stored.
	 *
	 * @param int $status The status, if it is not set yet.
	 */
	private function describe( $status = 0 ) {
		if ( headers_sent() || ! $this->is_watched || ! did_action( 'init' ) ) {
			return;
		}
		$this->is_described = true;
		if ( isset( $_SERVER['REQUEST_METHOD'] ) && 'HEAD' === $_SERVER['REQUEST_METHOD'] && ! $this->is_rest() ) {
			// WordPress ends before the template: what the page lists is not known.
			return;
		}
		$status   = $status ? $status : (int) http_response_code();
		$lifetime = $this->lifetime( $status );
		if ( 'no-store' !== $lifetime ) {
			$max   = Seawall_Settings::through_seawall() ? Seawall_Tags::BYTES_MAX : Seawall_Tags::BYTES_MAX_BEHIND_SERVER;
			$value = $this->tags->value( defined( 'SEAWALL_TAG_BYTES' ) ? (int) SEAWALL_TAG_BYTES : $max );
			if ( '' === $value ) {
				$lifetime = $this->has_own_lifetime() ? '' : 'no-store';
			} else {
				header( 'Cache-Tag: ' . $value );
			}
		}
		if ( '' === $lifetime ) {
			header_remove( 'Seawall-Cache-Control' );
		} else {
			header( 'Seawall-Cache-Control: ' . $lifetime );
		}
	}

	/**
	 * Returns the directive for Seawall; an empty string leaves the decision to Seawall's own rules.
	 *
	 * @param int $status The status.
	 * @return string
	 */
	private function lifetime( $status ) {
		if ( $this->is_personal() || $this->is_marked() ) {
			return 'no-store';
		}
		if ( 404 === $status && ! $this->is_rest() ) {
			return ''; // Anybody can make up addresses: Seawall keeps these for seconds.
		}
		if ( in_array( $status, array( 301, 308 ), true ) ) {
			return 'max-age=' . self::SECONDS_MAX;
		}
		if ( 200 !== $status ) {
			return $status >= 400 ? 'no-store' : '';
		}
		foreach ( headers_list() as $line ) {
			if ( 0 === stripos( $line, 'set-cookie:' ) || 0 === stripos( $line, 'expires: Thu, 19 Nov 1981' ) ) {
				return ''; // Seawall reports which cookie it is, and its owner decides.
			}
		}
		foreach ( headers_list() as $line ) {
			if ( preg_match( '/^cache-control:.*\b(no-store|no-cache|private)\b/i', $line ) ) {
				return 'no-store';
			}
		}
		if ( is_search() ) {
			return '';
		}
		/**
		 * Filters for how many seconds Seawall may store this page; 0 for not at all. Seawall itself ends a page with a nonce earlier.
		 *
		 * @param int $seconds The seconds.
		 */
		$seconds = (int) apply_filters( 'seawall_lifetime', self::SECONDS_MAX );
		return $seconds > 0 ? 'max-age=' . $seconds : 'no-store';
	}

	/**
	 * Returns whether the response says itself for how long it may be stored. A plugin made it before WordPress asked its queries, so that
	 * nothing tells when it changes.
	 *
	 * @return bool
	 */
	private function has_own_lifetime() {
		foreach ( headers_list() as $line ) {
			if ( preg_match( '/^cache-control:.*\b(s-maxage|max-age)=[1-9]/i', $line ) ) {
				return true;
			}
		}
		return false;
	}

	/**
	 * Returns whether a plugin says that this page is not to be stored. It may say so at any time.
	 *
	 * @return bool
	 */
	private function is_marked() {
		return ( defined( 'DONOTCACHEPAGE' ) && DONOTCACHEPAGE ) || ( defined( 'LSCACHE_NO_CACHE' ) && LSCACHE_NO_CACHE );
	}

	/**
	 * Returns whether this is the REST API.
	 *
	 * @return bool
	 */
	private function is_rest() {
		return defined( 'REST_REQUEST' ) && REST_REQUEST;
	}

	/**
	 * Returns whether the page may be made for one reader.
	 *
	 * @return bool
	 */
	private function is_personal() {
		if ( is_user_logged_in() || isset( $_SERVER['HTTP_AUTHORIZATION'] ) || isset( $_SERVER['PHP_AUTH_USER'] ) || isset( $_SERVER['HTTP_X_WP_NONCE'] ) ) {
			return true;
		}
		foreach ( $_COOKIE as $name => $value ) {
			if ( preg_match( '/^(wp-postpass_|comment_author_|wp_woocommerce_session_)/', (string) $name ) || ( 'woocommerce_items_in_cart' === $name && '1' === $value ) ) {
				return true;
			}
		}
		// phpcs:ignore WordPress.Security.NonceVerification.Recommended -- It is only looked at whether they are there.
		if ( isset( $_GET['moderation-hash'] ) || isset( $_GET['unapproved'] ) || isset( $_GET['_wpnonce'] ) ) {
			return true;
		}
		if ( $this->is_rest() || ! did_action( 'wp' ) ) {
			return false;
		}
		if ( is_preview() || is_customize_preview() ) {
			return true;
		}
		$object = get_queried_object();
		if ( is_singular() && $object instanceof WP_Post && '' !== $object->post_password ) {
			return true;
		}
		// Carts and accounts, whatever their addresses are called in the language of the site.
		foreach ( array( 'is_cart', 'is_checkout', 'is_account_page', 'edd_is_checkout', 'edd_is_success_page', 'edd_is_purchase_history_page' ) as $is_personal ) {
			if ( function_exists( $is_personal ) && $is_personal() ) {
				return true;
			}
		}
		return false;
	}
}
