<?php
/**
 * What the plugin writes on responses, and what it sends to Seawall: a real WordPress, asked over FastCGI as Seawall asks, and a Seawall
 * that this script plays itself.
 *
 *     php responses.php HTDOCS FASTCGI-SOCKET HOST[:PORT]
 *
 * The plugin is active in HTDOCS. HOST is the site's own address. The blog is changed: use a copy.
 *
 * @package Seawall
 */

// phpcs:disable
if ( $argc < 4 ) {
	fwrite( STDERR, "usage: php responses.php HTDOCS FASTCGI-SOCKET HOST[:PORT]\n" );
	exit( 2 );
}
list( , $htdocs, $fpm, $host ) = $argv;
$passed = 0;
$failed = 0;

function check( $name, $expected, $is ) {
	global $passed, $failed;
	if ( $expected === $is ) {
		++$passed;
		echo "ok      $name\n";
		return;
	}
	++$failed;
	echo "FAILED  $name\n          expected ", json_encode( $expected, JSON_UNESCAPED_SLASHES ), "\n          is       ", json_encode( $is, JSON_UNESCAPED_SLASHES ), "\n";
}

/** Asks php-fpm for a page: array( 'status', 'fields' => array( name => value ), 'body' ). */
function ask( $uri, array $params = array(), $method = 'GET' ) {
	global $htdocs, $fpm, $host;
	$params += array(
		'REQUEST_METHOD'  => $method,
		'REQUEST_URI'     => $uri,
		'QUERY_STRING'    => (string) parse_url( $uri, PHP_URL_QUERY ),
		'SCRIPT_FILENAME' => "$htdocs/index.php",
		'SCRIPT_NAME'     => '/index.php',
		'DOCUMENT_ROOT'   => $htdocs,
		'SERVER_PROTOCOL' => 'HTTP/1.1',
		'SERVER_NAME'     => preg_replace( '/:\d+$/', '', $host ),
		'SERVER_PORT'     => '80',
		'REMOTE_ADDR'     => '192.0.2.1',
		'HTTP_HOST'       => $host,
		'GATEWAY_INTERFACE' => 'CGI/1.1',
	);
	$length = function ( $text ) {
		return strlen( $text ) < 128 ? chr( strlen( $text ) ) : pack( 'N', strlen( $text ) | 0x80000000 );
	};
	$pairs = '';
	foreach ( $params as $name => $value ) {
		$pairs .= $length( $name ) . $length( $value ) . $name . $value;
	}
	$record = function ( $type, $content ) {
		return pack( 'CCnnCC', 1, $type, 1, strlen( $content ), 0, 0 ) . $content;
	};
	$socket = stream_socket_client( "unix://$fpm", $number, $text, 10 );
	stream_set_timeout( $socket, 30 );
	fwrite( $socket, $record( 1, pack( 'nCx5', 1, 0 ) ) . $record( 4, $pairs ) . $record( 4, '' ) . $record( 5, '' ) );
	$out = '';
	while ( strlen( $head = (string) stream_get_contents( $socket, 8 ) ) === 8 ) {
		$of      = unpack( 'Cversion/Ctype/nid/nlength/Cpadding/Creserved', $head );
		$content = $of['length'] ? stream_get_contents( $socket, $of['length'] ) : '';
		$of['padding'] && stream_get_contents( $socket, $of['padding'] );
		if ( 6 === $of['type'] ) {
			$out .= $content;
		} elseif ( 7 === $of['type'] ) {
			echo "        stderr: $content\n";
		} elseif ( 3 === $of['type'] ) {
			break;
		}
	}
	fclose( $socket );
	list( $head, $body ) = explode( "\r\n\r\n", $out, 2 ) + array( '', '' );
	$fields = array();
	foreach ( explode( "\r\n", $head ) as $line ) {
		list( $name, $value ) = explode( ': ', $line, 2 ) + array( '', '' );
		$fields[ strtolower( $name ) ] = $value;
	}
	return array( 'status' => isset( $fields['status'] ) ? (int) $fields['status'] : 200, 'fields' => $fields, 'body' => $body );
}

function field( array $answer, $name ) {
	return isset( $answer['fields'][ $name ] ) ? $answer['fields'][ $name ] : null;
}

