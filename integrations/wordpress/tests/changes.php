<?php
/**
 * For each change that an editor can make: which pages of a real WordPress really change, and which ones the plugin purges?
 *
 *     php changes.php BASE HTDOCS USER APPLICATION-PASSWORD [WORD | from:WORD]
 *
 * BASE is where WordPress answers without a cache before it, HTDOCS its folder, in which the plugin is active. With WORD, only the changes
 * whose names contain it are made; with `from:`, only the first of those and all that follow. The blog is changed: use a copy. With EVERY=3
 * in the environment, only every third address that links lead to is looked at; with VERBOSE=1, each needless purge is printed with its words.
 *
 * No page that changed may be missed. The needless purges are counted and printed. Ends with 1 if one was missed, or if a change that
 * should purge nothing did.
 *
 * @package Seawall
 */

if ( $argc < 5 ) {
	fwrite( STDERR, "usage: php changes.php BASE HTDOCS USER APPLICATION-PASSWORD [WORD]\n" );
	exit( 2 );
}
list( , $base, $htdocs, $user, $password ) = $argv;
$only = isset( $argv[5] ) ? $argv[5] : '';
$base = rtrim( $base, '/' );

// All comments of these tests come from one address, and one soon after the other.
$patience = "$htdocs/wp-content/mu-plugins/seawall-patience.php";
if ( ! is_dir( dirname( $patience ) ) ) {
	mkdir( dirname( $patience ) );
}
file_put_contents( $patience, "<?php\nadd_filter( 'comment_flood_filter', '__return_false', 99 );\nadd_filter( 'wp_is_comment_flood', '__return_false', 99 );\n" );
register_shutdown_function( 'unlink', $patience );

/** Fetches many addresses, some at a time: path => array( status, location, body, tags ). */
function fetch_all( array $paths ) {
	global $base;
	$answers = array();
	$queue   = array_values( $paths );
	$multi   = curl_multi_init();
	$running = array();
	$begin   = function () use ( &$queue, &$running, $multi, $base ) {
		$path = array_shift( $queue );
		$curl = curl_init( $base . $path );
		curl_setopt_array( $curl, array( CURLOPT_RETURNTRANSFER => true, CURLOPT_HEADER => true, CURLOPT_TIMEOUT => 60 ) );
		curl_multi_add_handle( $multi, $curl );
		$running[ (int) $curl ] = array( $curl, $path );
	};
	while ( $queue || $running ) {
		while ( $queue && count( $running ) < 4 ) {
			$begin();
		}
		curl_multi_exec( $multi, $active );
		curl_multi_select( $multi, 1 );
		while ( $done = curl_multi_info_read( $multi ) ) {
			$curl              = $done['handle'];
			list( , $path )    = $running[ (int) $curl ];
			$answers[ $path ]  = parse( curl_multi_getcontent( $curl ), curl_getinfo( $curl, CURLINFO_HEADER_SIZE ), curl_getinfo( $curl, CURLINFO_RESPONSE_CODE ) );
			unset( $running[ (int) $curl ] );
			curl_multi_remove_handle( $multi, $curl );
		}
	}
	return $answers;
}

/** What an answer says, without what differs from one to the next. */
function parse( $text, $head_bytes, $status ) {
	$head = substr( $text, 0, $head_bytes );
	$body = substr( $text, $head_bytes );
	// Nonces, and when a feed's channel or a page was made.
	$body = preg_replace( '/(nonce["\'\s:=\\\\]+(?:value=)?["\']?)[0-9a-f]{10}\b/i', '$1NONCE', $body );
	$body = preg_replace( '/((?:data-secret=\\\\?"|#\?secret=))[0-9A-Za-z]{10}/', '$1SECRET', $body );
	preg_match( '/^Location: *(.*?)\r?$/mi', $head, $location );
	preg_match( '/^Cache-Tag: *(.*?)\r?$/mi', $head, $tags );
	preg_match( '/^Seawall-Cache-Control: *(.*?)\r?$/mi', $head, $control );
	return array(
		'status'   => $status,
		'location' => isset( $location[1] ) ? $location[1] : '',
		'body'     => $body,
		'tags'     => isset( $tags[1] ) ? preg_split( '/[\s,]+/', $tags[1], -1, PREG_SPLIT_NO_EMPTY ) : array(),
		'control'  => isset( $control[1] ) ? $control[1] : '',
	);
}

