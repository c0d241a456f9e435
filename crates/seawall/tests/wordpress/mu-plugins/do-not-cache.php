<?php
// A plugin that says in the way of plugins that its page is not for caches.
add_action(
	'wp',
	function () {
		if ( is_page( 'contact' ) ) {
			define( 'DONOTCACHEPAGE', true );
		}
	}
);
add_filter( 'the_content', fn( $content ) => is_page( 'contact' ) ? $content . '<p>Number ' . wp_rand() . '</p>' : $content );