function tags( array $answer ) {
	return preg_split( '/[,\s]+/', (string) field( $answer, 'cache-tag' ), -1, PREG_SPLIT_NO_EMPTY );
}

/** Runs PHP inside WordPress from the command line; `$before` runs before WordPress does. */
function inside( $code, $before = '' ) {
	global $htdocs, $host;
	$script = tempnam( sys_get_temp_dir(), 'seawall' );
	file_put_contents( $script, '<?php $_SERVER["HTTP_HOST"] = ' . var_export( $host, true ) . '; ' . $before . ' require ' . var_export( "$htdocs/wp-load.php", true ) . '; wp_set_current_user( 1 ); ' . $code );
	$out = (string) shell_exec( escapeshellarg( PHP_BINARY ) . ' ' . escapeshellarg( $script ) . ' 2>&1' );
	unlink( $script );
	return trim( $out );
}

/** Plays Seawall: takes what is sent while `$do` runs; answers each with `$status` and `$body`, after `$wait` seconds. */
function as_seawall( callable $do, $status = 200, $body = '{"purged":3}', $wait = 0 ) {
	$server = stream_socket_server( 'tcp://127.0.0.1:0' );
	$port   = (int) preg_replace( '/.*:/', '', stream_socket_get_name( $server, false ) );
	$file   = tempnam( sys_get_temp_dir(), 'seawall' );
	$child  = pcntl_fork();
	if ( 0 === $child ) {
		while ( $client = @stream_socket_accept( $server, 60 ) ) {
			$in = '';
			while ( ! preg_match( '/\r\n\r\n/', $in ) && ! feof( $client ) ) {
				$in .= fread( $client, 8192 );
			}
			list( $head, $content ) = explode( "\r\n\r\n", $in, 2 ) + array( '', '' );
			$length = preg_match( '/content-length: (\d+)/i', $head, $found ) ? (int) $found[1] : 0;
			while ( strlen( $content ) < $length && ! feof( $client ) ) {
				$content .= fread( $client, 8192 );
			}
			file_put_contents( $file, json_encode( array( 'head' => $head, 'body' => $content ) ) . "\n", FILE_APPEND );
			$wait && usleep( (int) ( $wait * 1000000 ) );
			@fwrite( $client, "HTTP/1.1 $status X\r\nContent-Type: application/json\r\nContent-Length: " . strlen( $body ) . "\r\n\r\n" . $body );
			fclose( $client );
		}
		exit( 0 );
	}
	fclose( $server );
	try {
		$result = $do( $port );
	} finally {
		posix_kill( $child, SIGKILL );
		pcntl_waitpid( $child, $ended );
	}
	$sent = array();
	foreach ( file( $file ) as $line ) {
		$sent[] = json_decode( $line, true );
	}
	unlink( $file );
	return array( $result, $sent );
}

function purge_of( array $request ) {
	return json_decode( $request['body'], true )['purge'];
}

if ( ! is_dir( "$htdocs/wp-content/mu-plugins" ) ) {
	mkdir( "$htdocs/wp-content/mu-plugins" );
}
copy( __DIR__ . '/mu-plugin.php', "$htdocs/wp-content/mu-plugins/seawall-cases.php" );
inside( 'foreach ( array( "seawall_settings", "seawall_found", "seawall_log", "seawall_pending" ) as $o ) { delete_option( $o ); }' );
sleep( 3 ); // OPcache looks at files every two seconds.

// ------------------------------------------------------------------- fields

$post  = '/2025/06/what-the-frost-taught-me-about-beans/';
$plain = ask( $post );
check( 'a page says that the plugin is there', 'wordpress/1.0.0', field( $plain, 'seawall-plugin' ) );
check( 'a page may be stored for a day', 'max-age=86400', field( $plain, 'seawall-cache-control' ) );
check( 'a post has its tag', true, in_array( 'post-28', tags( $plain ), true ) );
check( 'a page without a change purges nothing', null, field( $plain, 'seawall-purge' ) );

