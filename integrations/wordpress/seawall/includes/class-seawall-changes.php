<?php
/**
 * What this request has changed.
 *
 * @package Seawall
 */

defined( 'ABSPATH' ) || exit;

/**
 * Watches writes, and names the pages that they may have changed.
 *
 * Hooks only note what was touched, and how it was before. What that means is worked out once, when the names are asked for: terms and
 * fields of a post are often written after the hook that tells of the post.
 */
final class Seawall_Changes {

	/** Beyond that many words, a change purges everything: an import touches more pages than not. */
	const WORDS_MAX = 200;

	/** The most posts whose state before is kept; beyond that, everything is purged. */
	const POSTS_MAX = 100;

	/** Fields of a post that no page shows. */
	const META_UNSEEN = array( '_edit_lock', '_edit_last', '_wp_old_slug', '_wp_old_date', '_wp_desired_post_slug', '_wp_trash_meta_status', '_wp_trash_meta_time', '_wp_trash_meta_comments_status', '_pingme', '_encloseme' );

	/** Fields of a user that pages show. */
	const USER_META_SHOWN = array( 'description', 'nickname', 'first_name', 'last_name', 'simple_local_avatar', 'wp_user_avatar' );

	/**
	 * The words, as keys, that are known already.
	 *
	 * @var array
	 */
	private $words = array();

	/**
	 * Posts that were touched, by ID: how they were before, or null where no hook told.
	 *
	 * @var array
	 */
	private $posts = array();

	/**
	 * Posts whose comments are being counted: what the hooks say of the post meanwhile is about that alone.
	 *
	 * @var array
	 */
	private $counting = array();

	/**
	 * What was changed first, for the log.
	 *
	 * @var string
	 */
	private $reason = '';

	/**
	 * Whether an import runs.
	 *
	 * @var bool
	 */
	private $importing = false;

	/**
	 * Begins to watch.
	 */
	public function watch() {
		// Posts. The first tell how a post was; the others, that it was touched.
		add_action( 'pre_post_update', array( $this, 'before_post' ), 1 );
		add_action( 'wp_trash_post', array( $this, 'before_post' ), 1 );
		add_action( 'before_delete_post', array( $this, 'before_delete' ), 1 );
		add_action( 'delete_attachment', array( $this, 'before_delete' ), 1 );
		add_action( 'transition_post_status', array( $this, 'post_status' ), 10, 3 );
		add_action( 'trashed_post', array( $this, 'post_written' ) );
		add_action( 'deleted_post', array( $this, 'post_written' ) );
		add_action( 'save_post', array( $this, 'post_written' ) );
		add_action( 'edit_post', array( $this, 'post_edited' ) );
		add_action( 'add_attachment', array( $this, 'post_added' ) );
		add_action( 'edit_attachment', array( $this, 'post_written' ) );
		add_action( 'clean_post_cache', array( $this, 'post_cleaned' ) );
		add_action( 'set_object_terms', array( $this, 'terms_set' ), 10, 6 );
		foreach ( array( 'added_post_meta', 'updated_post_meta', 'deleted_post_meta' ) as $hook ) {
			add_action( $hook, array( $this, 'post_meta' ), 10, 3 );
		}

		add_action( 'comment_post', array( $this, 'comment_posted' ), 10, 2 );
		add_action( 'wp_insert_comment', array( $this, 'comment_if_approved' ), 10, 2 );
		add_action( 'edit_comment', array( $this, 'comment_if_approved' ) );
		add_action( 'delete_comment', array( $this, 'comment_if_approved' ) );
		add_action( 'transition_comment_status', array( $this, 'comment_status' ), 10, 3 );
		add_filter( 'pre_wp_update_comment_count_now', array( $this, 'count_begins' ), 10, 3 );
		add_action( 'wp_update_comment_count', array( $this, 'counted' ), 10, 3 );

		add_action( 'created_term', array( $this, 'term_created' ), 10, 3 );
		add_action( 'edit_terms', array( $this, 'before_term' ), 1, 2 );
		add_action( 'edited_term', array( $this, 'term_edited' ), 10, 3 );
		add_action( 'pre_delete_term', array( $this, 'before_term_deleted' ), 1, 2 );
		add_action( 'delete_term', array( $this, 'term_deleted' ), 10, 4 );
		add_action( 'clean_term_cache', array( $this, 'terms_cleaned' ), 10, 2 );
		foreach ( array( 'added_term_meta', 'updated_term_meta', 'deleted_term_meta' ) as $hook ) {
			add_action( $hook, array( $this, 'term_meta' ), 10, 2 );
		}

		add_action( 'profile_update', array( $this, 'user_edited' ), 10, 2 );
		add_action( 'clean_user_cache', array( $this, 'user_cleaned' ) );
		foreach ( array( 'added_user_meta', 'updated_user_meta', 'deleted_user_meta' ) as $hook ) {
			add_action( $hook, array( $this, 'user_meta' ), 10, 3 );
		}
		foreach ( array( 'deleted_user', 'remove_user_from_blog', 'set_user_role' ) as $hook ) {
			add_action( $hook, array( $this, 'user_gone' ) );
		}

		foreach ( array( 'wp_create_nav_menu', 'wp_update_nav_menu', 'wp_delete_nav_menu' ) as $hook ) {
			add_action( $hook, array( $this, 'menu' ) );
		}
		add_action( 'wp_update_nav_menu_item', array( $this, 'menu' ) );

		add_action( 'added_option', array( $this, 'option_added' ), 10, 2 );
		add_action( 'updated_option', array( $this, 'option_updated' ), 10, 3 );
		add_action( 'deleted_option', array( $this, 'option_added' ) );
		add_action( 'customize_save_after', array( $this, 'design' ) );
		foreach ( array( 'switch_theme', 'upgrader_process_complete', '_core_updated_successfully', 'autoptimize_action_cachepurged', 'activated_plugin', 'deactivated_plugin' ) as $hook ) {
			add_action(
				$hook,
				function () use ( $hook ) {
					$this->everything( $hook );
				}
			);
		}
		// Widgets that WordPress saves through admin-ajax.php without a hook of their own: their options change, which is enough, but a
		// plugin may keep what a widget shows elsewhere.
		add_action( 'check_ajax_referer', array( $this, 'ajax' ) );
		add_action( 'import_start', array( $this, 'import_begins' ) );
		add_action( 'import_end', array( $this, 'import_ends' ) );

		$this->watch_shop();
	}

