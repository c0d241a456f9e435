<?php
/**
 * Removes all that the plugin kept.
 *
 * @package Seawall
 */

defined( 'WP_UNINSTALL_PLUGIN' ) || exit;

/**
 * Removes what the plugin kept of one site.
 */
function seawall_uninstall_site() {
	global $wpdb;
	foreach ( array( 'seawall_settings', 'seawall_found', 'seawall_log', 'seawall_pending' ) as $option ) {
		delete_option( $option );
	}
	// phpcs:ignore WordPress.DB.DirectDatabaseQuery -- Transients cannot be listed in another way.
	$notices = $wpdb->get_col( "SELECT option_name FROM $wpdb->options WHERE option_name LIKE '\_transient\_seawall\_notice\_%'" );
	foreach ( $notices as $notice ) {
		delete_transient( substr( $notice, strlen( '_transient_' ) ) );
	}
	wp_clear_scheduled_hook( 'seawall_retry' );
}

if ( is_multisite() ) {
	foreach ( get_sites(
		array(
			'fields' => 'ids',
			'number' => 0,
		)
	) as $seawall_site ) {
		switch_to_blog( $seawall_site );
		seawall_uninstall_site();
		restore_current_blog();
	}
} else {
	seawall_uninstall_site();
}