$no_store = array(
	'a constant says no'                   => array( '/?case=donotcachepage', array() ),
	'a constant says no at the end'        => array( '/?case=donotcachepage-late', array() ),
	'WordPress says no'                    => array( '/?case=nocache', array() ),
	'a filter says no'                     => array( '/?case=filter-zero', array() ),
	'a cart'                               => array( '/?case=cart', array() ),
	'a checkout'                           => array( '/?case=checkout', array() ),
	'an account'                           => array( '/?case=account', array() ),
	'a commenter'                          => array( $post, array( 'HTTP_COOKIE' => 'comment_author_x=Ann' ) ),
	'a reader with a password for posts'   => array( '/', array( 'HTTP_COOKIE' => 'wp-postpass_x=y' ) ),
	'a post with a password'               => array( '/2025/02/metering-snow/', array() ),
	'a shop session'                       => array( '/', array( 'HTTP_COOKIE' => 'wp_woocommerce_session_x=y' ) ),
	'something in the cart'                => array( '/', array( 'HTTP_COOKIE' => 'woocommerce_items_in_cart=1' ) ),
	'credentials'                          => array( '/wp-json/wp/v2/posts', array( 'HTTP_AUTHORIZATION' => 'Basic bm86bm8=' ) ),
	'a nonce of the REST API'              => array( '/wp-json/wp/v2/posts', array( 'HTTP_X_WP_NONCE' => '0123456789' ) ),
	'a link to a comment that waits'       => array( "$post?unapproved=1&moderation-hash=0", array() ),
	'an error of the REST API'             => array( '/wp-json/wp/v2/posts/999999', array() ),
	'an event stream'                      => array( '/?case=stream', array() ),
	'a download instead of the page'       => array( '/?case=download', array() ),
	'a page too large to hold back'        => array( '/?case=huge', array() ),
);
foreach ( $no_store as $name => list( $uri, $params ) ) {
	$answer = ask( $uri, $params );
	check( "not stored: $name", array( 'no-store', array() ), array( field( $answer, 'seawall-cache-control' ), tags( $answer ) ) );
}
$left = array(
	'a cookie is set'     => '/?case=cookie',
	'a session begins'    => '/?case=session',
	'a search'            => '/?s=bread',
	'an unknown address'  => '/no-such-page/',
	'a temporary redirect' => '/?case=redirect',
);
foreach ( $left as $name => $uri ) {
	check( "left to Seawall: $name", null, field( ask( $uri ), 'seawall-cache-control' ) );
}
$stored = array(
	'an empty cart'                 => array( '/', array( 'HTTP_COOKIE' => 'woocommerce_items_in_cart=0; wordpress_test_cookie=1' ), 'max-age=86400' ),
	'a constant says yes'           => array( '/?case=donotcachepage-false', array(), 'max-age=86400' ),
	'a filter says a minute'        => array( '/?case=filter', array(), 'max-age=60' ),
	'a theme that flushes its head' => array( '/?case=flush', array(), 'max-age=86400' ),
	'a feed'                        => array( '/feed/', array(), 'max-age=86400' ),
	'the REST API'                  => array( '/wp-json/wp/v2/posts', array(), 'max-age=86400' ),
	'a sitemap'                     => array( '/wp-sitemap-posts-post-1.xml', array(), 'max-age=86400' ),
	'robots.txt'                    => array( '/robots.txt', array(), 'max-age=86400' ),
	'a permanent redirect'          => array( '/?p=28', array(), 'max-age=86400' ),
);
foreach ( $stored as $name => list( $uri, $params, $expected ) ) {
	check( "stored: $name", $expected, field( ask( $uri, $params ), 'seawall-cache-control' ) );
}
$flushed = ask( '/?case=flush' );
check( 'a page that is flushed early is whole, with all its tags', array( true, true ), array( (bool) strpos( $flushed['body'], '</html>' ), in_array( 'post-28', tags( $flushed ), true ) ) );
check( 'an event stream is whole', "data: 1\n\ndata: 2\n\n", ask( '/?case=stream' )['body'] );
check( 'a huge page is whole', true, strlen( ask( '/?case=huge' )['body'] ) > 10485760 );
check( 'a download is whole', 100000, strlen( ask( '/?case=download' )['body'] ) );
check( 'another plugin adds a word', true, in_array( 'weather', tags( ask( '/?case=words' ) ), true ) );
check( 'views that a plugin counts purge nothing', null, field( ask( '/?case=views' ), 'seawall-purge' ) );
$head = ask( $post, array(), 'HEAD' );
check( 'a HEAD, which has no queries of the template, says neither what the page lists nor for how long', array( array(), null, 'wordpress/1.0.0' ), array( tags( $head ), field( $head, 'seawall-cache-control' ), field( $head, 'seawall-plugin' ) ) );
$login = ask( '/wp-login.php', array( 'SCRIPT_FILENAME' => "$htdocs/wp-login.php", 'SCRIPT_NAME' => '/wp-login.php' ) );
check( 'the login page has the plugin\'s name and no tags', array( 'wordpress/1.0.0', array() ), array( field( $login, 'seawall-plugin' ), tags( $login ) ) );
$early = ask( '/?case=early' );
check( 'what a plugin answers before all queries is not stored: nothing tells when it changes', array( 'wordpress/1.0.0', 'no-store' ), array( field( $early, 'seawall-plugin' ), field( $early, 'seawall-cache-control' ) ) );
check( '... unless it says for how long it may be', null, field( ask( '/?case=early-own' ), 'seawall-cache-control' ) );