	/**
	 * Watches what WooCommerce changes without writing a post. Its hooks tell the product, or its ID.
	 */
	private function watch_shop() {
		$hooks = array(
			'woocommerce_product_set_stock',
			'woocommerce_variation_set_stock',
			'woocommerce_product_set_stock_status',
			'woocommerce_variation_set_stock_status',
			'woocommerce_update_product',
			'woocommerce_update_product_variation',
		);
		foreach ( $hooks as $hook ) {
			add_action( $hook, array( $this, 'product' ) );
		}
		foreach ( array( 'wc_after_products_starting_sales', 'wc_after_products_ending_sales' ) as $hook ) {
			add_action( $hook, array( $this, 'products' ) );
		}
		add_action( 'woocommerce_reduce_order_stock', array( $this, 'order' ) );
	}

	/**
	 * Adds words.
	 *
	 * @param string[] $words  Tags; `url=/path/` for an address; `*` for everything.
	 * @param string   $reason What happened.
	 */
	public function add( array $words, $reason = '' ) {
		if ( '' === $this->reason ) {
			$this->reason = '' === $reason ? (string) current_action() : $reason;
		}
		foreach ( $words as $word ) {
			$this->words[ $word ] = true;
		}
	}

	/**
	 * Adds everything.
	 *
	 * @param string $reason What happened.
	 */
	public function everything( $reason = '' ) {
		$this->add( array( '*' ), $reason );
	}

	/**
	 * Returns what was changed first.
	 *
	 * @return string
	 */
	public function reason() {
		return $this->reason;
	}

	/**
	 * Returns the words of all changes so far; `*` alone where that is shorter.
	 *
	 * @return string[]
	 */
	public function words() {
		if ( isset( $this->words['*'] ) ) {
			return array( '*' );
		}
		if ( count( $this->posts ) > self::POSTS_MAX ) {
			return array( '*' );
		}
		$words = $this->words;
		foreach ( $this->posts as $id => $before ) {
			foreach ( $this->words_of_post( (int) $id, $before ) as $word ) {
				$words[ $word ] = true;
			}
		}
		foreach ( array_keys( $words ) as $word ) {
			$kind = Seawall_Names::kind( (string) $word );
			if ( 0 !== strpos( (string) $word, 'url=' ) && $kind !== (string) $word && 'many' !== $kind ) {
				$words[ 'many-' . $kind ] = true;
			}
		}
		if ( isset( $words['*'] ) || count( $words ) > self::WORDS_MAX ) {
			return array( '*' );
		}
		return array_map( 'strval', array_keys( $words ) );
	}

	/**
	 * Returns whether what is written may be believed to be more than bookkeeping: plugins count views in fields of posts, on every view.
	 *
	 * @param string $capability What the user must be able to do.
	 * @param int    $id         To what.
	 * @return bool
	 */
	private function is_meant( $capability, $id ) {
		if ( wp_doing_cron() || ( defined( 'WP_CLI' ) && WP_CLI ) || 'cli' === PHP_SAPI ) {
			return true;
		}
		return ! Seawall_Plugin::only_reads() && did_action( 'set_current_user' ) && current_user_can( $capability, $id );
	}

	// ---------------------------------------------------------------- posts

	/**
	 * Notes a post, and how it was.
	 *
	 * @param int        $id     The post.
	 * @param array|null $before How it was, or null if nobody knows.
	 */
	private function touch( $id, $before = null ) {
		$id = (int) $id;
		if ( isset( $this->posts[ $id ] ) || isset( $this->words['*'] ) ) {
			return;
		}
		if ( $this->importing || count( $this->posts ) > self::POSTS_MAX ) {
			$this->everything( 'many posts' );
			return;
		}
		if ( is_multisite() && ms_is_switched() ) {
			// What it means is worked out when another site of the network is at work.
			$this->everything( 'another site of the network' );
			return;
		}
		if ( '' === $this->reason ) {
			$this->reason = (string) current_action();
		}
		$this->posts[ $id ] = $before;
	}

	/**
	 * Keeps how a post was.
	 *
	 * @param int $id The post.
	 */
	public function before_post( $id ) {
		$post = get_post( $id );
		if ( $post instanceof WP_Post && ! isset( $this->posts[ $post->ID ] ) && $this->is_seen_type( $post->post_type ) ) {
			$this->touch( $post->ID, $this->state( $post ) );
		}
	}

	/**
	 * Keeps how a post was that is deleted. The addresses of an attachment's files end too.
	 *
	 * @param int $id The post.
	 */
	public function before_delete( $id ) {
		$this->before_post( $id );
		$post = get_post( $id );
		if ( $post instanceof WP_Post && 'attachment' === $post->post_type ) {
			$this->add( $this->files_of( $post->ID ) );
		}
		if ( $post instanceof WP_Post && 'nav_menu_item' === $post->post_type ) {
			$this->menus_of( $post->ID );
		}
	}

	/**
	 * Notes that a post changed its status.
	 *
	 * @param string  $new_status The new status.
	 * @param string  $old_status The old status.
	 * @param WP_Post $post       The post.
	 */
	public function post_status( $new_status, $old_status, $post ) {
		if ( ! $post instanceof WP_Post || ! $this->is_seen_type( $post->post_type ) ) {
			return;
		}
		if ( ! isset( $this->posts[ $post->ID ] ) && ( 'new' === $old_status || ( $new_status !== $old_status && ! $this->is_seen_status( $old_status ) ) ) ) {
			// wp_publish_post() writes without the hook that tells how it was: it was not to be seen.
			$this->touch( $post->ID, array( 'seen' => false ) );
		} elseif ( ! isset( $this->posts[ $post->ID ] ) && $new_status !== $old_status ) {
			$was              = clone $post;
			$was->post_status = $old_status;
			$this->touch( $post->ID, $this->state( $was ) );
		} else {
			$this->touch( $post->ID );
		}
		if ( 'nav_menu_item' === $post->post_type ) {
			$this->menus_of( $post->ID );
		}
	}

