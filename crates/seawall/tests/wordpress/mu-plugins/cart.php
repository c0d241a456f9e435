<?php
// A shop, as far as a cache can tell it from WooCommerce: its cookies, its fields, its addresses. What is in the cart is on the server.

function seaside_cart(): array {
	$key = $_COOKIE['wp_woocommerce_session_tests'] ?? '';
	return $key ? (array) get_option( "cart_$key", array() ) : array();
}

add_action(
	'init',
	function () {
		if ( isset( $_REQUEST['add-to-cart'] ) ) {
			$key    = $_COOKIE['wp_woocommerce_session_tests'] ?? bin2hex( random_bytes( 8 ) );
			$cart   = (array) get_option( "cart_$key", array() );
			$cart[] = sanitize_text_field( wp_unslash( $_REQUEST['add-to-cart'] ) );
			update_option( "cart_$key", $cart, false );
			$_COOKIE['wp_woocommerce_session_tests'] = $key;
			setcookie( 'wp_woocommerce_session_tests', $key, 0, '/' );
			setcookie( 'woocommerce_items_in_cart', '1', 0, '/' );
			setcookie( 'woocommerce_cart_hash', md5( implode( ',', $cart ) ), 0, '/' );
			wp_safe_redirect( home_url( '/warenkorb/' ) );
			exit;
		}
	},
	20
);
// WooCommerce does this on its pages, however their addresses are translated.
add_action(
	'template_redirect',
	function () {
		if ( is_page( 'warenkorb' ) ) {
			nocache_headers();
		}
	}
);
add_filter(
	'the_content',
	fn( $content ) => is_page( 'warenkorb' ) ? '<p>In the cart: ' . esc_html( implode( ', ', seaside_cart() ) ) . '.</p>' : $content
);
// A line on every page, for as long as something is in the cart.
add_action(
	'wp_footer',
	function () {
		if ( seaside_cart() ) {
			echo '<p>You have ' . count( seaside_cart() ) . ' of ' . esc_html( implode( ', ', seaside_cart() ) ) . '</p>';
		}
	}
);
add_action(
	'wp_loaded',
	function () {
		if ( isset( $_GET['wc-ajax'] ) ) {
			nocache_headers();
			wp_send_json( array( 'fragments' => seaside_cart() ) );
		}
	}
);