// A bounded field. Any 300 posts become one word; the page's own object keeps its word.
$value = json_decode( inside( '$t = new Seawall_Tags(); for ( $i = 1; $i <= 300; $i++ ) { $t->add( "post-" . $i ); } for ( $i = 1; $i <= 20; $i++ ) { $t->add( "term-" . $i ); } echo json_encode( array( $t->value( 8192 ), $t->value( 60 ) ) );' ), true );
check( 'more than 256 words: the kind with the most of them becomes one', true, 0 === strpos( $value[0], 'many-post,term-1,' ) );
check( 'too many bytes: the kinds become one word each', 'many-post,many-term', $value[1] );
check( 'behind another server, the tags are short', true, strlen( field( ask( '/wp-sitemap-posts-post-1.xml' ), 'cache-tag' ) ) <= 2048 );

// ------------------------------------------------------------ where Seawall is

$through = array( 'SEAWALL' => '0.9.0', 'SEAWALL_PURGE_URL' => 'http://127.0.0.1:1/.seawall/wordpress', 'SEAWALL_SECRET' => 'from-seawall' );
check( 'nothing is known', array( '', '', '' ), json_decode( ask( '/?case=settings' )['body'], true ) );
check( 'a reader cannot say where Seawall is', array( '', '', '' ), json_decode( ask( '/?case=settings', array( 'HTTP_SEAWALL_PURGE_URL' => 'http://evil.example/', 'HTTP_SEAWALL' => '1', 'HTTP_SEAWALL_SECRET' => 'x' ) )['body'], true ) );
check( 'Seawall says where it is', array( $through['SEAWALL_PURGE_URL'], 'from-seawall', 'parameter' ), json_decode( ask( '/?case=settings', $through )['body'], true ) );
ask( '/', $through );
check( 'what Seawall said is remembered', array( $through['SEAWALL_PURGE_URL'], 'from-seawall', 'remembered' ), json_decode( ask( '/?case=settings' )['body'], true ) );
check( 'the settings page goes before what was remembered', '["http:\/\/b.example\/","s","page"]', inside( 'update_option( "seawall_settings", array( "url" => "http://b.example/", "secret" => "s" ) ); echo json_encode( array( Seawall_Settings::url(), Seawall_Settings::secret(), Seawall_Settings::source() ) ); delete_option( "seawall_settings" );' ) );
check( 'constants go before all', '["http:\/\/c.example\/","","constant"]', inside( 'echo json_encode( array( Seawall_Settings::url(), Seawall_Settings::secret(), Seawall_Settings::source() ) );', 'define( "SEAWALL_PURGE_URL", "http://c.example/" );' ) );
$without = preg_replace( '/.*DISABLE_WP_CRON.*/', '', file_get_contents( "$htdocs/wp-config.php" ) );
$config  = file_get_contents( "$htdocs/wp-config.php" );
file_put_contents( "$htdocs/wp-config.php", $without );
sleep( 3 );
check( 'page views start cron jobs', 'on', ask( '/?case=cron', $through )['body'] );
check( 'page views do not start cron jobs where Seawall does', 'off', ask( '/?case=cron', $through + array( 'SEAWALL_CRON' => '1' ) )['body'] );
file_put_contents( "$htdocs/wp-config.php", $config );
sleep( 3 );