	/**
	 * Notes a post that was written.
	 *
	 * @param int $id The post.
	 */
	public function post_written( $id ) {
		$type = get_post_type( $id );
		if ( $type && $this->is_seen_type( $type ) ) {
			$this->touch( $id );
		}
	}

	/**
	 * Notes a post that is new.
	 *
	 * @param int $id The post.
	 */
	public function post_added( $id ) {
		$this->touch( $id, array( 'seen' => false ) );
	}

	/**
	 * Notes a post that was edited, unless only its comments were counted.
	 *
	 * @param int $id The post.
	 */
	public function post_edited( $id ) {
		if ( isset( $this->counting[ $id ] ) ) {
			unset( $this->counting[ $id ] );
			return;
		}
		$this->post_written( $id );
	}

	/**
	 * Notes a post that somebody wrote past WordPress's functions, if that is meant.
	 *
	 * @param int $id The post.
	 */
	public function post_cleaned( $id ) {
		if ( isset( $this->counting[ $id ] ) || isset( $this->posts[ $id ] ) || ! doing_action( 'clean_post_cache' ) ) {
			return;
		}
		$type = get_post_type( $id );
		// WordPress itself cleans before the hooks that tell more: those come, or there is nothing to tell.
		if ( $type && $this->is_seen_type( $type ) && ! in_array( $type, Seawall_Names::TYPES_OF_DESIGN, true ) && $this->is_meant( 'edit_post', $id ) && ! $this->writes_post() ) {
			$this->touch( $id );
		}
	}

	/**
	 * Returns whether one of WordPress's own functions for posts is at work: its own hooks follow.
	 *
	 * @return bool
	 */
	private function writes_post() {
		// phpcs:ignore WordPress.PHP.DevelopmentFunctions.error_log_debug_backtrace -- There is no other way to know who cleans.
		foreach ( debug_backtrace( DEBUG_BACKTRACE_IGNORE_ARGS, 12 ) as $frame ) {
			if ( in_array( $frame['function'], array( 'wp_insert_post', 'wp_publish_post', 'wp_delete_post', 'wp_delete_attachment', 'wp_update_comment_count_now' ), true ) ) {
				return true;
			}
		}
		return false;
	}

	/**
	 * Notes a post that got other terms.
	 *
	 * @param int    $id         The post.
	 * @param array  $terms      The terms.
	 * @param array  $tt_ids     The IDs of the terms in their taxonomy, now.
	 * @param string $taxonomy   The taxonomy.
	 * @param bool   $append     Whether they were added.
	 * @param array  $old_tt_ids The IDs before.
	 */
	public function terms_set( $id, $terms, $tt_ids, $taxonomy, $append = false, $old_tt_ids = array() ) {
		$tt_ids     = array_map( 'intval', (array) $tt_ids );
		$old_tt_ids = array_map( 'intval', (array) $old_tt_ids );
		$gone       = $append ? array() : array_diff( $old_tt_ids, $tt_ids );
		$come       = array_diff( $tt_ids, $old_tt_ids );
		$post       = get_post( $id );
		if ( ( ! $gone && ! $come ) || ! $post instanceof WP_Post || ! $this->is_seen_type( $post->post_type ) ) {
			return;
		}
		if ( 'nav_menu' === $taxonomy ) {
			$this->menus_of( $id );
			return;
		}
		$this->touch( $id );
		if ( ! $this->is_seen( $post ) ) {
			return;
		}
		$type = Seawall_Names::word( $post->post_type );
		foreach ( array_merge( $gone, $come ) as $tt_id ) {
			$term = get_term_by( 'term_taxonomy_id', $tt_id );
			if ( $term instanceof WP_Term && ! in_array( $taxonomy, Seawall_Names::TAXONOMIES_OF_DESIGN, true ) ) {
				foreach ( Seawall_Names::term_and_ancestors( $term->term_id, $taxonomy ) as $term_id ) {
					$this->add( array( 'list-' . $type . '-term-' . $term_id ) );
				}
				$this->add( array( 'list-term-' . Seawall_Names::word( $taxonomy ) ) );
			}
		}
	}

	/**
	 * Notes a post whose fields were written, if that is meant.
	 *
	 * @param int|int[] $meta_ids The fields.
	 * @param int       $id       The post.
	 * @param string    $key      The name of the field.
	 */
	public function post_meta( $meta_ids, $id, $key ) {
		if ( in_array( $key, self::META_UNSEEN, true ) || 0 === strpos( $key, '_oembed_' ) ) {
			return;
		}
		$post = get_post( $id );
		if ( ! $post instanceof WP_Post || ! $this->is_seen( $post ) || ! $this->is_meant( 'edit_post', $id ) ) {
			return;
		}
		if ( 'nav_menu_item' === $post->post_type ) {
			$this->menus_of( $id );
			return;
		}
		$this->touch( $id );
		$this->add( array( 'order-' . Seawall_Names::word( $post->post_type ) . '-meta' ) );
	}

	/**
	 * Returns whether posts of a type can be part of a page.
	 *
	 * @param string $type The type.
	 * @return bool
	 */
	private function is_seen_type( $type ) {
		return ! in_array( $type, Seawall_Names::TYPES_UNSEEN, true );
	}

	/**
	 * Returns whether readers see posts of a status.
	 *
	 * @param string $status The status.
	 * @return bool
	 */
	private function is_seen_status( $status ) {
		$object = get_post_status_object( $status );
		return 'publish' === $status || ( $object && ! empty( $object->public ) );
	}

	/**
	 * Returns whether readers see a post.
	 *
	 * @param WP_Post $post The post.
	 * @return bool
	 */
	private function is_seen( WP_Post $post ) {
		if ( 'attachment' === $post->post_type ) {
			return in_array( $post->post_status, array( 'inherit', 'publish' ), true );
		}
		return $this->is_seen_type( $post->post_type ) && $this->is_seen_status( $post->post_status );
	}

