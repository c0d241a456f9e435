<?php
// Answers those who want activities with one, at the address of the post, as the ActivityPub plugin does.
add_action(
	'template_redirect',
	function () {
		if ( is_singular() && str_contains( $_SERVER['HTTP_ACCEPT'] ?? '', 'application/activity+json' ) ) {
			header( 'Content-Type: application/activity+json' );
			echo wp_json_encode( array( 'type' => 'Note' ) );
			exit;
		}
	}
);