// ------------------------------------------------------------------- purges

inside( 'delete_option( "seawall_found" );' );
list( $answer, $sent ) = as_seawall( function ( $port ) use ( $through ) {
	return ask( '/?case=change', array( 'SEAWALL_PURGE_URL' => "http://127.0.0.1:$port/.seawall/wordpress" ) + $through );
} );
check( 'through Seawall, a change is in the response', 'post-7, many-post', field( $answer, 'seawall-purge' ) );
check( '... and is not sent a second time', array(), $sent );

list( $answer, $sent ) = as_seawall( function ( $port ) use ( $through ) {
	return ask( '/?case=change-after', array( 'SEAWALL_PURGE_URL' => "http://127.0.0.1:$port/.seawall/wordpress" ) + $through );
} );
check( 'what changes after the response is sent beside it', array( 'post-7, many-post', array( 'post-8' ) ), array( field( $answer, 'seawall-purge' ), $sent ? purge_of( $sent[0] ) : null ) );

list( $answer, $sent ) = as_seawall( function ( $port ) use ( $through ) {
	return ask( '/?case=change-much', array( 'SEAWALL_PURGE_URL' => "http://127.0.0.1:$port/.seawall/wordpress" ) + $through );
} );
check( 'many changes are one: everything', array( '*', array() ), array( field( $answer, 'seawall-purge' ), $sent ) );
inside( 'delete_option( "seawall_found" );' );

function wp_cli( $code ) {
	return function ( $port ) use ( $code ) {
		return inside( $code, 'define( "SEAWALL_PURGE_URL", "http://127.0.0.1:' . $port . '/.seawall/wordpress" ); define( "SEAWALL_SECRET", "s3cret" );' );
	};
}
$edit = 'wp_update_post( array( "ID" => 60, "post_content" => "Words " . mt_rand() ) );';
list( $out, $sent ) = as_seawall( wp_cli( $edit . str_replace( '60', '61', $edit ) . 'echo PHP_EOL;' ) );
check( 'two edits in one request are one purge', 1, count( $sent ) );
check( '... of both posts', true, ! array_diff( array( 'post-60', 'post-61' ), purge_of( $sent[0] ) ) );
check( '... at the address that was set, under the name of the site', array( true, true ), array( 0 === strpos( $sent[0]['head'], 'POST /.seawall/wordpress HTTP/1.1' ), (bool) preg_match( '/^Host: ' . preg_quote( $host, '/' ) . '\r?$/mi', $sent[0]['head'] ) ) );
preg_match( '/^Seawall-Signature: t=(\d+), sha256=([0-9a-f]{64})\r?$/mi', $sent[0]['head'], $signature );
check( '... signed over time and body', hash_hmac( 'sha256', $signature[1] . '.' . $sent[0]['body'], 's3cret' ), $signature[2] );
check( '... now', true, abs( time() - $signature[1] ) < 30 );
list( $out, $again ) = as_seawall( wp_cli( $edit . str_replace( '60', '61', $edit ) . 'echo PHP_EOL;' ) );
check( '... and never with the same id twice', 2, count( array_unique( array( json_decode( $sent[0]['body'], true )['id'], json_decode( $again[0]['body'], true )['id'] ) ) ) );
check( '... hard, with a reason', array( false, 'pre_post_update' ), array( json_decode( $sent[0]['body'], true )['soft'], json_decode( $sent[0]['body'], true )['reason'] ) );
check( 'the result is kept', 'Seawall has taken the order', inside( 'echo Seawall_Purger::last()[0]["text"];' ) );

list( $out, $sent ) = as_seawall( wp_cli( 'for ( $i = 0; $i < 120; $i++ ) { wp_insert_post( array( "post_title" => "Import $i", "post_status" => "publish", "post_content" => "x" ) ); }' ) );
check( 'an import is one purge of everything', array( 1, array( '*' ) ), array( count( $sent ), $sent ? purge_of( $sent[0] ) : null ) );
list( $out, $sent ) = as_seawall( wp_cli( 'do_action( "import_start" ); wp_insert_post( array( "post_title" => "One", "post_status" => "publish", "post_content" => "x" ) ); do_action( "import_end" );' ) );
check( 'so is a small one by the importer', array( array( '*' ) ), array_map( 'purge_of', $sent ) );
inside( 'foreach ( get_posts( array( "numberposts" => -1, "s" => "Import", "fields" => "ids" ) ) as $id ) { wp_delete_post( $id, true ); }' );