	/**
	 * Returns what of a post decides where it is shown.
	 *
	 * @param WP_Post $post The post.
	 * @return array
	 */
	private function state( WP_Post $post ) {
		if ( ! $this->is_seen( $post ) ) {
			return array(
				'seen' => false,
				'type' => $post->post_type,
			);
		}
		$terms = array();
		foreach ( array_diff( get_object_taxonomies( $post->post_type ), Seawall_Names::TAXONOMIES_OF_DESIGN ) as $taxonomy ) {
			$of_post = wp_get_object_terms( $post->ID, $taxonomy, array( 'fields' => 'ids' ) );
			if ( is_array( $of_post ) && $of_post ) {
				$terms[ $taxonomy ] = array_map( 'intval', $of_post );
			}
		}
		return array(
			'seen'     => true,
			'type'     => $post->post_type,
			'name'     => $post->post_name,
			'author'   => (int) $post->post_author,
			'date'     => $post->post_date,
			'parent'   => (int) $post->post_parent,
			'menu'     => (int) $post->menu_order,
			'title'    => $post->post_title,
			'password' => '' !== $post->post_password,
			'comments' => (int) $post->comment_count,
			'terms'    => $terms,
			'url'      => $this->path_of( $post ),
		);
	}

	/**
	 * Returns the path of a post's page, or an empty string.
	 *
	 * @param WP_Post $post The post.
	 * @return string
	 */
	private function path_of( WP_Post $post ) {
		if ( ! is_post_type_viewable( $post->post_type ) ) {
			return '';
		}
		$url  = (string) get_permalink( $post );
		$path = (string) wp_parse_url( $url, PHP_URL_PATH );
		// A plain permalink has its post in the query, and the path is the front page's.
		return null === wp_parse_url( $url, PHP_URL_QUERY ) && false === strpos( $path, ',' ) ? $path : '';
	}

	/**
	 * Returns the words of a post that was touched.
	 *
	 * @param int        $id     The post.
	 * @param array|null $before How it was, or null if nobody knows.
	 * @return string[]
	 */
	private function words_of_post( $id, $before ) {
		$post = get_post( $id );
		$now  = $post instanceof WP_Post ? $this->state( $post ) : array( 'seen' => false );
		$was  = null === $before ? $now : $before;
		if ( ! $was['seen'] && ! $now['seen'] ) {
			return array();
		}
		$known = $now['seen'] ? $now : $was;
		if ( 'nav_menu_item' === $known['type'] ) {
			return array(); // Its menu has been named.
		}
		if ( in_array( $known['type'], array( 'wp_global_styles', 'custom_css' ), true ) ) {
			return array( 'theme' );
		}
		$type  = Seawall_Names::word( $known['type'] );
		$words = array( 'post-' . $id, 'order-' . $type . '-modified', 'search' );
		if ( 'attachment' === $known['type'] && $now['seen'] ) {
			$words = array_merge( $words, $was['seen'] ? $this->files_of( $id ) : array() );
		}
		if ( null === $before || $was['seen'] !== $now['seen'] || $this->is_linked_otherwise( $was, $now ) ) {
			$words[] = 'link-' . $id;
		}
		if ( $was['seen'] !== $now['seen'] ) {
			return array_merge( $words, $this->lists_of( $id, $known, $now['seen'] ? 1 : -1 ), $this->names_of( $id, $known ) );
		}
		// It is seen, and was.
		if ( $was['title'] !== $now['title'] ) {
			$words[] = 'order-' . $type . '-title';
		}
		if ( $was['menu'] !== $now['menu'] || $was['parent'] !== $now['parent'] ) {
			$words[] = 'order-' . $type . '-menu';
		}
		if ( $was['date'] !== $now['date'] || $was['author'] !== $now['author'] || $was['password'] !== $now['password'] || $was['type'] !== $now['type'] ) {
			$words = array_merge( $words, $this->lists_of( $id, $was ), $this->lists_of( $id, $now ) );
		}
		if ( $was['terms'] !== $now['terms'] ) {
			$words = array_merge( $words, $this->term_lists_of( $was ), $this->term_lists_of( $now ) );
		}
		if ( $was['name'] !== $now['name'] || $was['parent'] !== $now['parent'] || $was['url'] !== $now['url'] ) {
			$words = array_merge( $words, $this->names_of( $id, $was ), $this->names_of( $id, $now ) );
		}
		return $words;
	}

	/**
	 * Returns whether a link to a post is another one now: its title, its address, its place among others.
	 *
	 * @param array $was The post before.
	 * @param array $now The post now.
	 * @return bool
	 */
	private function is_linked_otherwise( array $was, array $now ) {
		foreach ( array( 'title', 'url', 'name', 'date', 'parent', 'menu', 'password', 'type' ) as $part ) {
			if ( $was[ $part ] !== $now[ $part ] ) {
				return true;
			}
		}
		return false;
	}

	/**
	 * Returns the lists that a post enters or leaves.
	 *
	 * @param int   $id    The post.
	 * @param array $state The post while it was seen.
	 * @param int   $more  1 if there is one more post now, -1 if there is one less, 0 if it only moved.
	 * @return string[]
	 */
	private function lists_of( $id, array $state, $more = 0 ) {
		$type  = Seawall_Names::word( $state['type'] );
		$date  = substr( $state['date'], 0, 10 );
		$words = array(
			'list-' . $type,
			'list-' . $type . '-user-' . $state['author'],
			'list-' . $type . '-date-' . $date,
			'list-' . $type . '-date-' . substr( $date, 0, 7 ),
			'list-' . $type . '-date-' . substr( $date, 0, 4 ),
		);
		if ( 'attachment' !== $state['type'] ) {
			$words[] = 'list-user'; // Nobody becomes an author by a file.
		}
		foreach ( $this->ends_of_newest( $id, $state, $more ) as $end ) {
			$words[] = 'list-' . $type . $end;
		}
		if ( $state['comments'] > 0 ) {
			$words[] = 'list-comment';
		}
		foreach ( $this->neighbours( $id, $state ) as $neighbour ) {
			$words[] = 'adjacent-' . $neighbour;
		}
		return array_merge( $words, $this->term_lists_of( $state ) );
	}

