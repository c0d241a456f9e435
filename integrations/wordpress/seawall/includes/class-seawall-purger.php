<?php
/**
 * What takes changes to Seawall.
 *
 * @package Seawall
 */

defined( 'ABSPATH' ) || exit;

/**
 * Sends the changes of a request once.
 *
 * In the path, as the field `Seawall-Purge` of the response: Seawall obeys it before it passes on the first byte, so nobody who has seen
 * the answer to a write can see an old page. Beside the path, as a signed POST at the end of the request: for WP-CLI, for cron jobs, for
 * what happens after the response has begun, and where nobody can know whether the response goes through Seawall.
 */
final class Seawall_Purger {

	/** The last purges with their results, the newest first. */
	const LOG_OPTION = 'seawall_log';

	/** What could not be sent, as words. */
	const PENDING_OPTION = 'seawall_pending';

	/** The scheduled event that sends again. */
	const RETRY_HOOK = 'seawall_retry';

	/** How many purges are remembered. */
	const LOG_MAX = 10;

	/** Seconds for all of one purge. The user waits for it. */
	const SECONDS_MAX = 2.0;

	/** Bytes of an answer that are read. */
	const ANSWER_BYTES_MAX = 65536;

	/** Bytes of what Seawall says of a refusal that are shown. */
	const SENTENCE_BYTES_MAX = 400;

	/** Bytes of the field `Seawall-Purge`, to Seawall itself and through another server with its small buffers. */
	const FIELD_BYTES_MAX               = 6144;
	const FIELD_BYTES_MAX_BEHIND_SERVER = 2048;

	/**
	 * What was changed.
	 *
	 * @var Seawall_Changes
	 */
	private $changes;

	/**
	 * The words that were sent in the response.
	 *
	 * @var string[]
	 */
	private $sent = array();

	/**
	 * Makes a purger.
	 *
	 * @param Seawall_Changes $changes What was changed.
	 */
	public function __construct( Seawall_Changes $changes ) {
		$this->changes = $changes;
	}

	/**
	 * Begins to watch.
	 */
	public function watch() {
		add_action( 'shutdown', array( $this, 'shutdown' ), PHP_INT_MAX );
		add_action( self::RETRY_HOOK, array( $this, 'retry' ) );
	}

	/**
	 * Returns the value of the field `Seawall-Purge` for the response, or an empty string. What it names counts as sent.
	 *
	 * @return string
	 */
	public function field() {
		$words = $this->changes->words();
		if ( ! $words ) {
			return '';
		}
		$max   = Seawall_Settings::through_seawall() ? self::FIELD_BYTES_MAX : self::FIELD_BYTES_MAX_BEHIND_SERVER;
		$value = implode( ', ', $words );
		if ( strlen( $value ) > $max ) {
			if ( '' !== Seawall_Settings::url() && ! Seawall_Settings::through_seawall() ) {
				return ''; // The POST has room.
			}
			$words = array( '*' );
			$value = '*';
		}
		$this->sent = $words;
		return $value;
	}

	/**
	 * Sends what was not sent in the response.
	 */
	public function shutdown() {
		$words = $this->changes->words();
		/**
		 * Fires when a request that changed something ends.
		 *
		 * @param string[] $words What is purged.
		 */
		do_action( 'seawall_purge', $words );
		if ( ! $words ) {
			return;
		}
		$in_path = array( '*' ) === $this->sent ? $words : array_values( array_intersect( $words, $this->sent ) );
		$left    = array_values( array_diff( $words, $in_path ) );
		if ( ! Seawall_Settings::through_seawall() ) {
			// The response may go through Seawall or past it. A purge that comes twice does no harm.
			$left = $words;
		}
		if ( ! $left ) {
			$this->log( $words, __( 'in the response, through Seawall', 'seawall' ), true );
			return;
		}
		if ( '' === Seawall_Settings::url() ) {
			if ( $this->sent ) {
				$this->log( $words, __( 'in the response; no address for purges is known', 'seawall' ), null );
			}
			return;
		}
		$this->send( $left, $this->changes->reason() );
	}

