<?php
/**
 * Puts the parts together.
 *
 * @package Seawall
 */

defined( 'ABSPATH' ) || exit;

/**
 * Owns one of each part, and decides which of them a request needs.
 *
 * The idea of the plugin: `Seawall_Tags` watches what a page is made of, `Seawall_Changes` watches what is written, and both use the names
 * of `Seawall_Names`. A page whose tags and a change whose names have a word in common is a page that the change may have changed.
 */
final class Seawall_Plugin {

	/**
	 * What the page of this request is made of.
	 *
	 * @var Seawall_Tags
	 */
	private static $tags;

	/**
	 * What this request has changed.
	 *
	 * @var Seawall_Changes
	 */
	private static $changes;

	/**
	 * What takes changes to Seawall.
	 *
	 * @var Seawall_Purger
	 */
	private static $purger;

	/**
	 * Starts the plugin. WordPress has loaded neither the theme nor the user yet.
	 */
	public static function start() {
		self::$tags    = new Seawall_Tags();
		self::$changes = new Seawall_Changes();
		self::$purger  = new Seawall_Purger( self::$changes );

		// Seawall calls wp-cron.php itself. Page views then need not do so, and a page for readers does not depend on who asked last.
		if ( Seawall_Settings::runs_cron() && ! defined( 'DISABLE_WP_CRON' ) ) {
			define( 'DISABLE_WP_CRON', true ); // phpcs:ignore WordPress.NamingConventions.PrefixAllGlobals -- It is WordPress's own.
		}

		self::$changes->watch();
		self::$purger->watch();
		( new Seawall_Response( self::$tags, self::$purger ) )->watch();

		add_action( 'init', array( 'Seawall_Settings', 'remember' ) );
		add_action( 'init', array( __CLASS__, 'translate' ) );
		if ( is_admin() || self::has_login_cookie() ) {
			require_once __DIR__ . '/class-seawall-admin.php';
			require_once __DIR__ . '/class-seawall-health.php';
			( new Seawall_Admin( self::$purger ) )->watch();
			( new Seawall_Health( self::$purger ) )->watch();
		} elseif ( wp_doing_cron() ) {
			// WordPress runs the tests of Site Health once a week.
			require_once __DIR__ . '/class-seawall-health.php';
			( new Seawall_Health( self::$purger ) )->watch();
		}
		if ( defined( 'WP_CLI' ) && WP_CLI ) {
			require_once __DIR__ . '/class-seawall-command.php';
			WP_CLI::add_command( 'seawall', new Seawall_Command( self::$purger ) );
		}
		register_deactivation_hook( SEAWALL_PLUGIN_FILE, array( __CLASS__, 'deactivate' ) );
		register_activation_hook( SEAWALL_PLUGIN_FILE, array( __CLASS__, 'activate' ) );
	}

	/**
	 * Loads translations from the plugin's own folder; those of translate.wordpress.org need no code.
	 */
	public static function translate() {
		load_plugin_textdomain( 'seawall', false, dirname( plugin_basename( SEAWALL_PLUGIN_FILE ) ) . '/languages' );
	}

	/**
	 * Purges everything when the plugin starts its work: pages that were stored before have no tags.
	 */
	public static function activate() {
		self::$changes->everything( 'activate' );
	}

	/**
	 * Purges everything when the plugin ends its work: nobody says any more which of the stored pages change.
	 */
	public static function deactivate() {
		self::$changes->everything( 'deactivate' );
		wp_clear_scheduled_hook( Seawall_Purger::RETRY_HOOK );
	}

	/**
	 * Returns whether the request has a cookie of a user, valid or not. WordPress does not know the user this early.
	 *
	 * @return bool
	 */
	public static function has_login_cookie() {
		foreach ( array_keys( $_COOKIE ) as $name ) {
			if ( 0 === strpos( (string) $name, 'wordpress_logged_in_' ) ) {
				return true;
			}
		}
		return false;
	}

	/**
	 * Returns whether the request can only read: GET or HEAD, from the web.
	 *
	 * @return bool
	 */
	public static function only_reads() {
		$method = isset( $_SERVER['REQUEST_METHOD'] ) ? sanitize_key( $_SERVER['REQUEST_METHOD'] ) : '';
		return 'get' === $method || 'head' === $method;
	}

	/**
	 * Returns what takes changes to Seawall, for other plugins and for tests.
	 *
	 * @return Seawall_Purger
	 */
	public static function purger() {
		return self::$purger;
	}

	/**
	 * Returns what this request has changed, for other plugins: `Seawall_Plugin::changes()->add( array( 'post-12' ), 'my-plugin' )`.
	 *
	 * @return Seawall_Changes
	 */
	public static function changes() {
		return self::$changes;
	}

	/**
	 * Returns what the page is made of, for other plugins: `Seawall_Plugin::tags()->add( 'weather' )`.
	 *
	 * @return Seawall_Tags
	 */
	public static function tags() {
		return self::$tags;
	}
}