	/**
	 * Returns the ends of words of lists of the newest posts that a post enters or leaves.
	 *
	 * @param int   $id    The post.
	 * @param array $state The post.
	 * @param int   $more  1 if there is one more post now, -1 if there is one less, 0 if it only moved.
	 * @return string[]
	 */
	private function ends_of_newest( $id, array $state, $more ) {
		global $wpdb;
		// phpcs:disable WordPress.DB.DirectDatabaseQuery -- It is asked once per change, and must not come from a cache.
		$newer = (int) $wpdb->get_var( $wpdb->prepare( "SELECT COUNT(*) FROM $wpdb->posts WHERE post_type = %s AND post_status = 'publish' AND post_date > %s AND ID <> %d", $state['type'], $state['date'], $id ) );
		$all   = (int) $wpdb->get_var( $wpdb->prepare( "SELECT COUNT(*) FROM $wpdb->posts WHERE post_type = %s AND post_status = 'publish'", $state['type'] ) );
		// phpcs:enable
		// Other posts of this request may have come or gone, before or after this one.
		$others = count( $this->posts ) - 1;
		$ends   = array();
		foreach ( Seawall_Names::FIRST as $first ) {
			if ( $newer - $others < $first ) {
				$ends[] = '-first-' . $first;
			}
		}
		// One more post begins a page if those before filled theirs.
		$before = $more > 0 ? $all - 1 : $all;
		for ( $size = 1; 0 !== $more && $size <= Seawall_Names::PAGE_MAX; $size++ ) {
			for ( $full = $before - $others; $full <= $before + $others; $full++ ) {
				if ( $full > 0 && 0 === $full % $size ) {
					$ends[] = '-pages-' . $size;
					break;
				}
			}
		}
		return $ends;
	}

	/**
	 * Returns the lists of a post's terms, and those that say how many posts a term has.
	 *
	 * @param array $state The post.
	 * @return string[]
	 */
	private function term_lists_of( array $state ) {
		$words = array();
		foreach ( $state['terms'] as $taxonomy => $terms ) {
			$words[] = 'list-term-' . Seawall_Names::word( $taxonomy );
			foreach ( $terms as $term ) {
				foreach ( Seawall_Names::term_and_ancestors( $term, $taxonomy ) as $term_id ) {
					$words[] = 'list-' . Seawall_Names::word( $state['type'] ) . '-term-' . $term_id;
				}
			}
		}
		return $words;
	}

	/**
	 * Returns the published posts before and after a post.
	 *
	 * @param int   $id    The post.
	 * @param array $state The post.
	 * @return int[]
	 */
	private function neighbours( $id, array $state ) {
		global $wpdb;
		$found = array();
		foreach ( array( array( '<=', 'DESC' ), array( '>=', 'ASC' ) ) as $side ) {
			// The comparison and the order are the constants above. It is asked once per change, and must not come from a cache.
			// phpcs:disable WordPress.DB.DirectDatabaseQuery, WordPress.DB.PreparedSQL.InterpolatedNotPrepared
			$found[] = $wpdb->get_var(
				$wpdb->prepare(
					"SELECT ID FROM $wpdb->posts WHERE post_date {$side[0]} %s AND post_type = %s AND post_status = 'publish' AND ID <> %d ORDER BY post_date {$side[1]} LIMIT 1",
					$state['date'],
					$state['type'],
					$id
				)
			);
			// phpcs:enable
		}
		return array_map( 'intval', array_filter( $found ) );
	}

	/**
	 * Returns the words of the addresses that begin or end with a post, its own and those of the posts below it.
	 *
	 * @param int   $id    The post.
	 * @param array $state The post while it was seen.
	 * @return string[]
	 */
	private function names_of( $id, array $state ) {
		$words = array( Seawall_Names::name( $state['name'] ), 'guess' );
		if ( '' !== $state['url'] ) {
			$words[] = 'url=' . $state['url'];
		}
		if ( is_post_type_hierarchical( $state['type'] ) ) {
			$below = array( $id );
			for ( $depth = 0; $below && $depth < 10; $depth++ ) {
				$below = get_posts(
					array(
						'post_type'        => $state['type'],
						'post_parent__in'  => $below,
						'posts_per_page'   => self::WORDS_MAX,
						'fields'           => 'ids',
						'suppress_filters' => true,
					)
				);
				foreach ( $below as $child ) {
					$words[] = 'post-' . (int) $child;
					$words[] = 'link-' . (int) $child;
					$words[] = Seawall_Names::name( get_post_field( 'post_name', $child ) );
				}
			}
		}
		return $words;
	}

	/**
	 * Returns the addresses of an attachment's files: Seawall stores them as it stores pages.
	 *
	 * @param int $id The attachment.
	 * @return string[]
	 */
	private function files_of( $id ) {
		$path = (string) wp_parse_url( (string) wp_get_attachment_url( $id ), PHP_URL_PATH );
		if ( '' === $path || false !== strpos( $path, ',' ) ) {
			return array();
		}
		$words = array( 'url=' . $path );
		$data  = wp_get_attachment_metadata( $id, true );
		$sizes = isset( $data['sizes'] ) && is_array( $data['sizes'] ) ? $data['sizes'] : array();
		foreach ( array_slice( $sizes, 0, 20 ) as $size ) {
			if ( isset( $size['file'] ) && false === strpos( $size['file'], ',' ) ) {
				$words[] = 'url=' . dirname( $path ) . '/' . $size['file'];
			}
		}
		return $words;
	}

	// ------------------------------------------------------------- comments

	/**
	 * Adds what shows a comment.
	 *
	 * @param WP_Comment $comment The comment.
	 */
	private function comment( $comment ) {
		$this->add( array( 'comments-' . (int) $comment->comment_post_ID, 'list-comment' ) );
	}

	/**
	 * Adds a comment that a reader wrote, if it is shown at once.
	 *
	 * @param int        $id       The comment.
	 * @param int|string $approved 1 if it is shown.
	 */
	public function comment_posted( $id, $approved ) {
		if ( 1 === (int) $approved && 'spam' !== $approved ) {
			$this->comment( get_comment( $id ) );
		}
	}

	/**
	 * Adds a comment, if it is shown.
	 *
	 * @param int $id The comment.
	 */
	public function comment_if_approved( $id ) {
		$comment = get_comment( $id );
		if ( $comment instanceof WP_Comment && '1' === (string) $comment->comment_approved ) {
			$this->comment( $comment );
		}
	}