/** The addresses on this site that an answer links, as paths. */
function links_of( $body ) {
	global $base;
	preg_match_all( '~(?:href=["\']|<loc>|<link>)(' . preg_quote( $base, '~' ) . ')?(/[^"\'<#]*)~', $body, $found );
	$paths = array();
	foreach ( $found[2] as $path ) {
		$path = html_entity_decode( $path, ENT_QUOTES );
		if ( ! preg_match( '~^//|/wp-(content|includes|admin|login|cron|comments-post)|xmlrpc|replytocom|/feed/|/embed/|oembed|\.(css|js|png|jpe?g|webp|xsl)|^/wp-json/wp/v2/[a-z]+/\d~', $path ) ) {
			$paths[] = $path;
		}
	}
	return $paths;
}

/** Asks as the editor, and returns the words of `Seawall-Purge` and the answer. */
function rest( $method, $path, array $data = array() ) {
	global $base, $user, $password;
	$curl = curl_init( $base . '/wp-json' . $path );
	curl_setopt_array(
		$curl,
		array(
			CURLOPT_RETURNTRANSFER => true,
			CURLOPT_HEADER         => true,
			CURLOPT_CUSTOMREQUEST  => $method,
			CURLOPT_USERPWD        => "$user:$password",
			CURLOPT_HTTPHEADER     => array( 'Content-Type: application/json' ),
			CURLOPT_POSTFIELDS     => json_encode( $data ),
		)
	);
	$text   = curl_exec( $curl );
	$status = curl_getinfo( $curl, CURLINFO_RESPONSE_CODE );
	$head   = substr( $text, 0, curl_getinfo( $curl, CURLINFO_HEADER_SIZE ) );
	if ( $status >= 300 ) {
		throw new RuntimeException( "$method $path: $status " . substr( $text, strlen( $head ), 300 ) );
	}
	preg_match( '/^Seawall-Purge: *(.*?)\r?$/mi', $head, $purge );
	return array(
		'words'  => isset( $purge[1] ) ? preg_split( '/\s*,\s*/', $purge[1], -1, PREG_SPLIT_NO_EMPTY ) : array(),
		'answer' => json_decode( substr( $text, strlen( $head ) ), true ),
	);
}

/** Posts a form as a reader does, and returns the words of `Seawall-Purge`. */
function form( $path, array $fields ) {
	global $base;
	$curl = curl_init( $base . $path );
	curl_setopt_array( $curl, array( CURLOPT_RETURNTRANSFER => true, CURLOPT_HEADER => true, CURLOPT_POSTFIELDS => http_build_query( $fields ) ) );
	$text = curl_exec( $curl );
	if ( curl_getinfo( $curl, CURLINFO_RESPONSE_CODE ) >= 400 ) {
		throw new RuntimeException( "$path: " . substr( strip_tags( $text ), 0, 800 ) );
	}
	preg_match( '/^Seawall-Purge: *(.*?)\r?$/mi', $text, $purge );
	return isset( $purge[1] ) ? preg_split( '/\s*,\s*/', $purge[1], -1, PREG_SPLIT_NO_EMPTY ) : array();
}

