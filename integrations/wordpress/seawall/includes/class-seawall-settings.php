<?php
/**
 * Where Seawall is, and the secret that it knows us by.
 *
 * @package Seawall
 */

defined( 'ABSPATH' ) || exit;

/**
 * Finds the address for purges and the secret.
 *
 * In this order: constants in wp-config.php; what Seawall says to the PHP that it runs; the environment; the settings page; what Seawall
 * said before (WP-CLI and cron jobs of the system do not come through Seawall).
 */
final class Seawall_Settings {

	/** What the settings page keeps: array( 'url' => , 'secret' => ). */
	const OPTION = 'seawall_settings';

	/** What Seawall said last: array( 'url' => , 'secret' => , 'version' => ). */
	const FOUND_OPTION = 'seawall_found';

	/**
	 * Returns a FastCGI parameter of Seawall, or an empty string.
	 *
	 * A reader cannot set one: the fields of a request get names that begin with HTTP_.
	 *
	 * @param string $name The name.
	 * @return string
	 */
	private static function parameter( $name ) {
		// The value is not cleaned: a secret is any string. It comes from the server's configuration.
		return isset( $_SERVER[ $name ] ) && is_string( $_SERVER[ $name ] ) ? wp_unslash( $_SERVER[ $name ] ) : ''; // phpcs:ignore WordPress.Security.ValidatedSanitizedInput.InputNotSanitized
	}

	/**
	 * Returns whether Seawall itself runs this PHP, so that this response goes through it.
	 *
	 * @return bool
	 */
	public static function through_seawall() {
		return '' !== self::parameter( 'SEAWALL' );
	}

	/**
	 * Returns whether Seawall calls wp-cron.php on its schedule, and this is another request.
	 *
	 * @return bool
	 */
	public static function runs_cron() {
		return '1' === self::parameter( 'SEAWALL_CRON' ) && ! wp_doing_cron();
	}

	/**
	 * Returns Seawall's version where Seawall runs this PHP, or what it was when it last did.
	 *
	 * @return string
	 */
	public static function version() {
		$found   = self::found();
		$version = self::parameter( 'SEAWALL' );
		return '' !== $version ? $version : $found['version'];
	}

	/**
	 * Returns the address for purges, or an empty string.
	 *
	 * @return string
	 */
	public static function url() {
		return self::pair()['url'];
	}

	/**
	 * Returns the secret, or an empty string. Without one, Seawall accepts purges only from addresses that its configuration allows.
	 *
	 * @return string
	 */
	public static function secret() {
		return self::pair()['secret'];
	}

	/**
	 * Returns where the address and the secret come from: constant, parameter, environment, page, remembered, or an empty string.
	 *
	 * @return string
	 */
	public static function source() {
		return self::pair()['source'];
	}

	/**
	 * Returns the address and the secret. Both come from one place: the secret of one Seawall is of no use to another.
	 *
	 * @return array
	 */
	private static function pair() {
		if ( defined( 'SEAWALL_PURGE_URL' ) && is_string( SEAWALL_PURGE_URL ) && '' !== SEAWALL_PURGE_URL ) {
			return array(
				'url'    => SEAWALL_PURGE_URL,
				'secret' => defined( 'SEAWALL_SECRET' ) ? (string) SEAWALL_SECRET : '',
				'source' => 'constant',
			);
		}
		if ( '' !== self::parameter( 'SEAWALL_PURGE_URL' ) ) {
			return array(
				'url'    => self::parameter( 'SEAWALL_PURGE_URL' ),
				'secret' => self::parameter( 'SEAWALL_SECRET' ),
				'source' => 'parameter',
			);
		}
		$environment = getenv( 'SEAWALL_PURGE_URL' );
		if ( is_string( $environment ) && '' !== $environment ) {
			return array(
				'url'    => $environment,
				'secret' => (string) getenv( 'SEAWALL_SECRET' ),
				'source' => 'environment',
			);
		}
		$page = self::page();
		if ( '' !== $page['url'] ) {
			return $page + array( 'source' => 'page' );
		}
		$found = self::found();
		return array(
			'url'    => $found['url'],
			'secret' => $found['secret'],
			'source' => '' === $found['url'] ? '' : 'remembered',
		);
	}

	/**
	 * Returns what the settings page keeps.
	 *
	 * @return array
	 */
	public static function page() {
		$page = get_option( self::OPTION );
		return array(
			'url'    => isset( $page['url'] ) ? (string) $page['url'] : '',
			'secret' => isset( $page['secret'] ) ? (string) $page['secret'] : '',
			'typed'  => isset( $page['typed'] ) ? (string) $page['typed'] : '',
		);
	}

	/**
	 * Returns what Seawall said last.
	 *
	 * @return array
	 */
	private static function found() {
		$found = get_option( self::FOUND_OPTION );
		return array(
			'url'     => isset( $found['url'] ) ? (string) $found['url'] : '',
			'secret'  => isset( $found['secret'] ) ? (string) $found['secret'] : '',
			'version' => isset( $found['version'] ) ? (string) $found['version'] : '',
		);
	}

	/**
	 * Remembers what Seawall says, for WP-CLI and for cron jobs of the system. Writes only when it says something new.
	 */
	public static function remember() {
		if ( ! self::through_seawall() || '' === self::parameter( 'SEAWALL_PURGE_URL' ) ) {
			return;
		}
		$said = array(
			'url'     => self::parameter( 'SEAWALL_PURGE_URL' ),
			'secret'  => self::parameter( 'SEAWALL_SECRET' ),
			'version' => self::parameter( 'SEAWALL' ),
		);
		if ( self::found() !== $said ) {
			update_option( self::FOUND_OPTION, $said );
		}
	}
}