	/**
	 * Adds a comment that appears or vanishes.
	 *
	 * @param string     $new_status The new status.
	 * @param string     $old_status The old status.
	 * @param WP_Comment $comment    The comment.
	 */
	public function comment_status( $new_status, $old_status, $comment ) {
		if ( 'approved' === $new_status || 'approved' === $old_status ) {
			$this->comment( $comment );
		}
	}

	/**
	 * Notes that the comments of a post are being counted.
	 *
	 * @param int|null $count The number, or null to have it counted.
	 * @param int      $old   The number before.
	 * @param int      $id    The post.
	 * @return int|null
	 */
	public function count_begins( $count, $old = 0, $id = 0 ) {
		$this->counting[ (int) $id ] = true;
		return $count;
	}

	/**
	 * Adds what shows the number of a post's comments, if that is another now.
	 *
	 * @param int $id        The post.
	 * @param int $new_count The number.
	 * @param int $old_count The number before.
	 */
	public function counted( $id, $new_count, $old_count ) {
		if ( (int) $new_count !== (int) $old_count ) {
			$type = Seawall_Names::word( (string) get_post_type( $id ) );
			$this->add( array( 'comments-' . (int) $id, 'list-comment', 'order-' . $type . '-comments' ) );
		}
	}

	// ---------------------------------------------------------------- terms

	/**
	 * The terms that are being edited, as they were, by ID.
	 *
	 * @var array
	 */
	private $terms = array();

	/**
	 * Keeps how a term was.
	 *
	 * @param int    $id       The term.
	 * @param string $taxonomy The taxonomy.
	 */
	public function before_term( $id, $taxonomy ) {
		$term = get_term( $id, $taxonomy );
		if ( $term instanceof WP_Term && ! isset( $this->terms[ $term->term_id ] ) ) {
			$this->terms[ $term->term_id ] = clone $term;
		}
	}

	/**
	 * Adds what a new term enters.
	 *
	 * @param int    $id       The term.
	 * @param int    $tt_id    Its ID in the taxonomy.
	 * @param string $taxonomy The taxonomy.
	 */
	public function term_created( $id, $tt_id, $taxonomy ) {
		$term = get_term( $id, $taxonomy );
		if ( $term instanceof WP_Term && ! in_array( $taxonomy, Seawall_Names::TAXONOMIES_OF_DESIGN, true ) ) {
			$this->add( array( 'list-term-' . Seawall_Names::word( $taxonomy ), Seawall_Names::name( $term->slug ) ) );
		}
	}

	/**
	 * Adds what shows a term.
	 *
	 * @param int    $id       The term.
	 * @param int    $tt_id    Its ID in the taxonomy.
	 * @param string $taxonomy The taxonomy.
	 */
	public function term_edited( $id, $tt_id, $taxonomy ) {
		if ( 'nav_menu' === $taxonomy ) {
			$this->menu( $id );
		}
		$term = get_term( $id, $taxonomy );
		if ( ! $term instanceof WP_Term || in_array( $taxonomy, Seawall_Names::TAXONOMIES_OF_DESIGN, true ) ) {
			return;
		}
		$words = array( 'term-' . (int) $id );
		$was   = isset( $this->terms[ $term->term_id ] ) ? $this->terms[ $term->term_id ] : null;
		if ( ! $was || $was->name !== $term->name || $was->slug !== $term->slug || $was->parent !== $term->parent ) {
			$words[] = 'list-term-' . Seawall_Names::word( $taxonomy );
		}
		if ( ! $was || $was->name !== $term->name ) {
			$words[] = 'class-' . (int) $id;
		}
		if ( ! $was || $was->slug !== $term->slug ) {
			$words = array_merge( $words, array( 'class-' . (int) $id, Seawall_Names::name( $term->slug ) ), $was ? array( Seawall_Names::name( $was->slug ) ) : array() );
		}
		if ( ! $was || $was->parent !== $term->parent ) {
			$words = array_merge( $words, $this->lists_of_term( $id, $taxonomy ), $was && $was->parent ? $this->lists_of_term( $was->parent, $taxonomy ) : array() );
		}
		if ( ( ! $was || $was->slug !== $term->slug || $was->parent !== $term->parent ) && $this->is_in_permalinks( $taxonomy ) ) {
			$words = array( '*' );
		}
		$this->add( $words );
	}

	/**
	 * Keeps how a term was that is deleted.
	 *
	 * @param int    $id       The term.
	 * @param string $taxonomy The taxonomy.
	 */
	public function before_term_deleted( $id, $taxonomy ) {
		$this->before_term( $id, $taxonomy );
		if ( ! in_array( $taxonomy, Seawall_Names::TAXONOMIES_OF_DESIGN, true ) ) {
			// What is below it moves up.
			$this->add( $this->lists_of_term( $id, $taxonomy ) );
		}
	}

	/**
	 * Adds what showed a term.
	 *
	 * @param int     $id       The term.
	 * @param int     $tt_id    Its ID in the taxonomy.
	 * @param string  $taxonomy The taxonomy.
	 * @param WP_Term $term     The term, as it was.
	 */
	public function term_deleted( $id, $tt_id, $taxonomy, $term = null ) {
		if ( 'nav_menu' === $taxonomy ) {
			$this->menu( $id );
			return;
		}
		if ( ! in_array( $taxonomy, Seawall_Names::TAXONOMIES_OF_DESIGN, true ) ) {
			$this->add( array( 'term-' . (int) $id, 'class-' . (int) $id, 'list-term-' . Seawall_Names::word( $taxonomy ) ) );
			if ( isset( $term->slug ) ) {
				$this->add( array( Seawall_Names::name( $term->slug ) ) );
			}
			if ( $this->is_in_permalinks( $taxonomy ) ) {
				$this->everything( 'delete_term' );
			}
		}
	}