/** Runs PHP inside WordPress, from the command line, and returns the words that the request purges. */
function inside( $code ) {
	global $htdocs, $base;
	$script = tempnam( sys_get_temp_dir(), 'seawall' );
	file_put_contents(
		$script,
		'<?php $_SERVER["HTTP_HOST"] = ' . var_export( preg_replace( '~^https?://~', '', $base ), true ) . ';'
		. ' require ' . var_export( "$htdocs/wp-load.php", true ) . ';'
		. ' foreach ( array( "nav-menu", "theme", "widgets", "post", "taxonomy", "user" ) as $file ) { require_once ABSPATH . "wp-admin/includes/$file.php"; }'
		. ' wp_set_current_user( 1 );'
		. ' add_action( "seawall_purge", function ( $words ) { echo "\nWORDS ", json_encode( $words ), "\n"; } );'
		. $code
	);
	$out = (string) shell_exec( escapeshellarg( PHP_BINARY ) . ' ' . escapeshellarg( $script ) . ' 2>&1' );
	unlink( $script );
	if ( ! preg_match( '/^WORDS (.*)$/m', $out, $found ) ) {
		throw new RuntimeException( "no words: $out" );
	}
	if ( trim( preg_replace( '/^WORDS .*$/m', '', $out ) ) !== '' ) {
		fwrite( STDERR, "    $out\n" );
	}
	return json_decode( $found[1], true );
}

/** Whether a purge of words hits a page with these tags. */
function is_hit( $path, array $tags, array $words ) {
	return in_array( '*', $words, true ) || array_intersect( $tags, $words ) || in_array( 'url=' . $path, $words, true );
}

// --------------------------------------------------------------- the changes

$month = gmdate( '/Y/m/' );
$made  = array();
$state = (object) array( 'post' => 0, 'page' => 0, 'comment' => 0, 'term' => 0, 'menu' => 0, 'scheduled' => 0 );