	/**
	 * Sends words now, together with those that could not be sent before.
	 *
	 * @param string[] $words  The words.
	 * @param string   $reason What happened.
	 * @return array array( 'ok' => bool, 'text' => string )
	 */
	public function send( array $words, $reason ) {
		$pending = get_option( self::PENDING_OPTION );
		$pending = is_array( $pending ) ? $pending : array();
		$words   = array_values( array_unique( array_merge( $pending, $words ) ) );
		if ( in_array( '*', $words, true ) || count( $words ) > Seawall_Changes::WORDS_MAX ) {
			$words = array( '*' );
		}
		$result = $this->post( $words, $reason );
		if ( $result['ok'] ) {
			if ( $pending ) {
				delete_option( self::PENDING_OPTION );
				wp_clear_scheduled_hook( self::RETRY_HOOK );
			}
		} else {
			update_option( self::PENDING_OPTION, $words, false );
			if ( ! wp_next_scheduled( self::RETRY_HOOK ) ) {
				wp_schedule_single_event( time() + MINUTE_IN_SECONDS, self::RETRY_HOOK );
			}
		}
		$this->log( $words, $result['text'], $result['ok'], $reason );
		return $result;
	}

	/**
	 * Sends a purge that purges nothing, to see whether purges arrive, and remembers it.
	 *
	 * @param string $reason What happened.
	 * @return array array( 'ok' => bool, 'text' => string )
	 */
	public function test( $reason ) {
		$words  = array( 'seawall-test' );
		$result = $this->post( $words, $reason );
		$this->log( $words, $result['text'], $result['ok'], $reason );
		return $result;
	}

	/**
	 * Sends again what could not be sent.
	 */
	public function retry() {
		if ( get_option( self::PENDING_OPTION ) && '' !== Seawall_Settings::url() ) {
			$this->send( array(), 'retry' );
		}
	}

	/**
	 * Posts words to Seawall, and waits for its answer: 200 comes only after the purge.
	 *
	 * It does not use `wp_remote_post()`: that refuses 127.0.0.1 under WP_HTTP_BLOCK_EXTERNAL, and cannot connect to one address under the
	 * name of another, which a certificate for the site's name on this machine needs.
	 *
	 * @param string[] $words  The words.
	 * @param string   $reason What happened.
	 * @return array array( 'ok' => bool, 'text' => string )
	 */
	public function post( array $words, $reason ) {
		$url   = Seawall_Settings::url();
		$parts = wp_parse_url( $url );
		if ( ! isset( $parts['scheme'], $parts['host'] ) || ! in_array( $parts['scheme'], array( 'http', 'https' ), true ) ) {
			/* translators: %s: an address. */
			return self::failed( sprintf( __( 'The address for purges is not one: %s', 'seawall' ), $url ) );
		}
		$body   = wp_json_encode(
			array(
				'purge'  => array_values( $words ),
				'soft'   => false,
				'reason' => $reason,
				// Seawall takes each signature once. Two changes of a post within one second must not have the same one.
				'id'     => wp_generate_uuid4(),
			),
			JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE
		);
		$secret = Seawall_Settings::secret();
		$time   = time();
		$site   = wp_parse_url( home_url( '/' ) );
		$name   = isset( $site['host'] ) ? $site['host'] : $parts['host'];
		$path   = isset( $parts['path'] ) ? $parts['path'] : '/';
		$lines  = array(
			'POST ' . $path . ( isset( $parts['query'] ) ? '?' . $parts['query'] : '' ) . ' HTTP/1.1',
			'Host: ' . $name . ( isset( $site['port'] ) ? ':' . $site['port'] : '' ),
			'User-Agent: Seawall-WordPress/' . SEAWALL_PLUGIN_VERSION,
			'Content-Type: application/json',
			'Content-Length: ' . strlen( $body ),
			'Connection: close',
		);
		if ( '' !== $secret ) {
			$lines[] = 'Seawall-Signature: t=' . $time . ', sha256=' . hash_hmac( 'sha256', $time . '.' . $body, $secret );
		}
		$answer = self::exchange( $parts, $name, implode( "\r\n", $lines ) . "\r\n\r\n" . $body );
		if ( is_string( $answer ) ) {
			return self::failed( $answer );
		}
		if ( 200 !== $answer['status'] ) {
			return self::failed( self::refusal( $answer ) );
		}
		$data = json_decode( $answer['body'], true );
		if ( ! is_array( $data ) || ! isset( $data['purged'] ) ) {
			return self::failed( __( 'What answered is not Seawall. Look at the address for purges.', 'seawall' ) );
		}
		return array(
			'ok'   => true,
			'text' => in_array( '*', $words, true ) ? __( 'Everything will be made anew', 'seawall' ) : __( 'Seawall has taken the order', 'seawall' ),
		);
	}

