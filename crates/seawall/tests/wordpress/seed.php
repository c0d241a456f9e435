<?php
// seed.php SITE FACTS: fills a fresh WordPress through its own functions, and writes what the tests must know of it to FACTS.
//
// The blog is small and each thing in it is there for a test: posts with categories, tags, three authors, pictures and comments; posts with a
// password, for later, private, and not finished; an address in Japanese; pages, a menu, a widget.

[, $site, $facts] = $argv;
$_SERVER += array(
	'HTTP_HOST'       => 'blog.example',
	'REQUEST_URI'     => '/',
	'REQUEST_METHOD'  => 'GET',
	'SERVER_PROTOCOL' => 'HTTP/1.1',
);
define( 'WP_INSTALLING', true );
define( 'WP_CONTENT_URL', 'http://blog.example/wp-content' ); // Nothing in the database says it yet.
require "$site/wp-load.php";
require_once ABSPATH . 'wp-admin/includes/upgrade.php';
require_once ABSPATH . 'wp-admin/includes/media.php';
require_once ABSPATH . 'wp-admin/includes/file.php';
require_once ABSPATH . 'wp-admin/includes/image.php';
add_filter( 'pre_wp_mail', '__return_true' );

function must( $made ) {
	if ( is_wp_error( $made ) ) {
		throw new RuntimeException( $made->get_error_message() );
	}
	if ( ! $made ) {
		throw new RuntimeException( 'WordPress made nothing' );
	}
	return $made;
}

// ------------------------------------------------------------------------------------------------------------------------ the site

$people   = array(
	'owner'  => array( 'Olga Owner', 'administrator', 'tide-table-and-anchor-9271' ),
	'ada'    => array( 'Ada Author', 'author', 'ada-writes-about-tides-5512' ),
	'ben'    => array( 'Ben Author', 'editor', 'ben-writes-about-stones-5513' ),
	'reader' => array( 'Rita Reader', 'subscriber', 'rita-reads-everything-5514' ),
);
$owner    = must( wp_install( 'The Sea Wall', 'owner', 'owner@blog.example', true, '', $people['owner'][2] ) )['user_id'];
$accounts = array( 'owner' => $owner );
wp_set_current_user( $owner );
wp_update_user( array( 'ID' => $owner, 'display_name' => $people['owner'][0] ) );
foreach ( $people as $login => $person ) {
	$accounts[ $login ] ??= must(
		wp_insert_user(
			array(
				'user_login'   => $login,
				'user_email'   => "$login@blog.example",
				'user_pass'    => $person[2],
				'display_name' => $person[0],
				'role'         => $person[1],
			)
		)
	);
}
foreach ( array(
	'blogdescription'     => 'Notes from the coast',
	'permalink_structure' => '/%year%/%monthnum%/%postname%/',
	'timezone_string'     => 'UTC',
	'comments_notify'     => '0',
	'moderation_notify'   => '0',
	'show_avatars'        => '0', // They are on somebody else's server.
	'ping_sites'          => '',
	'default_ping_status' => 'closed',
) as $name => $value ) {
	update_option( $name, $value );
}
$wp_rewrite->init();
foreach ( get_posts( array( 'post_type' => array( 'post', 'page' ), 'post_status' => 'any', 'numberposts' => -1 ) ) as $one ) {
	wp_delete_post( $one->ID, true );
}

$categories = array();
foreach ( array( 'tides' => 'Tides', 'stones' => 'Stones', 'birds' => 'Birds', 'boats' => 'Boats' ) as $slug => $name ) {
	$categories[ $slug ] = must( wp_insert_term( $name, 'category', array( 'slug' => $slug ) ) )['term_id'];
}
$tags = array();
foreach ( array( 'how-to' => 'How to', 'diary' => 'Diary' ) as $slug => $name ) {
	$tags[ $slug ] = must( wp_insert_term( $name, 'post_tag', array( 'slug' => $slug ) ) )['term_id'];
}

// ------------------------------------------------------------------------------------------------------------------------ pictures