/** Each: name => array( what is done, whether nothing may be purged ). */
$changes = array(
	'nothing' => function () {
		return inside( '' );
	},
	'draft saved' => function () {
		return rest( 'POST', '/wp/v2/posts', array( 'title' => 'A draft', 'status' => 'draft' ) )['words'];
	},
	'post published' => function () use ( $state ) {
		$made        = rest( 'POST', '/wp/v2/posts', array( 'title' => 'Fresh post', 'content' => 'New.', 'status' => 'publish', 'categories' => array( 2 ), 'tags' => array( 5 ) ) );
		$state->post = $made['answer']['id'];
		return $made['words'];
	},
	'old post edited: text' => function () {
		return rest( 'POST', '/wp/v2/posts/60', array( 'content' => '<p>Other words in an old post.</p>', 'excerpt' => 'A summary.' ) )['words'];
	},
	'old post edited: title' => function () {
		return rest( 'POST', '/wp/v2/posts/70', array( 'title' => 'Another title' ) )['words'];
	},
	'old post edited: slug' => function () {
		return rest( 'POST', '/wp/v2/posts/71', array( 'slug' => 'a-new-slug' ) )['words'];
	},
	'old post edited: categories' => function () {
		return rest( 'POST', '/wp/v2/posts/72', array( 'categories' => array( 3 ) ) )['words'];
	},
	'old post edited: author' => function () {
		return rest( 'POST', '/wp/v2/posts/73', array( 'author' => 2 ) )['words'];
	},
	'old post edited: date' => function () {
		return rest( 'POST', '/wp/v2/posts/75', array( 'date' => '2024-03-15T10:00:00' ) )['words'];
	},
	'old post: password set' => function () {
		return rest( 'POST', '/wp/v2/posts/76', array( 'password' => 'secret' ) )['words'];
	},
	'old post made private' => function () {
		return rest( 'POST', '/wp/v2/posts/78', array( 'status' => 'private' ) )['words'];
	},
	'post made sticky' => function () {
		return rest( 'POST', '/wp/v2/posts/79', array( 'sticky' => true ) )['words'];
	},
	'featured image set' => function () {
		return rest( 'POST', '/wp/v2/posts/80', array( 'featured_media' => 4 ) )['words'];
	},
	'old post trashed' => function () {
		return rest( 'DELETE', '/wp/v2/posts/82' )['words'];
	},
	'old post untrashed' => function () {
		return inside( 'wp_untrash_post( 82 ); wp_publish_post( 82 );' );
	},
	'post deleted for good' => function () use ( $state ) {
		return rest( 'DELETE', '/wp/v2/posts/' . $state->post . '?force=true' )['words'];
	},
	'post scheduled' => function () use ( $state ) {
		$made             = rest( 'POST', '/wp/v2/posts', array( 'title' => 'Later post', 'content' => 'Later.', 'status' => 'future', 'date_gmt' => gmdate( 'Y-m-d\TH:i:s', time() + 3600 ) ) );
		$state->scheduled = $made['answer']['id'];
		return $made['words'];
	},
	'scheduled post goes live by cron' => function () use ( $state ) {
		return inside(
			'global $wpdb; $now = time() - 60;'
			. '$wpdb->update( $wpdb->posts, array( "post_date" => get_date_from_gmt( gmdate( "Y-m-d H:i:s", $now ) ), "post_date_gmt" => gmdate( "Y-m-d H:i:s", $now ) ), array( "ID" => ' . (int) $state->scheduled . ' ) );'
			. 'wp_cache_flush(); check_and_publish_future_post( ' . (int) $state->scheduled . ' );'
		);
	},
	'page published' => function () use ( $state ) {
		$made        = rest( 'POST', '/wp/v2/pages', array( 'title' => 'Fresh page', 'content' => 'A page.', 'status' => 'publish' ) );
		$state->page = $made['answer']['id'];
		return $made['words'];
	},
	'page edited: text' => function () use ( $state ) {
		return rest( 'POST', '/wp/v2/pages/' . $state->page, array( 'content' => 'Another text.' ) )['words'];
	},
	'page renamed' => function () use ( $state ) {
		return rest( 'POST', '/wp/v2/pages/' . $state->page, array( 'title' => 'Other page', 'slug' => 'other-page' ) )['words'];
	},
	'page trashed' => function () use ( $state ) {
		return rest( 'DELETE', '/wp/v2/pages/' . $state->page )['words'];
	},
	'comment shown at once' => function () {
		return form( '/wp-comments-post.php', array( 'comment_post_ID' => 28, 'author' => 'Old Reader', 'email' => 'old@reader.example', 'url' => '', 'comment' => 'A comment ' . uniqid() ) );
	},
	'comment held for moderation' => function () use ( $state ) {
		inside( 'update_option( "comment_moderation", "1" );' );
		$words = form( '/wp-comments-post.php', array( 'comment_post_ID' => 29, 'author' => 'New Reader', 'email' => 'new@reader.example', 'url' => '', 'comment' => 'A first comment ' . uniqid() ) );
		$held  = rest( 'GET', '/wp/v2/comments?status=hold&per_page=1&orderby=id&order=desc&post=29' );
		$state->comment = $held['answer'][0]['id'];
		return $words;
	},
	'comment approved' => function () use ( $state ) {
		return rest( 'POST', '/wp/v2/comments/' . $state->comment, array( 'status' => 'approved' ) )['words'];
	},
	'comment edited' => function () use ( $state ) {
		return rest( 'POST', '/wp/v2/comments/' . $state->comment, array( 'content' => 'Other words.' ) )['words'];
	},
	'comment marked as spam' => function () use ( $state ) {
		return rest( 'POST', '/wp/v2/comments/' . $state->comment, array( 'status' => 'spam' ) )['words'];
	},
	'term created' => function () use ( $state ) {
		$made        = rest( 'POST', '/wp/v2/categories', array( 'name' => 'Fresh term' ) );
		$state->term = $made['answer']['id'];
		return $made['words'];
	},
	'term renamed' => function () {
		return rest( 'POST', '/wp/v2/categories/3', array( 'name' => 'Renamed' ) )['words'];
	},
	'term: other slug' => function () {
		$tag = rest( 'GET', '/wp/v2/tags?slug=how-to' )['answer'][0]['id'];
		return rest( 'POST', '/wp/v2/tags/' . $tag, array( 'slug' => 'other-slug' ) )['words'];
	},
	'term deleted' => function () {
		return rest( 'DELETE', '/wp/v2/categories/4?force=true' )['words'];
	},
	'author renamed' => function () {
		return rest( 'POST', '/wp/v2/users/3', array( 'name' => 'Other Name' ) )['words'];
	},
	'author: description' => function () {
		return rest( 'POST', '/wp/v2/users/3', array( 'description' => 'Writes about other things.' ) )['words'];
	},
	'reader logs in' => function () {
		return form( '/wp-login.php', array( 'log' => 'reader', 'pwd' => 'read-only-battery-9', 'wp-submit' => 'Log In', 'testcookie' => '1' ) );
	},
	'option: tagline' => function () {
		return rest( 'POST', '/wp/v2/settings', array( 'description' => 'Another tagline' ) )['words'];
	},
	'option: title' => function () {
		return rest( 'POST', '/wp/v2/settings', array( 'title' => 'Another title' ) )['words'];
	},
	'option: posts per page' => function () {
		return rest( 'POST', '/wp/v2/settings', array( 'posts_per_page' => 9 ) )['words'];
	},
	'option: date format' => function () {
		return rest( 'POST', '/wp/v2/settings', array( 'date_format' => 'j. n. Y' ) )['words'];
	},
	'navigation menu edited' => function () {
		return inside(
			'$menus = get_posts( array( "post_type" => "wp_navigation", "post_status" => "publish" ) );'
			. 'if ( $menus ) { wp_update_post( array( "ID" => $menus[0]->ID, "post_content" => "<!-- wp:navigation-link {\"label\":\"Elsewhere\",\"url\":\"https://elsewhere.example/\",\"kind\":\"custom\"} /-->" ) ); }'
			. 'else { wp_insert_post( array( "post_type" => "wp_navigation", "post_status" => "publish", "post_title" => "Menu", "post_content" => "<!-- wp:navigation-link {\"label\":\"Elsewhere\",\"url\":\"https://elsewhere.example/\",\"kind\":\"custom\"} /-->" ) ); }'
		);
	},
	'template part edited' => function () {
		return rest( 'POST', '/wp/v2/template-parts/twentytwentyfive//footer', array( 'content' => '<!-- wp:paragraph --><p>Another footer</p><!-- /wp:paragraph -->' ) )['words'];
	},
	'template of single posts edited' => function () {
		return rest( 'POST', '/wp/v2/templates/twentytwentyfive//single', array( 'content' => '<!-- wp:post-title /--><!-- wp:post-content /-->' ) )['words'];
	},
	'template edited again' => function () {
		return rest( 'POST', '/wp/v2/templates/twentytwentyfive//single', array( 'content' => '<!-- wp:post-title /--><!-- wp:post-author-name /--><!-- wp:post-comments-count /--><!-- wp:post-content /-->' ) )['words'];
	},
	'global styles edited' => function () {
		return inside(
			'$id = WP_Theme_JSON_Resolver::get_user_global_styles_post_id();'
			. 'wp_update_post( array( "ID" => $id, "post_content" => wp_slash( json_encode( array( "version" => 3, "isGlobalStylesUserThemeJSON" => true, "styles" => array( "color" => array( "background" => "#fedcba" ) ) ) ) ) ) );'
		);
	},
	'image: other caption and description' => function () {
		return rest( 'POST', '/wp/v2/media/4', array( 'alt_text' => 'Another text', 'caption' => 'Another caption', 'title' => 'Another title' ) )['words'];
	},
	'classic theme' => function () {
		return inside( 'switch_theme( "seawall-test-classic" );' );
	},
	'classic menu edited' => function () {
		return inside(
			'$menu = wp_create_nav_menu( "Main" ); set_theme_mod( "nav_menu_locations", array( "main" => $menu ) );'
			. 'wp_update_nav_menu_item( $menu, 0, array( "menu-item-title" => "Front", "menu-item-url" => home_url( "/" ), "menu-item-status" => "publish" ) );'
			. 'wp_update_nav_menu_item( $menu, 0, array( "menu-item-object" => "post", "menu-item-object-id" => 61, "menu-item-type" => "post_type", "menu-item-status" => "publish" ) );'
		);
	},
	'item added to the classic menu' => function () {
		return inside( '$menu = wp_get_nav_menu_object( "Main" ); wp_update_nav_menu_item( $menu->term_id, 0, array( "menu-item-title" => "More", "menu-item-url" => home_url( "/more/" ), "menu-item-status" => "publish" ) );' );
	},
	'item of the classic menu deleted' => function () {
		return inside( '$items = wp_get_nav_menu_items( "Main" ); wp_delete_post( $items[0]->ID, true );' );
	},
	'post in the classic menu renamed' => function () {
		return rest( 'POST', '/wp/v2/posts/61', array( 'title' => 'Renamed in the menu' ) )['words'];
	},
	'widget added' => function () {
		return add_widget( 'recent-posts', array( 'title' => 'Latest', 'number' => 3 ) );
	},
	'widgets of comments and terms added' => function () {
		return array_merge(
			add_widget( 'recent-comments', array( 'title' => 'Comments', 'number' => 5 ) ),
			add_widget( 'categories', array( 'title' => 'Terms', 'count' => 1 ) ),
			add_widget( 'archives', array( 'title' => 'Months', 'count' => 1 ) )
		);
	},
	'widget edited' => function () {
		return rest( 'PUT', '/wp/v2/widgets/recent-comments-' . widget_number( 'recent-comments' ), array( 'instance' => array( 'raw' => array( 'title' => 'Other title', 'number' => 4 ) ) ) )['words'];
	},
	'post published, classic theme' => function () {
		return rest( 'POST', '/wp/v2/posts', array( 'title' => 'Fresh classic', 'content' => 'New.', 'status' => 'publish', 'categories' => array( 2 ) ) )['words'];
	},
	'old post edited: text, classic theme' => function () {
		return rest( 'POST', '/wp/v2/posts/62', array( 'content' => '<p>Other words again.</p>' ) )['words'];
	},
	'comment approved, classic theme' => function () use ( $state ) {
		return rest( 'POST', '/wp/v2/comments/' . $state->comment, array( 'status' => 'approved' ) )['words'];
	},
	'old post trashed, classic theme' => function () {
		return rest( 'DELETE', '/wp/v2/posts/63' )['words'];
	},
	'customizer: title of a setting' => function () {
		return inside( 'set_theme_mod( "motto", "A motto" );' );
	},
	'theme switched back' => function () {
		return inside( 'switch_theme( "twentytwentyfive" );' );
	},
);
/** What readers cannot see purges nothing. */
$silent = array( 'nothing', 'draft saved', 'post scheduled', 'comment held for moderation', 'reader logs in' );