	/**
	 * Says what an answer other than 200 means, and what to do. A server that is not Seawall may refuse as well.
	 *
	 * @param array $answer The answer.
	 * @return string
	 */
	private static function refusal( array $answer ) {
		$data = json_decode( $answer['body'], true );
		if ( ! is_array( $data ) || ! isset( $data['error'] ) || ! is_string( $data['error'] ) ) {
			/* translators: %d: an HTTP status. */
			return sprintf( __( 'What answered (%d) is not Seawall, or Seawall runs with another kind than wordpress. Look at the address for purges.', 'seawall' ), $answer['status'] );
		}
		/* translators: 1: an HTTP status, 2: what Seawall says. */
		return sprintf( __( 'Seawall refuses the purge (%1$d): %2$s', 'seawall' ), $answer['status'], substr( $data['error'], 0, self::SENTENCE_BYTES_MAX ) );
	}

	/**
	 * Sends a request and reads the answer, all within SECONDS_MAX.
	 *
	 * @param array  $parts   The parts of the address.
	 * @param string $name    The name of the site, for the certificate.
	 * @param string $request The request.
	 * @return array|string array( 'status' => int, 'body' => string ), or what failed.
	 */
	private static function exchange( array $parts, $name, $request ) {
		$tls   = 'https' === $parts['scheme'];
		$port  = isset( $parts['port'] ) ? (int) $parts['port'] : ( $tls ? 443 : 80 );
		$host  = trim( $parts['host'], '[]' );
		$local = 'localhost' === $host || '::1' === $host || 0 === strpos( $host, '127.' );
		// On this machine, a certificate proves nothing that the signature does not: it need not be a public one.
		$context = stream_context_create(
			array(
				'ssl' => array(
					'peer_name'         => $local ? $name : $host,
					'SNI_enabled'       => true,
					'verify_peer'       => ! $local,
					'verify_peer_name'  => ! $local,
					'allow_self_signed' => $local,
				),
			)
		);
		$until   = microtime( true ) + self::SECONDS_MAX;
		$where   = ( $tls ? 'tls://' : 'tcp://' ) . ( false === strpos( $host, ':' ) ? $host : '[' . $host . ']' ) . ':' . $port;
		// phpcs:disable WordPress.WP.AlternativeFunctions, WordPress.PHP.NoSilencedErrors -- A socket, not a file; errors are returned.
		$socket = @stream_socket_client( $where, $number, $text, self::SECONDS_MAX, STREAM_CLIENT_CONNECT, $context );
		if ( ! $socket ) {
			/* translators: 1: host and port, 2: what failed. */
			return sprintf( __( 'No connection to Seawall at %1$s: %2$s', 'seawall' ), $host . ':' . $port, '' === (string) $text ? __( 'no answer', 'seawall' ) : $text );
		}
		stream_set_timeout( $socket, (int) self::SECONDS_MAX );
		$answer = '';
		$end    = -1;
		if ( @fwrite( $socket, $request ) === strlen( $request ) ) {
			stream_set_blocking( $socket, false );
			while ( ! isset( $answer[ self::ANSWER_BYTES_MAX ] ) ) {
				$left = $until - microtime( true );
				if ( $left <= 0 ) {
					break;
				}
				$bytes = @fread( $socket, 8192 );
				if ( is_string( $bytes ) && '' !== $bytes ) {
					$answer .= $bytes;
				} elseif ( feof( $socket ) ) {
					break;
				} else {
					$read  = array( $socket );
					$write = null;
					$other = null;
					@stream_select( $read, $write, $other, (int) $left, (int) ( fmod( $left, 1 ) * 1000000 ) );
				}
				if ( self::is_whole( $answer ) ) {
					break;
				}
			}
		}
		fclose( $socket );
		// phpcs:enable
		if ( ! preg_match( '~^HTTP/1\.[01] (\d{3})~', $answer, $match ) ) {
			/* translators: %s: host and port. */
			return sprintf( __( 'Seawall at %s did not answer in time.', 'seawall' ), $host . ':' . $port );
		}
		$end  = strpos( $answer, "\r\n\r\n" );
		$body = false === $end ? '' : substr( $answer, $end + 4 );
		if ( false !== $end && preg_match( '/^transfer-encoding:\s*chunked/im', substr( $answer, 0, $end ) ) ) {
			$body = (string) preg_replace( '/^[0-9a-f]+[^\r\n]*\r\n|\r\n(?:[0-9a-f]+[^\r\n]*\r\n)/i', '', $body );
		}
		return array(
			'status' => (int) $match[1],
			'body'   => trim( $body ),
		);
	}