$pictures = array();
foreach ( array( 'wall', 'tower', 'gull', 'boat' ) as $number => $name ) {
	mt_srand( $number );
	$image = imagecreatetruecolor( 1600, 900 );
	imagefill( $image, 0, 0, imagecolorallocate( $image, 40 + 30 * $number, 110, 140 ) );
	for ( $i = 0; $i < 400; $i++ ) {
		$colour = imagecolorallocate( $image, mt_rand( 0, 255 ), mt_rand( 0, 255 ), mt_rand( 0, 255 ) );
		imagefilledellipse( $image, mt_rand( 0, 1600 ), mt_rand( 0, 900 ), mt_rand( 5, 120 ), mt_rand( 5, 120 ), $colour );
	}
	$file = tempnam( sys_get_temp_dir(), 'seed' );
	imagejpeg( $image, $file, 80 );
	$pictures[ $name ] = must( media_handle_sideload( array( 'name' => "$name.jpg", 'tmp_name' => $file ), 0, $name ) );
	update_post_meta( $pictures[ $name ], '_wp_attachment_image_alt', "A $name" );
}

function picture_block( int $id ): string {
	$address = wp_get_attachment_image_url( $id, 'large' );
	return "<!-- wp:image {\"id\":$id,\"sizeSlug\":\"large\"} -->\n<figure class=\"wp-block-image size-large\"><img src=\"$address\" alt=\"\" class=\"wp-image-$id\"/></figure>\n<!-- /wp:image -->";
}

// --------------------------------------------------------------------------------------------------------------------------- posts

function paragraphs( string ...$texts ): string {
	return implode( "\n\n", array_map( fn( $text ) => "<!-- wp:paragraph -->\n<p>$text</p>\n<!-- /wp:paragraph -->", $texts ) );
}

function write( array $post ): int {
	return must( wp_insert_post( wp_slash( $post + array( 'post_status' => 'publish', 'comment_status' => 'open' ) ), true ) );
}

// The newest first: post-01 is on the front page, post-60 the oldest. All are older than any clock that is right.
$posts = array();
for ( $n = 60; $n >= 1; $n-- ) {
	$slug          = sprintf( 'post-%02d', $n );
	$date          = gmdate( 'Y-m-d H:i:s', gmmktime( 12, 0, 0, 12, 28, 2024 ) - 86400 * 7 * ( $n - 1 ) );
	$words         = "Words of $slug: " . str_repeat( 'the tide comes in and the tide goes out. ', 30 );
	$content       = paragraphs( $words, 'And more.' ) . ( 0 === $n % 3 ? "\n\n" . picture_block( $pictures['tower'] ) : '' );
	$password      = array( 4 => 'opensesame', 44 => 'opensesame' )[ $n ] ?? '';
	$posts[ $slug ] = write(
		array(
			'post_title'    => "Title of $slug",
			'post_name'     => $slug,
			'post_content'  => $password ? paragraphs( "SECRET-BEHIND-A-PASSWORD in $slug" ) : $content,
			'post_excerpt'  => "Excerpt of $slug.",
			'post_date'     => $date,
			'post_date_gmt' => $date,
			'post_author'   => $accounts[ array( 'owner', 'ada', 'ben' )[ $n % 3 ] ],
			'post_password' => $password,
			'post_category' => array( array_values( $categories )[ $n % 3 ] ),
			'tags_input'    => 0 === $n % 5 ? array( 'how-to' ) : array(),
		)
	);
	if ( 0 === $n % 4 ) {
		set_post_thumbnail( $posts[ $slug ], $pictures['gull'] );
	}
}
$posts['lake']    = write(
	array(
		'post_title'    => '湖のほとりの古い駅',
		'post_content'  => paragraphs( 'Words of the station by the lake.' ),
		'post_date'     => '2023-10-05 12:00:00',
		'post_category' => array( $categories['boats'] ),
		'post_author'   => $owner,
	)
);
$posts['private'] = write( array( 'post_title' => 'For the family', 'post_name' => 'for-the-family', 'post_content' => paragraphs( 'SECRET-OF-THE-FAMILY' ), 'post_status' => 'private', 'post_date' => '2023-05-05 12:00:00', 'post_author' => $owner ) );
$posts['draft']   = write( array( 'post_title' => 'A draft', 'post_name' => 'a-draft', 'post_content' => paragraphs( 'SECRET-OF-THE-DRAFT' ), 'post_status' => 'draft', 'post_author' => $owner ) );
$posts['later']   = write( array( 'post_title' => 'Much later', 'post_name' => 'much-later', 'post_content' => paragraphs( 'SECRET-OF-LATER' ), 'post_status' => 'future', 'post_date' => '2098-01-01 12:00:00', 'post_date_gmt' => '2098-01-01 12:00:00', 'post_author' => $owner ) );