/** Adds a widget to the footer as the editor of widgets does: it makes one, then says which ones the footer has. */
function add_widget( $base_name, array $instance ) {
	$made    = rest( 'POST', '/wp/v2/widgets', array( 'id_base' => $base_name, 'sidebar' => 'footer', 'instance' => array( 'raw' => $instance ) ) );
	$widgets = array_merge( array( $made['answer']['id'] ), rest( 'GET', '/wp/v2/sidebars/footer' )['answer']['widgets'] );
	return array_merge( $made['words'], rest( 'PUT', '/wp/v2/sidebars/footer', array( 'widgets' => array_values( array_unique( $widgets ) ) ) )['words'] );
}

/** The number of the widget of a kind. */
function widget_number( $base_name ) {
	foreach ( rest( 'GET', '/wp/v2/widgets' )['answer'] as $widget ) {
		if ( 'footer' === $widget['sidebar'] && 0 === strpos( $widget['id'], $base_name . '-' ) ) {
			return substr( $widget['id'], strlen( $base_name ) + 1 );
		}
	}
	throw new RuntimeException( "no widget $base_name" );
}

// ------------------------------------------------------------------ the pages

$theme = "$htdocs/wp-content/themes/seawall-test-classic";
if ( ! is_dir( $theme ) ) {
	mkdir( $theme );
}
foreach ( glob( __DIR__ . '/classic/*' ) as $file ) {
	copy( $file, $theme . '/' . basename( $file ) );
}