$silent = array(
	'a draft'               => 'wp_insert_post( array( "post_title" => "D", "post_status" => "draft", "post_content" => "x" ) );',
	'an autosave'           => '$d = wp_insert_post( array( "post_title" => "D", "post_status" => "draft", "post_content" => "x" ) ); wp_update_post( array( "ID" => $d, "post_content" => "y" ) ); wp_save_post_revision( $d );',
	'a draft thrown away'   => '$d = wp_insert_post( array( "post_title" => "D", "post_status" => "draft", "post_content" => "x" ) ); wp_trash_post( $d ); wp_delete_post( $d, true );',
	'a revision'            => 'wp_save_post_revision( 60 );',
	'an order'              => 'register_post_type( "shop_order", array( "public" => false ) ); register_post_status( "wc-processing", array( "public" => false ) ); wp_insert_post( array( "post_type" => "shop_order", "post_title" => "O", "post_status" => "wc-processing" ) );',
	'a transient'           => 'set_transient( "x", mt_rand(), 60 ); update_option( "my_counter", mt_rand() );',
	'who edits a post'      => 'update_post_meta( 60, "_edit_lock", time() . ":1" );',
	'a comment that waits'  => 'wp_insert_comment( array( "comment_post_ID" => 60, "comment_content" => "x", "comment_approved" => 0 ) );',
	'a session of a user'   => 'WP_Session_Tokens::get_instance( 1 )->create( time() + 60 );',
	'a password of a user'  => 'wp_set_password( "read-only-battery-9", 2 );',
);
foreach ( $silent as $name => $code ) {
	list( $out, $sent ) = as_seawall( wp_cli( $code ) );
	check( "purges nothing: $name", array(), array_map( 'purge_of', $sent ) );
}

// WooCommerce writes stock past the posts; its hooks are all that this test has of it.
$shop = array(
	'woocommerce_product_set_stock'        => 'do_action( "woocommerce_product_set_stock", new class { function get_id() { return 60; } } );',
	'woocommerce_variation_set_stock_status' => 'do_action( "woocommerce_variation_set_stock_status", 60, "outofstock", null );',
	'wc_after_products_ending_sales'       => 'do_action( "wc_after_products_ending_sales", array( 60 ) );',
	'woocommerce_reduce_order_stock'       => 'do_action( "woocommerce_reduce_order_stock", new class { function get_items() { return array( new class { function get_product_id() { return 60; } } ); } } );',
);
foreach ( $shop as $name => $code ) {
	list( $out, $sent ) = as_seawall( wp_cli( $code ) );
	check( "purges the product: $name", true, $sent && in_array( 'post-60', purge_of( $sent[0] ), true ) );
}
$all = array( 'upgrader_process_complete' => 'do_action( "upgrader_process_complete", null, array() );', 'autoptimize' => 'do_action( "autoptimize_action_cachepurged" );', 'permalinks' => 'update_option( "permalink_structure", "/%postname%/" );', 'permalinks back' => 'update_option( "permalink_structure", "/%year%/%monthnum%/%postname%/" );', 'plugins' => 'do_action( "activated_plugin", "x/x.php", false );' );
foreach ( $all as $name => $code ) {
	list( $out, $sent ) = as_seawall( wp_cli( $code ) );
	check( "purges everything: $name", array( array( '*' ) ), array_map( 'purge_of', $sent ) );
}

// ----------------------------------------------------------------- failures

