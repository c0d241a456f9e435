<?php
/**
 * The command of WP-CLI.
 *
 * @package Seawall
 */

defined( 'ABSPATH' ) || exit;

/**
 * Shows what Seawall does, and purges.
 */
final class Seawall_Command {

	/**
	 * What takes changes to Seawall.
	 *
	 * @var Seawall_Purger
	 */
	private $purger;

	/**
	 * Makes the command.
	 *
	 * @param Seawall_Purger $purger What takes changes to Seawall.
	 */
	public function __construct( Seawall_Purger $purger ) {
		$this->purger = $purger;
	}

	/**
	 * Shows where Seawall is, whether purges reach it, and the last purges.
	 *
	 * ## EXAMPLES
	 *
	 *     wp seawall status
	 *
	 * @param string[] $args    Not used.
	 * @param string[] $options Not used.
	 */
	public function status( $args, $options ) { // phpcs:ignore Generic.CodeAnalysis.UnusedFunctionParameter -- WP-CLI gives them.
		$url = Seawall_Settings::url();
		WP_CLI::line( 'Plugin: ' . SEAWALL_PLUGIN_VERSION );
		WP_CLI::line( 'Address for purges: ' . ( '' === $url ? 'not known' : $url ) );
		WP_CLI::line( 'From: ' . ( '' === $url ? '-' : Seawall_Settings::source() ) );
		WP_CLI::line( 'Secret: ' . ( '' === Seawall_Settings::secret() ? 'none' : 'there is one' ) );
		foreach ( Seawall_Purger::last() as $purge ) {
			WP_CLI::line( gmdate( 'Y-m-d\TH:i:s\Z', $purge['time'] ) . '  ' . $purge['reason'] . '  ' . implode( ',', $purge['words'] ) . '  ' . $purge['text'] );
		}
		if ( '' === $url ) {
			WP_CLI::error( 'The address for purges is not known. Open a page through Seawall once, or define SEAWALL_PURGE_URL and SEAWALL_SECRET in wp-config.php.' );
		}
		$result = $this->purger->post( array( 'seawall-test' ), 'wp seawall status' );
		if ( ! $result['ok'] ) {
			WP_CLI::error( $result['text'] );
		}
		WP_CLI::success( 'Purges reach Seawall.' );
	}

	/**
	 * Purges a page, a post and what shows it, or everything.
	 *
	 * ## OPTIONS
	 *
	 * [<url>...]
	 * : Addresses or paths of pages.
	 *
	 * [--all]
	 * : Everything.
	 *
	 * [--post=<id>]
	 * : All pages that show this post.
	 *
	 * ## EXAMPLES
	 *
	 *     wp seawall purge /about/
	 *     wp seawall purge --post=12
	 *     wp seawall purge --all
	 *
	 * @param string[] $args    The addresses.
	 * @param string[] $options The options.
	 */
	public function purge( $args, $options ) {
		$words = array();
		if ( ! empty( $options['all'] ) ) {
			$words[] = '*';
		}
		if ( isset( $options['post'] ) ) {
			if ( ! is_numeric( $options['post'] ) ) {
				WP_CLI::error( '--post needs the ID of a post.' );
			}
			$words[] = 'post-' . (int) $options['post'];
			$words[] = 'many-post';
		}
		foreach ( $args as $url ) {
			$words[] = 'url=' . str_replace( ',', '%2C', $url );
		}
		if ( ! $words ) {
			WP_CLI::error( 'Say what: an address, --post=<id>, or --all.' );
		}
		if ( '' === Seawall_Settings::url() ) {
			WP_CLI::error( 'The address for purges is not known. Open a page through Seawall once, or define SEAWALL_PURGE_URL and SEAWALL_SECRET in wp-config.php.' );
		}
		$result = $this->purger->send( $words, 'wp seawall purge' );
		if ( ! $result['ok'] ) {
			WP_CLI::error( $result['text'] );
		}
		WP_CLI::success( $result['text'] );
	}
}