$paths = array( '/' );
$seen  = array();
$todo  = array( '/' );
for ( $depth = 0; $todo && $depth < 4; $depth++ ) {
	$next = array();
	foreach ( fetch_all( $todo ) as $path => $answer ) {
		$seen[ $path ] = true;
		$next          = array_merge( $next, links_of( $answer['body'] ) );
	}
	$todo = array_values( array_diff( array_unique( $next ), array_keys( $seen ) ) );
}
$html  = count( $seen );
$every = max( 1, (int) getenv( 'EVERY' ) );
$linked = array_keys( $seen );
sort( $linked );
$paths = array_merge(
	array_values(
		array_filter(
			$linked,
			function ( $number ) use ( $every ) {
				return 0 === $number % $every;
			},
			ARRAY_FILTER_USE_KEY
		)
	),
	array( '/' ),
	// What nothing links, and what does not exist yet.
	array( '/feed/', '/feed/atom/', '/comments/feed/', '/category/gardening/feed/', '/2025/06/what-the-frost-taught-me-about-beans/feed/', '/author/ngozi-bright/feed/', '/robots.txt', '/?s=bread', '/no-such-page/', '/?p=60', '/2024/', '/2024/07/', '/2025/06/' ),
	array( '/wp-sitemap.xml', '/wp-sitemap-posts-post-1.xml', '/wp-sitemap-posts-page-1.xml', '/wp-sitemap-taxonomies-category-1.xml', '/wp-sitemap-users-1.xml' ),
	array( '/wp-json/', '/wp-json/wp/v2/posts?per_page=5', '/wp-json/wp/v2/posts/60', '/wp-json/wp/v2/posts/60?_embed=1', '/wp-json/wp/v2/posts?categories=2', '/wp-json/wp/v2/posts?slug=fresh-post', '/wp-json/wp/v2/pages', '/wp-json/wp/v2/categories', '/wp-json/wp/v2/tags', '/wp-json/wp/v2/users', '/wp-json/wp/v2/users/3', '/wp-json/wp/v2/comments', '/wp-json/wp/v2/comments?post=29', '/wp-json/wp/v2/media/4', '/wp-json/wp/v2/search?search=bread', '/wp-json/wp/v2/posts?orderby=modified&per_page=3', '/wp-json/wp/v2/posts?orderby=title&order=asc&per_page=3', '/wp-json/oembed/1.0/embed?url=' . rawurlencode( "$base/2025/06/rye-bread-without-a-schedule/" ) ),
	array( $month . 'fresh-post/', $month . 'later-post/', $month . 'fresh-classic/', $month, gmdate( '/Y/' ), '/fresh-page/', '/other-page/', '/2024/03/a-new-slug/', '/category/fresh-term/', '/tag/other-slug/', '/2024/03/poems-for-a-waiting-room/' )
);
$paths = array_values( array_unique( $paths ) );
printf( "%d addresses, %d of them found by following links\n", count( $paths ), $html );