$refusals = array(
	array( 401, '{"error":"this signature is another one"}', 'Seawall refuses the purge (401): this signature is another one' ),
	array( 403, '{"error":"purging is not allowed"}', 'Seawall refuses the purge (403): purging is not allowed' ),
	array( 403, '<html><title>403 Forbidden</title>', 'What answered (403) is not Seawall' ),
	array( 404, '<html>', 'What answered (404) is not Seawall' ),
	array( 500, '{"code":"internal_server_error"}', 'What answered (500) is not Seawall' ),
);
foreach ( $refusals as list( $status, $body, $text ) ) {
	list( $out, $sent ) = as_seawall( wp_cli( $edit ), $status, $body );
	check( "refused with $status: says why", true, 0 === strpos( inside( 'echo Seawall_Purger::last()[0]["text"];' ), $text ) );
	inside( 'delete_option( "seawall_pending" ); wp_clear_scheduled_hook( "seawall_retry" );' );
}
list( $out, $sent ) = as_seawall( wp_cli( $edit ), 200, '<html>' );
check( 'something else answers: says so', true, 0 === strpos( inside( 'echo Seawall_Purger::last()[0]["text"];' ), 'What answered is not Seawall' ) );
$began = microtime( true );
list( $out, $sent ) = as_seawall( wp_cli( $edit ), 200, '{"purged":1}', 30 );
check( 'Seawall hangs: the request ends all the same', true, microtime( true ) - $began < 15 );
check( '... and says so', true, (bool) strpos( inside( 'echo Seawall_Purger::last()[0]["text"];' ), 'did not answer in time' ) );
inside( $edit, 'define( "SEAWALL_PURGE_URL", "http://127.0.0.1:1/.seawall/wordpress" );' );
check( 'Seawall is away: says so', true, 0 === strpos( inside( 'echo Seawall_Purger::last()[0]["text"];' ), 'No connection to Seawall at 127.0.0.1:1' ) );
check( '... and tries again in a minute', true, (int) inside( 'echo wp_next_scheduled( "seawall_retry" );' ) > time() );
list( $out, $sent ) = as_seawall( wp_cli( 'do_action( "seawall_retry" );' ) );
check( '... with what was left', true, $sent && in_array( 'post-60', purge_of( $sent[0] ), true ) );
check( '... and then has nothing left', '[]', inside( 'echo json_encode( array_values( array_filter( array( get_option( "seawall_pending" ), wp_next_scheduled( "seawall_retry" ) ) ) ) );' ) );

// ------------------------------------------------- admin, health, WP-CLI, end

