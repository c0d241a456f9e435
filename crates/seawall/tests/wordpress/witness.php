<?php
// Runs before every script that PHP is asked for: it writes down who asked for what, and holds an answer back if a test says so.

( function () {
	$folder = getenv( 'SEAWALL_WITNESS' );
	$target = $_SERVER['REQUEST_URI'] ?? '';
	$seen   = array(
		'method' => $_SERVER['REQUEST_METHOD'] ?? '',
		'target' => $target,
		'sent'   => array_filter( $_SERVER, fn( $name ) => is_string( $name ), ARRAY_FILTER_USE_KEY ),
	);
	file_put_contents( "$folder/asked", json_encode( $seen, JSON_UNESCAPED_SLASHES | JSON_INVALID_UTF8_SUBSTITUTE ) . "\n", FILE_APPEND | LOCK_EX );

	$hold = "$folder/hold-" . md5( $target );
	if ( @rename( $hold, "$hold-taken" ) ) {
		// The page is made now, from what is true now, and given later.
		ob_start(
			function ( $content ) use ( $hold ) {
				touch( "$hold-answered" );
				while ( file_exists( "$hold-taken" ) ) {
					usleep( 5000 );
					clearstatcache();
				}
				return $content;
			}
		);
	}
} )();