	/**
	 * Returns the lists of the posts of a term, and of the terms above it.
	 *
	 * @param int    $id       The term.
	 * @param string $taxonomy The taxonomy.
	 * @return string[]
	 */
	private function lists_of_term( $id, $taxonomy ) {
		$words  = array();
		$object = get_taxonomy( $taxonomy );
		foreach ( Seawall_Names::term_and_ancestors( $id, $taxonomy ) as $term_id ) {
			foreach ( $object ? (array) $object->object_type : array() as $type ) {
				$words[] = 'list-' . Seawall_Names::word( $type ) . '-term-' . $term_id;
			}
		}
		return $words;
	}

	/**
	 * Returns whether the addresses of posts have terms of a taxonomy in them.
	 *
	 * @param string $taxonomy The taxonomy.
	 * @return bool
	 */
	private function is_in_permalinks( $taxonomy ) {
		return false !== strpos( (string) get_option( 'permalink_structure' ), '%' . $taxonomy . '%' );
	}

	/**
	 * Adds terms that somebody wrote past WordPress's functions, if that is meant.
	 *
	 * @param int[]  $ids      The terms.
	 * @param string $taxonomy The taxonomy.
	 */
	public function terms_cleaned( $ids, $taxonomy = '' ) {
		if ( in_array( $taxonomy, Seawall_Names::TAXONOMIES_OF_DESIGN, true ) || ! $this->is_meant( 'manage_categories', 0 ) ) {
			return;
		}
		// phpcs:ignore WordPress.PHP.DevelopmentFunctions.error_log_debug_backtrace -- WordPress cleans after each count; only its caller tells.
		foreach ( debug_backtrace( DEBUG_BACKTRACE_IGNORE_ARGS, 12 ) as $frame ) {
			if ( in_array( $frame['function'], array( 'wp_insert_term', 'wp_update_term', 'wp_delete_term', 'wp_update_term_count_now', '_update_post_term_count', 'wp_set_object_terms', 'wp_remove_object_terms', 'clean_object_term_cache' ), true ) ) {
				return;
			}
		}
		foreach ( (array) $ids as $id ) {
			$this->add( array( 'term-' . (int) $id ) );
		}
	}

	/**
	 * Adds a term whose fields were written, if that is meant.
	 *
	 * @param int|int[] $meta_ids The fields.
	 * @param int       $id       The term.
	 */
	public function term_meta( $meta_ids, $id ) {
		if ( $this->is_meant( 'edit_term', $id ) ) {
			$this->add( array( 'term-' . (int) $id ) );
		}
	}

	// ---------------------------------------------------------------- users

	/**
	 * Adds a user, if readers can see what was changed.
	 *
	 * @param int     $id  The user.
	 * @param WP_User $old The user as it was.
	 */
	public function user_edited( $id, $old = null ) {
		$user = get_userdata( $id );
		if ( ! $user ) {
			return;
		}
		foreach ( array( 'display_name', 'user_nicename', 'user_url', 'user_email' ) as $field ) {
			if ( ! isset( $old->$field ) || $old->$field !== $user->$field ) {
				$this->add( array( 'user-' . (int) $id, 'list-user', Seawall_Names::name( $user->user_nicename ) ) );
				return;
			}
		}
	}

	/**
	 * Adds a user that somebody wrote past WordPress's functions, if that is meant.
	 *
	 * @param int $id The user.
	 */
	public function user_cleaned( $id ) {
		if ( ! $this->is_meant( 'edit_user', $id ) ) {
			return;
		}
		// phpcs:ignore WordPress.PHP.DevelopmentFunctions.error_log_debug_backtrace -- WordPress cleans for passwords and roles too.
		foreach ( debug_backtrace( DEBUG_BACKTRACE_IGNORE_ARGS, 12 ) as $frame ) {
			if ( in_array( $frame['function'], array( 'wp_insert_user', 'wp_set_password', 'wp_delete_user', 'update_user_caches', 'set_role', 'add_role', 'remove_role', 'update_user_status' ), true ) ) {
				return;
			}
		}
		$this->add( array( 'user-' . (int) $id ) );
	}

	/**
	 * Adds a user, if readers can see the field that was written.
	 *
	 * @param int|int[] $meta_ids The fields.
	 * @param int       $id       The user.
	 * @param string    $key      The name of the field.
	 */
	public function user_meta( $meta_ids, $id, $key ) {
		if ( in_array( $key, self::USER_META_SHOWN, true ) ) {
			$this->add( array( 'user-' . (int) $id ) );
		}
	}

	/**
	 * Adds a user that goes, or may do other things now.
	 *
	 * @param int $id The user.
	 */
	public function user_gone( $id ) {
		$this->add( array( 'user-' . (int) $id, 'list-user' ) );
	}

	// --------------------------------------------------------------- design

	/**
	 * Adds a menu.
	 *
	 * @param int $id The menu.
	 */
	public function menu( $id ) {
		$this->add( array( 'menu-' . (int) $id ) );
	}

	/**
	 * Adds the menus that an item is in.
	 *
	 * @param int $item The item.
	 */
	private function menus_of( $item ) {
		$menus = wp_get_object_terms( $item, 'nav_menu', array( 'fields' => 'ids' ) );
		foreach ( is_array( $menus ) ? $menus : array() as $menu ) {
			$this->menu( $menu );
		}
	}

	/**
	 * Adds the design of the theme.
	 */
	public function design() {
		$this->add( array( 'theme' ) );
	}

	/**
	 * Adds the sidebars when the Widgets screen saves.
	 *
	 * @param string $action What is saved.
	 */
	public function ajax( $action ) {
		if ( 'save-sidebar-widgets' === $action ) {
			$this->add( array( 'many-sidebar', 'theme' ) );
		}
	}

	/**
	 * Adds an option that was added or deleted.
	 *
	 * @param string $option The option.
	 * @param mixed  $value  Its value.
	 */
	public function option_added( $option, $value = null ) {
		$this->option_updated( $option, null, $value );
	}