$stub = 'class WP_CLI { static function line( $t ) { echo "$t\n"; } static function success( $t ) { echo "Success: $t\n"; } static function error( $t ) { echo "Error: $t\n"; exit( 1 ); } static function add_command( $n, $c ) { $GLOBALS["command"] = array( $n, $c ); } } define( "WP_CLI", true );';
$cli  = function ( $code ) use ( $stub ) {
	return function ( $port ) use ( $code, $stub ) {
		return inside( $code, $stub . 'define( "SEAWALL_PURGE_URL", "http://127.0.0.1:' . $port . '/.seawall/wordpress" ); define( "SEAWALL_SECRET", "s3cret" );' );
	};
};
if ( ! getenv( 'WP_CLI_REAL' ) ) {
	list( $out, $sent ) = as_seawall( $cli( '$command[1]->purge( array( "/about/" ), array( "post" => "12" ) );' ) );
	check( 'wp seawall purge /about/ --post=12', array( 'Success: Seawall has taken the order', array( array( 'post-12', 'many-post', 'url=/about/' ) ) ), array( $out, array_map( 'purge_of', $sent ) ) );
	list( $out, $sent ) = as_seawall( $cli( '$command[1]->purge( array(), array( "all" => true ) );' ) );
	check( 'wp seawall purge --all', array( array( '*' ) ), array_map( 'purge_of', $sent ) );
	list( $out, $sent ) = as_seawall( $cli( '$command[1]->status( array(), array() );' ) );
	check( 'wp seawall status', true, (bool) strpos( $out, 'Success: Purges reach Seawall.' ) );
	list( $out, $sent ) = as_seawall( $cli( '$command[1]->status( array(), array() );' ), 403, '{"error":"purging is not allowed"}' );
	check( 'wp seawall status, refused', true, (bool) strpos( $out, 'Error: Seawall refuses the purge (403)' ) );
}
list( $out, $sent ) = as_seawall( wp_cli( 'Seawall_Plugin::purger()->send( array( "*" ), "admin bar" ); $l = Seawall_Purger::last()[0]; echo $l["text"], "; ", Seawall_Purger::reason_in_words( $l["reason"] );' ) );
check( 'a purge by hand is in the list with its reason', 'Everything will be made anew; purged by hand, in the admin bar', $out );
list( $out, $sent ) = as_seawall( wp_cli( 'Seawall_Plugin::purger()->test( "test" ); $l = Seawall_Purger::last()[0]; echo $l["text"], "; ", Seawall_Purger::reason_in_words( $l["reason"] );' ) );
check( 'so is a test', 'Seawall has taken the order; a test', $out );
check( 'the name of a hook is said in words', 'a post has changed', inside( 'echo Seawall_Purger::reason_in_words( "pre_post_update" );' ) );
$form = 'require_once ABSPATH . "wp-admin/includes/template.php"; require_once WP_PLUGIN_DIR . "/seawall/includes/class-seawall-admin.php"; $a = new Seawall_Admin( Seawall_Plugin::purger() ); echo json_encode( array( $a->clean( array( "url" => "%s" ) ), count( get_settings_errors( "seawall_settings" ) ) ), JSON_UNESCAPED_SLASHES );';
check( 'an address without http:// is kept in the form, not used, and said', '[{"url":"","typed":"127.0.0.1:8080/.seawall/wordpress","secret":""},1]', inside( sprintf( $form, '127.0.0.1:8080/.seawall/wordpress' ) ) );
check( 'an address with http:// is used', '[{"url":"http://127.0.0.1:8080/.seawall/wordpress","secret":""},0]', inside( sprintf( $form, 'http://127.0.0.1:8080/.seawall/wordpress' ) ) );
$health = 'require_once WP_PLUGIN_DIR . "/seawall/includes/class-seawall-health.php"; $h = new Seawall_Health( Seawall_Plugin::purger() ); echo $h->test()["status"], " ", $h->test()["label"];';
check( 'Site Health without Seawall', 'recommended Seawall is not in front of this site', inside( 'add_filter( "pre_http_request", function () { return array( "headers" => array( "content-type" => "text/html" ), "body" => "", "response" => array( "code" => 200 ), "cookies" => array() ); } );' . $health ) );
$front = 'add_filter( "pre_http_request", function () { return array( "headers" => array( "cache-status" => "seawall; hit" ), "body" => "", "response" => array( "code" => 200 ), "cookies" => array() ); } );';
check( 'Site Health with Seawall, and no address for purges', 'recommended Seawall does not learn of scheduled posts at once', inside( $front . $health ) );
list( $out, $sent ) = as_seawall( wp_cli( $front . $health ) );
check( 'Site Health with all', 'good Seawall is in front of this site, and purges reach it', $out );
list( $out, $sent ) = as_seawall( wp_cli( $front . $health ), 403 );
check( 'Site Health with a wrong secret', 'critical Purges do not reach Seawall', $out );

list( $out, $sent ) = as_seawall( wp_cli( 'require_once ABSPATH . "wp-admin/includes/plugin.php"; deactivate_plugins( "seawall/seawall.php" );' ) );
check( 'the end of the plugin purges everything', array( array( '*' ) ), array_map( 'purge_of', $sent ) );
$answer = ask( '/' );
check( 'a plugin that is not active leaves no trace in responses', array( null, null, null ), array( field( $answer, 'seawall-plugin' ), field( $answer, 'cache-tag' ), field( $answer, 'seawall-cache-control' ) ) );
inside( 'define( "WP_UNINSTALL_PLUGIN", "seawall/seawall.php" ); update_option( "seawall_settings", array( "url" => "x" ) ); set_transient( "seawall_notice_1", 1 ); require WP_PLUGIN_DIR . "/seawall/uninstall.php";' );
check( 'nor in the database, once it is deleted', '0', inside( 'global $wpdb; echo $wpdb->get_var( "SELECT COUNT(*) FROM $wpdb->options WHERE option_name LIKE \'%seawall%\'" );' ) );
inside( 'require_once ABSPATH . "wp-admin/includes/plugin.php"; activate_plugin( "seawall/seawall.php" );' );
unlink( "$htdocs/wp-content/mu-plugins/seawall-cases.php" );

echo "$passed passed, $failed failed\n";
exit( $failed ? 1 : 0 );
