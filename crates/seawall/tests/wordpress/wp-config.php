<?php
// The configuration of a test's WordPress: the harness and `bring-up` put the three names between @ in.

define( 'DB_NAME', '@DATABASE@' );
define( 'DB_USER', 'blog' );
define( 'DB_PASSWORD', 'blog' );
define( 'DB_HOST', 'localhost:@SOCKET@' );
define( 'DB_CHARSET', 'utf8mb4' );
define( 'DB_COLLATE', '' );

foreach ( array( 'AUTH', 'SECURE_AUTH', 'LOGGED_IN', 'NONCE' ) as $name ) {
	define( "{$name}_KEY", "the key of $name in tests, which protects nothing" );
	define( "{$name}_SALT", "the salt of $name in tests, which protects nothing" );
}
$table_prefix = 'wp_';

define( 'WP_HOME', '@URL@' );
define( 'WP_SITEURL', '@URL@' );
if ( 'https' === ( $_SERVER['HTTP_X_FORWARDED_PROTO'] ?? '' ) ) {
	$_SERVER['HTTPS'] = 'on';
}
define( 'WP_ENVIRONMENT_TYPE', 'local' ); // Application passwords also over plain HTTP.
define( 'WP_HTTP_BLOCK_EXTERNAL', true ); // It talks to nobody but this machine.
define( 'AUTOMATIC_UPDATER_DISABLED', true );
define( 'FS_METHOD', 'direct' );
define( 'WP_DEBUG', false );
if ( is_file( __DIR__ . '/wp-config-more.php' ) ) {
	require __DIR__ . '/wp-config-more.php';
}
if ( ! defined( 'ABSPATH' ) ) {
	define( 'ABSPATH', __DIR__ . '/' );
}
require_once ABSPATH . 'wp-settings.php';