$before = fetch_all( $paths );
$again  = fetch_all( $paths );
foreach ( $paths as $path ) {
	foreach ( array( 'status', 'location', 'body', 'tags' ) as $part ) {
		if ( $before[ $path ][ $part ] !== $again[ $path ][ $part ] ) {
			printf( "not the same twice: %s (%s)\n", $path, $part );
			$a = explode( "\n", is_array( $before[ $path ][ $part ] ) ? implode( "\n", $before[ $path ][ $part ] ) : (string) $before[ $path ][ $part ] );
			$b = explode( "\n", is_array( $again[ $path ][ $part ] ) ? implode( "\n", $again[ $path ][ $part ] ) : (string) $again[ $path ][ $part ] );
			echo '   - ', substr( implode( ' | ', array_slice( array_diff( $a, $b ), 0, 3 ) ), 0, 300 ), "\n   + ", substr( implode( ' | ', array_slice( array_diff( $b, $a ), 0, 3 ) ), 0, 300 ), "\n";
		}
	}
	if ( ! $before[ $path ]['tags'] && 'no-store' !== $before[ $path ]['control'] && 200 === $before[ $path ]['status'] ) {
		printf( "no tags: %s\n", $path );
	}
}

// ---------------------------------------------------------------- the verdict

$failed = 0;
$passed = 0;
printf( "%-42s %8s %8s %8s %8s  %s\n", 'change', 'changed', 'purged', 'missed', 'needless', 'words' );
foreach ( $changes as $name => $make ) {
	if ( 0 === strpos( $only, 'from:' ) && false !== strpos( $name, substr( $only, 5 ) ) ) {
		$only = '';
	}
	if ( '' !== $only && false === strpos( $name, $only ) ) {
		continue;
	}
	try {
		$words = $make();
	} catch ( RuntimeException $e ) {
		printf( "%-42s failed: %s\n", $name, $e->getMessage() );
		++$failed;
		continue;
	}
	$after  = fetch_all( $paths );
	$counts = array( 'changed' => array(), 'purged' => array(), 'missed' => array(), 'needless' => array() );
	foreach ( $paths as $path ) {
		$was     = $before[ $path ];
		$is      = $after[ $path ];
		$changed = $was['status'] !== $is['status'] || $was['location'] !== $is['location'] || $was['body'] !== $is['body'];
		$stored  = 'no-store' !== $was['control'];
		$hit     = $stored && is_hit( $path, $was['tags'], $words );
		if ( $changed ) {
			$counts['changed'][] = $path;
		}
		if ( $hit ) {
			$counts['purged'][] = $path;
		}
		if ( $changed && $stored && ! $hit ) {
			$counts['missed'][] = $path;
		}
		if ( $hit && ! $changed ) {
			$counts['needless'][] = $path;
		}
	}
	$loud = in_array( $name, $silent, true ) && $words;
	printf(
		"%-42s %8d %8d %8d %8d  %s\n",
		$name,
		count( $counts['changed'] ),
		count( $counts['purged'] ),
		count( $counts['missed'] ),
		count( $counts['needless'] ),
		implode( ' ', array_slice( preg_grep( '/^many-/', $words, PREG_GREP_INVERT ), 0, getenv( 'VERBOSE' ) ? 99 : 5 ) )
	);
	foreach ( $counts['missed'] as $path ) {
		printf( "    MISSED %s\n", $path );
		$a = explode( "\n", $before[ $path ]['body'] );
		$b = explode( "\n", $after[ $path ]['body'] );
		echo '        - ', substr( trim( implode( ' | ', array_slice( array_diff( $a, $b ), 0, 3 ) ) ), 0, 400 ), "\n        + ", substr( trim( implode( ' | ', array_slice( array_diff( $b, $a ), 0, 3 ) ) ), 0, 400 ), "\n";
	}
	if ( getenv( 'VERBOSE' ) ) {
		foreach ( $counts['needless'] as $path ) {
			printf( "    needless %s: %s\n", $path, implode( ' ', array_intersect( $before[ $path ]['tags'], $words ) ) );
		}
	}
	if ( $loud ) {
		printf( "    NOTHING may be purged: %s\n", implode( ' ', $words ) );
	}
	if ( $counts['missed'] || $loud ) {
		++$failed;
	} else {
		++$passed;
	}
	$before = $after;
}
printf( "%d passed, %d failed\n", $passed, $failed );
exit( $failed ? 1 : 0 );
