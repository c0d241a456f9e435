<?php
/**
 * The test of Site Health.
 *
 * @package Seawall
 */

defined( 'ABSPATH' ) || exit;

/**
 * Says whether Seawall is in front, whether purges reach it, and what to do if not.
 */
final class Seawall_Health {

	/**
	 * What takes changes to Seawall.
	 *
	 * @var Seawall_Purger
	 */
	private $purger;

	/**
	 * Makes the test.
	 *
	 * @param Seawall_Purger $purger What takes changes to Seawall.
	 */
	public function __construct( Seawall_Purger $purger ) {
		$this->purger = $purger;
	}

	/**
	 * Begins to watch.
	 */
	public function watch() {
		add_filter( 'site_status_tests', array( $this, 'tests' ) );
		add_action( 'wp_ajax_health-check-seawall', array( $this, 'ajax' ) );
	}

	/**
	 * Adds the test. It asks over the network, so it runs by itself.
	 *
	 * @param array $tests The tests.
	 * @return array
	 */
	public function tests( $tests ) {
		$tests['async']['seawall'] = array(
			'label'             => __( 'Seawall', 'seawall' ),
			'test'              => 'seawall',
			'async_direct_test' => array( $this, 'test' ),
		);
		return $tests;
	}

	/**
	 * Answers the Site Health screen.
	 */
	public function ajax() {
		check_ajax_referer( 'health-check-site-status' );
		if ( ! current_user_can( 'view_site_health_checks' ) ) {
			wp_send_json_error();
		}
		wp_send_json_success( $this->test() );
	}

	/**
	 * Returns whether a page of this site comes through Seawall: true, false, or null if it cannot be fetched from here.
	 *
	 * @return bool|null
	 */
	public static function is_in_front() {
		$answer = wp_remote_get(
			home_url( '/' ),
			array(
				'timeout'     => 5, // phpcs:ignore WordPressVIPMinimum.Performance.RemoteRequestTimeout
				'redirection' => 0,
				'sslverify'   => false, // It is asked who answers, nothing else.
				'cookies'     => array(),
			)
		);
		if ( is_wp_error( $answer ) ) {
			return null;
		}
		$status = wp_remote_retrieve_header( $answer, 'cache-status' );
		$own    = wp_remote_retrieve_header( $answer, 'seawall-plugin' );
		foreach ( (array) $status as $line ) {
			if ( preg_match( '/(^|,)\s*seawall\b/i', (string) $line ) ) {
				return '' === $own || array() === $own; // Seawall removes that field: where it is left, Seawall is not the last one.
			}
		}
		return false;
	}

	/**
	 * Runs the test.
	 *
	 * @return array As Site Health wants it.
	 */
	public function test() {
		$in_front = Seawall_Settings::through_seawall() ? true : self::is_in_front();
		$purge    = '' === Seawall_Settings::url() ? null : $this->purger->post( array( 'seawall-test' ), 'site health' );
		if ( null !== $purge && ! $purge['ok'] ) {
			return $this->result(
				'critical',
				__( 'Purges do not reach Seawall', 'seawall' ),
				$purge['text'] . ' ' . __( 'Readers may see old pages for up to a day. Changes made in the browser are purged all the same if the browser talks to Seawall.', 'seawall' )
			);
		}
		if ( true === $in_front && null === $purge ) {
			return $this->result(
				'recommended',
				__( 'Seawall does not learn of scheduled posts at once', 'seawall' ),
				__( 'Seawall is in front of this site, and changes made in the browser are live at once. For scheduled posts and WP-CLI, set the address for purges: under Settings > Seawall, or with the constants SEAWALL_PURGE_URL and SEAWALL_SECRET in wp-config.php.', 'seawall' )
			);
		}
		if ( true === $in_front ) {
			return $this->result( 'good', __( 'Seawall is in front of this site, and purges reach it', 'seawall' ), __( 'What you publish is live on the next request.', 'seawall' ) );
		}
		if ( null === $in_front ) {
			return $this->result(
				null === $purge ? 'recommended' : 'good',
				__( 'It is not known whether Seawall is in front of this site', 'seawall' ),
				( null === $purge ? '' : __( 'Purges reach Seawall.', 'seawall' ) . ' ' ) . __( 'This site cannot fetch its own front page, so what answers readers cannot be seen from here.', 'seawall' )
			);
		}
		return $this->result(
			'recommended',
			__( 'Seawall is not in front of this site', 'seawall' ),
			__( 'The plugin does no harm without Seawall, and no good either. Start Seawall in front of this site, or deactivate the plugin.', 'seawall' )
		);
	}

	/**
	 * Returns a result as Site Health wants it.
	 *
	 * @param string $status good, recommended or critical.
	 * @param string $label  The headline.
	 * @param string $text   What it means, and what to do.
	 * @return array
	 */
	private function result( $status, $label, $text ) {
		return array(
			'label'       => $label,
			'status'      => $status,
			'badge'       => array(
				'label' => __( 'Performance', 'seawall' ),
				'color' => 'blue',
			),
			'description' => '<p>' . esc_html( $text ) . '</p>',
			'actions'     => '<p><a href="' . esc_url( admin_url( 'options-general.php?page=seawall' ) ) . '">' . esc_html__( 'Settings of Seawall', 'seawall' ) . '</a></p>',
			'test'        => 'seawall',
		);
	}
}
