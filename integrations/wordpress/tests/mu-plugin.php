<?php
/**
 * Makes a page behave as plugins do, for responses.php: /?case=NAME.
 *
 * @package Seawall
 */

// phpcs:disable
$seawall_case = isset( $_GET['case'] ) ? $_GET['case'] : '';
switch ( $seawall_case ) {
	case 'donotcachepage':
		define( 'DONOTCACHEPAGE', true );
		break;
	case 'donotcachepage-late':
		add_action( 'wp_footer', function () { define( 'DONOTCACHEPAGE', true ); } );
		break;
	case 'donotcachepage-false':
		define( 'DONOTCACHEPAGE', false );
		break;
	case 'nocache':
		add_action( 'wp', 'nocache_headers' );
		break;
	case 'cookie':
		add_action( 'init', function () { setcookie( 'PHPSESSID', 'x' ); } );
		break;
	case 'session':
		add_action( 'init', function () { session_start(); } );
		break;
	case 'cart':
		function is_cart() { return true; }
		break;
	case 'checkout':
		function is_checkout() { return true; }
		break;
	case 'account':
		function is_account_page() { return true; }
		break;
	case 'filter':
		add_filter( 'seawall_lifetime', function () { return 60; } );
		break;
	case 'filter-zero':
		add_filter( 'seawall_lifetime', '__return_zero' );
		break;
	case 'flush':
		add_action( 'wp_head', function () { ob_flush(); flush(); } );
		break;
	case 'stream':
		add_action( 'template_redirect', function () {
			header( 'Content-Type: text/event-stream' );
			echo "data: 1\n\n";
			ob_flush();
			flush();
			echo "data: 2\n\n";
			exit;
		} );
		break;
	case 'download':
		add_action( 'template_redirect', function () {
			while ( ob_get_level() ) { ob_end_clean(); }
			header( 'Content-Type: application/zip' );
			echo str_repeat( 'x', 100000 );
			exit;
		} );
		break;
	case 'huge':
		add_action( 'wp_footer', function () {
			for ( $i = 0; $i < 10; $i++ ) { echo str_repeat( 'x', 1048576 ); ob_flush(); }
		} );
		break;
	case 'early':
		add_action( 'init', function () { header( 'Content-Type: application/json' ); echo '{}'; exit; } );
		break;
	case 'early-own':
		add_action( 'init', function () { header( 'Content-Type: application/json' ); header( 'Cache-Control: max-age=60' ); echo '{}'; exit; } );
		break;
	case 'redirect':
		add_action( 'template_redirect', function () { wp_redirect( home_url( '/' ) ); exit; } );
		break;
	case 'views':
		// A counter of views, on each view, as plugins do.
		add_action( 'wp_footer', function () { update_post_meta( 28, 'views', 1 + (int) get_post_meta( 28, 'views', true ) ); clean_post_cache( 28 ); update_option( 'visits', mt_rand() ); } );
		break;
	case 'words':
		add_action( 'wp_footer', function () { Seawall_Plugin::tags()->add( 'weather' ); } );
		break;
	case 'change':
		// A reader's request that changes something, as a job in a page view does.
		add_action( 'init', function () { Seawall_Plugin::changes()->add( array( 'post-7' ), 'test' ); } );
		break;
	case 'change-after':
		// ... and something more, when the response has left.
		add_action( 'init', function () { Seawall_Plugin::changes()->add( array( 'post-7' ), 'test' ); } );
		add_action( 'shutdown', function () { Seawall_Plugin::changes()->add( array( 'post-8' ), 'test' ); }, 100 );
		break;
	case 'change-much':
		add_action( 'init', function () { Seawall_Plugin::changes()->add( array_map( function ( $id ) { return "post-$id"; }, range( 1, 300 ) ), 'test' ); } );
		break;
	case 'cron':
		add_action( 'init', function () { header( 'Content-Type: text/plain' ); echo defined( 'DISABLE_WP_CRON' ) && DISABLE_WP_CRON ? 'off' : 'on'; exit; } );
		break;
	case 'settings':
		add_action( 'init', function () { header( 'Content-Type: text/plain' ); echo json_encode( array( Seawall_Settings::url(), Seawall_Settings::secret(), Seawall_Settings::source() ) ); exit; } );
		break;
}