$pages = array();
foreach ( array( 'about' => 'About', 'contact' => 'Contact' ) as $slug => $title ) {
	$pages[ $slug ] = write( array( 'post_type' => 'page', 'post_title' => $title, 'post_name' => $slug, 'post_content' => paragraphs( "Words of the page $slug." ), 'comment_status' => 'closed', 'post_date' => '2023-01-01 12:00:00', 'post_author' => $owner ) );
}
$pages['crew'] = write( array( 'post_type' => 'page', 'post_title' => 'The crew', 'post_name' => 'crew', 'post_parent' => $pages['about'], 'post_content' => paragraphs( 'Words of the page crew.' ), 'comment_status' => 'closed', 'post_date' => '2023-01-01 12:00:00', 'post_author' => $owner ) );

foreach ( array( 1, 2, 3, 5, 6, 7 ) as $n ) {
	$slug = sprintf( 'post-%02d', $n );
	must( wp_insert_comment( array( 'comment_post_ID' => $posts[ $slug ], 'comment_author' => 'Carl Commenter', 'comment_author_email' => 'carl@reader.example', 'comment_content' => "First comment on $slug", 'comment_approved' => 1, 'comment_date' => '2024-12-30 12:00:00' ) ) );
}

// ------------------------------------------------------------------------------------------------------------------ menus, widgets

// The block theme shows the newest navigation.
$navigation = write( array( 'post_type' => 'wp_navigation', 'post_title' => 'Navigation', 'post_name' => 'navigation', 'comment_status' => 'closed', 'post_content' => '<!-- wp:page-list /-->', 'post_author' => $owner ) );
// For the classic theme of the tests: a menu and two widgets.
switch_theme( 'seaside' );
$menu = must( wp_create_nav_menu( 'The menu' ) );
$item = must( wp_update_nav_menu_item( $menu, 0, array( 'menu-item-title' => 'Item to About', 'menu-item-object' => 'page', 'menu-item-object-id' => $pages['about'], 'menu-item-type' => 'post_type', 'menu-item-status' => 'publish' ) ) );
set_theme_mod( 'nav_menu_locations', array( 'main' => $menu ) );
update_option( 'widget_text', array( 2 => array( 'title' => 'Beside', 'text' => 'Words of the widget.', 'filter' => false, 'visual' => false ), '_multiwidget' => 1 ) );
update_option( 'widget_recent-posts', array( 2 => array( 'title' => 'Newest', 'number' => 3 ), '_multiwidget' => 1 ) );
update_option( 'sidebars_widgets', array( 'wp_inactive_widgets' => array(), 'beside' => array( 'text-2', 'recent-posts-2' ), 'array_version' => 3 ) );
$sidebars = get_option( 'sidebars_widgets' );
$default  = array_values( array_diff( array_keys( wp_get_themes() ), array( 'seaside' ) ) )[0];
switch_theme( $default );
update_option( 'sidebars_widgets', $sidebars );

// The rules of this process lack those for categories and tags, as there were no pretty addresses when it began. Another makes them.
delete_option( 'rewrite_rules' );
[$password] = must( WP_Application_Passwords::create_new_application_password( $owner, array( 'name' => 'Tests' ) ) );

function path( string $address ): string {
	return (string) parse_url( $address, PHP_URL_PATH );
}

$addresses = array();
foreach ( $posts as $slug => $id ) {
	$addresses[ $slug ] = array( 'id' => $id, 'path' => in_array( $slug, array( 'draft', 'later' ), true ) ? null : path( get_permalink( $id ) ) );
}
$image = must( wp_get_attachment_image_src( $pictures['tower'], 'large' ) )[0];
file_put_contents(
	$facts,
	json_encode(
		array(
			'version'              => get_bloginfo( 'version' ),
			'php'                  => PHP_VERSION,
			'theme'                => $default,
			'people'               => array_map( fn( $person ) => array( 'name' => $person[0], 'password' => $person[2] ), $people ),
			'application_password' => $password,
			'posts'                => $addresses,
			'pages'                => array_map( fn( $id ) => array( 'id' => $id, 'path' => path( get_permalink( $id ) ) ), $pages ),
			'categories'           => $categories,
			'tags'                 => $tags,
			'navigation'           => $navigation,
			'menu'                 => array( 'id' => $menu, 'item' => $item ),
			'picture'              => array( 'id' => $pictures['tower'], 'path' => path( $image ) ),
		),
		JSON_PRETTY_PRINT | JSON_UNESCAPED_SLASHES
	)
);