	/**
	 * Returns whether an answer with Content-Length has all its content: the other side may be slow to close.
	 *
	 * @param string $answer The answer so far.
	 * @return bool
	 */
	private static function is_whole( $answer ) {
		$end = strpos( $answer, "\r\n\r\n" );
		return false !== $end
			&& preg_match( '/^content-length:\s*(\d+)/im', substr( $answer, 0, $end ), $match )
			&& strlen( $answer ) >= $end + 4 + (int) $match[1];
	}

	/**
	 * Returns a failure.
	 *
	 * @param string $text What failed.
	 * @return array
	 */
	private static function failed( $text ) {
		return array(
			'ok'   => false,
			'text' => $text,
		);
	}

	/**
	 * Remembers a purge, to be shown.
	 *
	 * @param string[]  $words  The words.
	 * @param string    $text   The result.
	 * @param bool|null $ok     Whether it worked; null if nobody can know.
	 * @param string    $reason What happened; the first change of this request if it is left out.
	 */
	private function log( array $words, $text, $ok, $reason = '' ) {
		$log = self::last();
		array_unshift(
			$log,
			array(
				'time'   => time(),
				'reason' => '' === $reason ? $this->changes->reason() : $reason,
				'words'  => array_slice( $words, 0, 12 ),
				'count'  => count( $words ),
				'text'   => $text,
				'ok'     => $ok,
			)
		);
		update_option( self::LOG_OPTION, array_slice( $log, 0, self::LOG_MAX ), false );
	}

	/**
	 * Returns the last purges, the newest first.
	 *
	 * @return array
	 */
	public static function last() {
		$log = get_option( self::LOG_OPTION );
		return is_array( $log ) ? array_values( array_filter( $log, 'is_array' ) ) : array();
	}

	/**
	 * Says a reason in words: most reasons are names of hooks.
	 *
	 * @param string $reason The reason, as it is sent and kept.
	 * @return string
	 */
	public static function reason_in_words( $reason ) {
		$beginnings = array(
			'admin bar'        => __( 'purged by hand, in the admin bar', 'seawall' ),
			'wp seawall purge' => __( 'purged by hand, by WP-CLI', 'seawall' ),
			'test'             => __( 'a test', 'seawall' ),
			'retry'            => __( 'sent again', 'seawall' ),
			'many posts'       => __( 'many posts have changed', 'seawall' ),
			'another site'     => __( 'another site of the network has changed', 'seawall' ),
			'comment'          => __( 'a comment has changed', 'seawall' ),
			'menu'             => __( 'a menu has changed', 'seawall' ),
			'nav_menu'         => __( 'a menu has changed', 'seawall' ),
			'term'             => __( 'a category or tag has changed', 'seawall' ),
			'user'             => __( 'a user has changed', 'seawall' ),
			'profile'          => __( 'a user has changed', 'seawall' ),
			'option'           => __( 'a setting has changed', 'seawall' ),
			'customize'        => __( 'the design has changed', 'seawall' ),
			'theme'            => __( 'the theme has changed', 'seawall' ),
			'plugin'           => __( 'a plugin has changed', 'seawall' ),
			'upgrader'         => __( 'something was updated', 'seawall' ),
			'woocommerce'      => __( 'a product has changed', 'seawall' ),
			'attachment'       => __( 'a file of the library has changed', 'seawall' ),
			'post'             => __( 'a post has changed', 'seawall' ),
		);
		foreach ( $beginnings as $part => $words ) {
			if ( false !== strpos( $reason, $part ) ) {
				return $words;
			}
		}
		return $reason;
	}
}