	/**
	 * Adds what depends on an option.
	 *
	 * @param string $option The option.
	 * @param mixed  $old    What it was.
	 * @param mixed  $value  What it is.
	 */
	public function option_updated( $option, $old = null, $value = null ) {
		if ( in_array( $option, Seawall_Names::OPTIONS_SHOWN, true ) ) {
			$this->add( array( 'option-' . $option ), 'option ' . $option );
		} elseif ( 'sticky_posts' === $option ) {
			$old   = array_map( 'intval', is_array( $old ) ? $old : array() );
			$value = array_map( 'intval', is_array( $value ) ? $value : array() );
			$words = array( 'option-sticky_posts' );
			// Their class and their field in the REST API say whether they are.
			foreach ( array_merge( array_diff( $old, $value ), array_diff( $value, $old ) ) as $id ) {
				$words[] = 'post-' . $id;
			}
			$this->add( $words, 'option ' . $option );
		} elseif ( 'posts_per_page' === $option ) {
			// It says how many posts a list has, which all lists that have no number of their own depend on.
			$this->add( array( 'option-posts_per_page' ), 'option ' . $option );
		} elseif ( in_array( $option, Seawall_Names::OPTIONS_OF_ALL, true ) ) {
			$this->everything( 'option ' . $option );
		} elseif ( 'sidebars_widgets' === $option ) {
			$this->sidebars( $old, $value );
		} elseif ( 0 === strpos( $option, 'widget_' ) ) {
			$this->widgets( substr( $option, strlen( 'widget_' ) ), $old, $value );
		} elseif ( 0 === strpos( $option, 'theme_mods_' ) ) {
			if ( substr( $option, strlen( 'theme_mods_' ) ) === get_option( 'stylesheet' ) ) {
				$this->add( array( 'theme' ), 'option ' . $option );
			}
		} elseif ( $this->is_setting( $option ) ) {
			$this->everything( 'option ' . $option );
		}
	}

	/**
	 * Returns whether somebody changed an option on a settings page. Nobody knows which pages show it; plugins write options of their own
	 * all the time, which nobody should notice.
	 *
	 * @param string $option The option.
	 * @return bool
	 */
	private function is_setting( $option ) {
		global $pagenow;
		if ( Seawall_Plugin::only_reads() || ! is_admin() || wp_doing_ajax() || wp_doing_cron() ) {
			return false;
		}
		if ( ! in_array( $pagenow, array( 'options.php', 'options-general.php', 'admin.php', 'themes.php', 'tools.php' ), true ) || ! current_user_can( 'manage_options' ) ) {
			return false;
		}
		return ! in_array( $option, Seawall_Names::OPTIONS_UNSEEN, true )
			&& ! preg_match( '/^(_transient|_site_transient|seawall_|action_scheduler)|_(children|lock|version|nonce|cache)$/', $option );
	}

	/**
	 * Adds the sidebars that got other widgets.
	 *
	 * @param mixed $old   The widgets of each sidebar, before.
	 * @param mixed $value The widgets of each sidebar, now.
	 */
	private function sidebars( $old, $value ) {
		$old   = is_array( $old ) ? $old : array();
		$value = is_array( $value ) ? $value : array();
		foreach ( array_keys( $old + $value ) as $sidebar ) {
			$was = isset( $old[ $sidebar ] ) ? $old[ $sidebar ] : null;
			$is  = isset( $value[ $sidebar ] ) ? $value[ $sidebar ] : null;
			if ( $was !== $is && 'array_version' !== $sidebar && 'wp_inactive_widgets' !== $sidebar ) {
				$this->add( array( 'sidebar-' . Seawall_Names::word( $sidebar ) ), 'option sidebars_widgets' );
			}
		}
	}

	/**
	 * Adds the sidebars in which a widget was changed.
	 *
	 * @param string $base  The kind of widget.
	 * @param mixed  $old   The widgets of the kind, before.
	 * @param mixed  $value The widgets of the kind, now.
	 */
	private function widgets( $base, $old, $value ) {
		$old     = is_array( $old ) ? $old : array();
		$value   = is_array( $value ) ? $value : array();
		$changed = array();
		foreach ( array_keys( $old + $value ) as $number ) {
			if ( is_int( $number ) && ( isset( $old[ $number ] ) ? $old[ $number ] : null ) !== ( isset( $value[ $number ] ) ? $value[ $number ] : null ) ) {
				$changed[] = $base . '-' . $number;
			}
		}
		$sidebars = get_option( 'sidebars_widgets' );
		foreach ( is_array( $sidebars ) ? $sidebars : array() as $sidebar => $widgets ) {
			if ( is_array( $widgets ) && 'wp_inactive_widgets' !== $sidebar && array_intersect( $changed, $widgets ) ) {
				$this->add( array( 'sidebar-' . Seawall_Names::word( $sidebar ) ), 'option widget_' . $base );
			}
		}
	}

	/**
	 * Notes that an import begins. It purges once, at its end.
	 */
	public function import_begins() {
		$this->importing = true;
		$this->everything( 'import_start' );
	}

	/**
	 * Notes that an import has ended.
	 */
	public function import_ends() {
		$this->importing = false;
		$this->everything( 'import_end' );
	}

	// ----------------------------------------------------------------- shop

	/**
	 * Adds a product whose stock or price is another now.
	 *
	 * @param object|int $product The product, or its ID.
	 */
	public function product( $product ) {
		$id = is_object( $product ) && method_exists( $product, 'get_id' ) ? $product->get_id() : $product;
		if ( ! is_numeric( $id ) ) {
			return;
		}
		$words = array( 'post-' . (int) $id, 'order-product-meta' );
		// A variation is shown on the page of its product.
		$parent = wp_get_post_parent_id( (int) $id );
		if ( $parent ) {
			$words[] = 'post-' . (int) $parent;
		}
		$this->add( $words );
	}

	/**
	 * Adds products whose sale begins or ends.
	 *
	 * @param int[] $ids The products.
	 */
	public function products( $ids ) {
		foreach ( (array) $ids as $id ) {
			$this->product( $id );
		}
		$this->add( array( 'list-product' ) );
	}

	/**
	 * Adds the products of an order that took them from stock.
	 *
	 * @param object $order The order.
	 */
	public function order( $order ) {
		$items = is_object( $order ) && method_exists( $order, 'get_items' ) ? $order->get_items() : array();
		foreach ( $items as $item ) {
			if ( is_object( $item ) && method_exists( $item, 'get_product_id' ) ) {
				$this->product( $item->get_product_id() );
			}
		}
	}
}
