<?php
/**
 * What the page of this request is made of.
 *
 * @package Seawall
 */

defined( 'ABSPATH' ) || exit;

/**
 * Watches the queries of a page, and names what they listed and what a new post or comment would enter.
 *
 * Queries are kept, not read, while the page is built: many get their results only after the last hook that every query calls
 * (`get_posts()` suppresses the others). They are read once, when the page is finished.
 */
final class Seawall_Tags {

	/** The most words on one response. Seawall reads 256. */
	const WORDS_MAX = 256;

	/** The most bytes of words where Seawall reads them from PHP itself. */
	const BYTES_MAX = 8192;

	/** The most bytes behind another server. nginx allows 4 KB for the whole head, and makes a longer one a 502. */
	const BYTES_MAX_BEHIND_SERVER = 2048;

	/** The most queries that are kept; then those that are kept are read, and the next ones kept. */
	const QUERIES_MAX = 200;

	/** The most words of one kind that are collected: such a page gets `many-post` or the like anyhow. */
	const WORDS_OF_A_KIND_MAX = 1000;

	/**
	 * The words, as keys, by kind.
	 *
	 * @var array
	 */
	private $words = array();

	/**
	 * Queries whose results are not read yet.
	 *
	 * @var array
	 */
	private $queries = array();

	/**
	 * Queries of lists that show posts by their titles alone, by the IDs of the objects.
	 *
	 * @var array
	 */
	private $of_links = array();

	/**
	 * Whether a list of pages is being made, which shows titles and links alone.
	 *
	 * @var bool
	 */
	private $in_links = false;

	/**
	 * How many lists of CSS classes are being made.
	 *
	 * @var int
	 */
	private $in_classes = 0;

	/**
	 * Begins to watch.
	 */
	public function watch() {
		$last = PHP_INT_MAX;

		add_action( 'pre_get_posts', array( $this, 'keep' ), $last );
		add_action( 'pre_get_terms', array( $this, 'keep' ), $last );
		add_action( 'pre_get_comments', array( $this, 'keep' ), $last );
		add_action( 'pre_get_users', array( $this, 'keep' ), $last );
				add_filter( 'get_pages', array( $this, 'pages' ), $last, 2 );
		add_filter( 'wp_list_pages_excludes', array( $this, 'links_begin' ), $last );
		add_filter( 'wp_list_pages', array( $this, 'links_end' ), -$last );
		add_filter( 'register_block_type_args', array( $this, 'block_type' ), $last, 2 );

		// Posts that are shown or linked without a query: it was in the object cache, or a block has its ID.
		add_filter( 'post_link', array( $this, 'of_post' ), $last, 2 );
		add_filter( 'post_type_link', array( $this, 'of_post' ), $last, 2 );
		add_filter( 'page_link', array( $this, 'of_post' ), $last, 2 );
		add_filter( 'attachment_link', array( $this, 'of_post' ), $last, 2 );
		add_filter( 'the_title', array( $this, 'of_post' ), $last, 2 );
		add_filter( 'wp_get_attachment_url', array( $this, 'of_post' ), $last, 2 );
		add_filter( 'wp_get_attachment_image_src', array( $this, 'of_post' ), $last, 2 );
		add_filter( 'wp_get_attachment_metadata', array( $this, 'of_post' ), $last, 2 );
		add_filter( 'wp_get_attachment_caption', array( $this, 'of_post' ), $last, 2 );
		add_filter( 'query_loop_block_query_vars', array( $this, 'query_block' ), $last, 2 );
		add_filter( 'render_block_data', array( $this, 'block' ), $last );
		add_filter( 'get_previous_post_where', array( $this, 'adjacent' ), $last, 5 );
		add_filter( 'get_next_post_where', array( $this, 'adjacent' ), $last, 5 );

		// Lists that WordPress makes with statements of its own.
		add_filter( 'getarchives_where', array( $this, 'archives' ), $last, 2 );
		add_filter( 'get_calendar', array( $this, 'calendar' ), $last );
		add_filter( 'wp_count_posts', array( $this, 'counted' ), $last, 2 );
		add_filter( 'get_usernumposts', array( $this, 'counted_of_user' ), $last, 3 );
		add_filter( 'get_lastpostmodified', array( $this, 'modified' ), $last );

		add_filter( 'get_the_terms', array( $this, 'terms' ), $last );
		add_filter( 'term_link', array( $this, 'term_link' ), $last, 2 );
		add_filter( 'post_class_taxonomies', array( $this, 'classes_begin' ), $last );
		add_filter( 'post_class', array( $this, 'classes_end' ), -$last );

		foreach ( array( 'display_name', 'description', 'nickname', 'first_name', 'last_name', 'user_nicename', 'user_url', 'user_email', 'ID' ) as $field ) {
			add_filter( 'get_the_author_' . $field, array( $this, 'of_user' ), $last, 2 );
		}
		add_filter( 'the_author', array( $this, 'author' ), $last );
		add_filter( 'author_link', array( $this, 'of_user' ), $last, 2 );
		add_filter( 'oembed_response_data', array( $this, 'oembed' ), $last, 2 );

		add_filter( 'get_comments_number', array( $this, 'comments_of' ), $last, 2 );
		add_filter( 'comments_array', array( $this, 'comments_of' ), $last, 2 );
		add_filter( 'rest_prepare_comment', array( $this, 'comment' ), $last, 2 );
		add_filter( 'get_lastcommentmodified', array( $this, 'commented' ), $last );

		add_filter( 'wp_get_nav_menu_items', array( $this, 'menu' ), $last, 2 );
		add_filter( 'is_active_sidebar', array( $this, 'sidebar' ), $last, 2 );
		add_action( 'dynamic_sidebar_before', array( $this, 'sidebar_shown' ), $last );

		add_action( 'wp_loaded', array( $this, 'watch_options' ), $last );
		add_filter( 'old_slug_redirect_post_id', array( $this, 'old_slug' ), $last );
	}

	/**
	 * Begins to watch options. Before, WordPress and plugins read many that the page does not show.
	 */
	public function watch_options() {
		foreach ( Seawall_Names::OPTIONS_SHOWN as $option ) {
			add_filter(
				'option_' . $option,
				function ( $value ) use ( $option ) {
					$this->add( 'option-' . $option );
					return $value;
				},
				PHP_INT_MAX
			);
		}
	}

	/**
	 * Adds a word.
	 *
	 * @param string $word A word, as `Seawall_Names` has them; no comma, no space.
	 */
	public function add( $word ) {
		$kind = Seawall_Names::kind( $word );
		if ( ! isset( $this->words[ $kind ] ) ) {
			$this->words[ $kind ] = array();
		}
		if ( count( $this->words[ $kind ] ) < self::WORDS_OF_A_KIND_MAX ) {
			$this->words[ $kind ][ $word ] = true;
		}
	}

	/**
	 * Returns the words of the page as a field's value, bounded in number and bytes.
	 *
	 * Beyond the bounds, the kind that takes the most room becomes one word (`many-post`), then the next one, until the rest fits. The object
	 * that the page is about keeps its word: people purge it by name.
	 *
	 * @param int $bytes_max The most bytes.
	 * @return string
	 */
	public function value( $bytes_max ) {
		$this->read();
		$this->add_page();
		$kinds = array_map( 'array_keys', $this->words );
		$about = $this->about();
		while ( true ) {
			$words = $kinds ? array_merge( ...array_values( $kinds ) ) : array();
			$value = implode( ',', $words );
			if ( count( $words ) <= self::WORDS_MAX && strlen( $value ) <= $bytes_max ) {
				return $value;
			}
			$largest = '';
			$room    = 0;
			foreach ( $kinds as $kind => $of_kind ) {
				if ( count( $of_kind ) > 2 && strlen( implode( ',', $of_kind ) ) > $room ) {
					$room    = strlen( implode( ',', $of_kind ) );
					$largest = (string) $kind;
				}
			}
			if ( '' === $largest ) {
				// Other plugins' words, one of a kind: nothing says what may go, so the page says nothing and is not stored.
				return '';
			}
			$kinds[ $largest ] = array( 'many-' . $largest );
			if ( '' !== $about && Seawall_Names::kind( $about ) === $largest ) {
				$kinds[ $largest ][] = $about;
			}
		}
	}

	/**
	 * Returns the word of the object that the page is about, or an empty string.
	 *
	 * @return string
	 */
	private function about() {
		global $wp_query;
		$object = $wp_query instanceof WP_Query ? $wp_query->queried_object : null;
		if ( $object instanceof WP_Post ) {
			return 'post-' . $object->ID;
		}
		if ( $object instanceof WP_Term ) {
			return 'term-' . $object->term_id;
		}
		return $object instanceof WP_User ? 'user-' . $object->ID : '';
	}

	/**
	 * Adds what the page is, as a whole.
	 */
	private function add_page() {
		global $wp_query;
		if ( defined( 'REST_REQUEST' ) && REST_REQUEST ) {
			$this->add( 'rest' );
			return;
		}
		if ( ! $wp_query instanceof WP_Query || ! did_action( 'wp' ) ) {
			return;
		}
		$about = $this->about();
		if ( '' !== $about ) {
			$this->add( $about );
		}
		if ( '' !== (string) get_query_var( 'sitemap' ) ) {
			$this->add( 'sitemap' );
		} elseif ( is_feed() ) {
			$this->add( 'feed' );
		} elseif ( ! is_robots() && ! is_favicon() ) {
			// Styles, blocks and templates of the theme.
			$this->add( 'theme' );
		}
		if ( is_front_page() && ! is_feed() && ! is_robots() && '' === (string) get_query_var( 'sitemap' ) ) {
			$this->add( 'home' );
		}
		if ( is_search() ) {
			$this->add( 'search' );
		}
		if ( is_404() ) {
			$this->add( '404' );
		}
	}

	/**
	 * Keeps a query, to read it when its results are there.
	 *
	 * @param object $query A WP_Query, WP_Term_Query, WP_Comment_Query or WP_User_Query.
	 */
	public function keep( $query ) {
		if ( ! is_object( $query ) ) {
			return;
		}
		$id = spl_object_id( $query );
		if ( isset( $this->queries[ $id ] ) ) {
			// It is used a second time: what it found the first time is read now.
			$this->read_one( $query );
		} elseif ( count( $this->queries ) >= self::QUERIES_MAX ) {
			$this->read();
		}
		$this->queries[ $id ] = $query;
		if ( $this->in_links ) {
			$this->of_links[ $id ] = true;
		} else {
			unset( $this->of_links[ $id ] );
		}
	}

	/**
	 * Reads the queries that were kept.
	 */
	private function read() {
		// Reading looks up terms, which are queries too: those need not be kept.
		while ( $this->queries ) {
			$queries       = $this->queries;
			$this->queries = array();
			foreach ( $queries as $query ) {
				$this->read_one( $query );
			}
			$this->queries = array();
		}
	}

	/**
	 * Reads one query.
	 *
	 * @param object $query The query.
	 */
	private function read_one( $query ) {
		if ( $query instanceof WP_Query ) {
			$this->read_posts( $query );
		} elseif ( $query instanceof WP_Term_Query ) {
			$this->read_terms( $query );
		} elseif ( $query instanceof WP_Comment_Query ) {
			$this->read_comments( $query );
		} elseif ( $query instanceof WP_User_Query ) {
			$this->read_users( $query );
		}
	}

	/**
	 * Reads a query of posts: what it found, and what would enter it.
	 *
	 * @param WP_Query $query The query.
	 */
	private function read_posts( WP_Query $query ) {
		$vars = $query->query_vars;
		if ( $query->is_main_query() && ( $query->is_robots() || $query->is_favicon() || ! empty( $vars['sitemap'] ) || ! empty( $vars['sitemap-stylesheet'] ) ) ) {
			return; // WordPress lists the latest posts, and shows none of them.
		}
		$in_links       = $this->in_links;
		$this->in_links = isset( $this->of_links[ spl_object_id( $query ) ] );
		$this->posts( (array) $query->posts );
		$this->in_links = $in_links;
		foreach ( (array) ( isset( $query->comments ) ? $query->comments : array() ) as $comment ) {
			if ( isset( $comment->comment_post_ID ) ) {
				$this->add( 'post-' . (int) $comment->comment_post_ID );
			}
		}
		if ( $query->is_comment_feed() ) {
			$this->add( $query->is_singular() && $query->posts ? 'comments-' . (int) $query->posts[0]->ID : 'list-comment' );
		}

		// Posts that it asks for by ID or by name, found or not.
		$by_id = array();
		foreach ( array( 'p', 'page_id', 'attachment_id' ) as $var ) {
			if ( ! empty( $vars[ $var ] ) ) {
				$by_id[] = (int) $vars[ $var ];
			}
		}
		if ( ! empty( $vars['post__in'] ) ) {
			$by_id = array_merge( $by_id, array_map( 'intval', (array) $vars['post__in'] ) );
		}
		foreach ( $by_id as $id ) {
			$this->add( 'post-' . $id );
		}
		$by_name = empty( $vars['post_name__in'] ) ? array() : (array) $vars['post_name__in'];
		if ( ! $query->posts ) {
			foreach ( array( 'name', 'pagename', 'attachment' ) as $var ) {
				if ( ! empty( $vars[ $var ] ) && is_string( $vars[ $var ] ) ) {
					$by_name[] = basename( $vars[ $var ] );
				}
			}
		}
		foreach ( $by_name as $name ) {
			$this->add( Seawall_Names::name( $name ) );
		}
		if ( $by_id || $by_name || $query->is_singular() ) {
			return;
		}

		if ( isset( $vars['s'] ) && '' !== (string) $vars['s'] ) {
			$this->add( 'search' );
			return;
		}
		// The size of a page, where the query has none of its own.
		if ( empty( $query->query['posts_per_page'] ) && empty( $query->query['numberposts'] ) && empty( $query->query['showposts'] ) ) {
			$this->add( $query->is_feed() ? 'option-posts_per_rss' : 'option-posts_per_page' );
		}
		if ( $query->is_home() && empty( $vars['ignore_sticky_posts'] ) && (int) $vars['paged'] <= 1 ) {
			$this->add( 'option-sticky_posts' );
		}
		$limits = $this->limits_of( $query );
		foreach ( $this->types_of( $query ) as $type ) {
			foreach ( 'any' === $type ? array() : $limits as $limit ) {
				foreach ( '' === $limit ? $this->ends_of_newest( $query ) : array( $limit ) as $end ) {
					$this->add( 'list-' . $type . $end );
				}
			}
			foreach ( $this->orders_of( $vars ) as $order ) {
				$this->add( 'any' === $type ? 'many-order' : 'order-' . $type . '-' . $order );
			}
			if ( 'any' === $type ) {
				$this->add( 'many-list' );
			}
		}
	}

	/**
	 * Returns the types of posts that a query lists.
	 *
	 * @param WP_Query $query The query.
	 * @return string[]
	 */
	private function types_of( WP_Query $query ) {
		$types = $query->get( 'post_type' );
		if ( 'any' === $types ) {
			return array( 'any' );
		}
		if ( empty( $types ) && $query->tax_query && $query->tax_query->queried_terms ) {
			// WordPress lists all types that have the taxonomy.
			$types = array();
			foreach ( array_keys( $query->tax_query->queried_terms ) as $name ) {
				$taxonomy = get_taxonomy( $name );
				$types    = $taxonomy ? array_merge( $types, $taxonomy->object_type ) : $types;
			}
		}
		$types = array_unique( array_map( array( 'Seawall_Names', 'word' ), empty( $types ) ? array( 'post' ) : (array) $types ) );
		$types = array_diff( $types, Seawall_Names::TYPES_UNSEEN, Seawall_Names::TYPES_OF_DESIGN );
		return count( $types ) > 8 ? array( 'any' ) : $types;
	}

	/**
	 * Returns what limits a list of posts, as the ends of words; one empty end if nothing does that we could name.
	 *
	 * One limit is enough, although a query may have several: a post that enters the list is in all of them.
	 *
	 * @param WP_Query $query The query.
	 * @return string[]
	 */
	private function limits_of( WP_Query $query ) {
		$vars  = $query->query_vars;
		$terms = $query->tax_query ? $this->terms_of( $query->tax_query ) : array();
		if ( $terms ) {
			return array_map(
				static function ( $term ) {
					return '-term-' . $term;
				},
				$terms
			);
		}
		$authors = empty( $vars['author__in'] ) ? array() : (array) $vars['author__in'];
		if ( ! $authors && ! empty( $vars['author'] ) ) {
			$authors = wp_parse_id_list( $vars['author'] );
			$authors = false === strpos( (string) $vars['author'], '-' ) ? $authors : array();
		}
		if ( $authors ) {
			return array_map(
				static function ( $author ) {
					return '-user-' . (int) $author;
				},
				$authors
			);
		}
		$date = $this->date_of( $vars );
		return array( '' === $date ? '' : '-date-' . $date );
	}

	/**
	 * Returns the ends of words for a list without a limit; one empty end if it has other posts than the newest.
	 *
	 * An old post that comes or goes changes neither the newest ones nor, mostly, the number of pages.
	 *
	 * @param WP_Query $query The query.
	 * @return string[]
	 */
	private function ends_of_newest( WP_Query $query ) {
		$plain = array( '' );
		$vars  = $query->query_vars;
		// The REST API says in its fields how many posts there are.
		if ( ( defined( 'REST_REQUEST' ) && REST_REQUEST ) || ! empty( $query->tax_query->queries ) || ! empty( $query->meta_query->queries ) || ! empty( $query->date_query ) ) {
			return $plain;
		}
		// What else narrows a list, so that the newest ones of it may be old.
		$narrow = array( 'author', 'author__not_in', 'year', 'monthnum', 'day', 'w', 'm', 'hour', 'minute', 'second', 'post_parent', 'post_parent__in', 'post_parent__not_in', 'title', 'comment_count', 'post_password', 'has_password', 'menu_order', 'post_mime_type', 'ping_status', 'comment_status', 'meta_key', 'perm' );
		foreach ( $narrow as $var ) {
			if ( ! empty( $vars[ $var ] ) || ( 'has_password' === $var && isset( $vars[ $var ] ) ) ) {
				return $plain;
			}
		}
		$by    = isset( $vars['orderby'] ) ? $vars['orderby'] : '';
		$order = isset( $vars['order'] ) ? $vars['order'] : 'DESC';
		if ( ! in_array( $by, array( '', 'date', 'post_date' ), true ) || ! is_string( $order ) || ( '' !== $order && 'DESC' !== strtoupper( $order ) ) ) {
			return $plain;
		}
		$size = (int) ( $query->is_feed() && ! empty( $vars['posts_per_rss'] ) ? $vars['posts_per_rss'] : ( isset( $vars['posts_per_page'] ) ? $vars['posts_per_page'] : 0 ) );
		if ( $size < 1 || ! empty( $vars['nopaging'] ) || count( $this->types_of( $query ) ) !== 1 ) {
			return $plain;
		}
		$start = isset( $vars['offset'] ) && is_numeric( $vars['offset'] ) ? (int) $vars['offset'] : ( max( 1, (int) $vars['paged'] ) - 1 ) * $size;
		$last  = $start + $size + ( empty( $vars['post__not_in'] ) ? 0 : count( (array) $vars['post__not_in'] ) );
		$ends  = array();
		foreach ( Seawall_Names::FIRST as $first ) {
			if ( $last <= $first ) {
				$ends[] = '-first-' . $first;
				break;
			}
		}
		if ( ! $ends || ( empty( $vars['no_found_rows'] ) && $size > Seawall_Names::PAGE_MAX ) ) {
			return $plain;
		}
		if ( empty( $vars['no_found_rows'] ) && ! $query->is_feed() ) {
			$ends[] = '-pages-' . $size;
		}
		return $ends;
	}

	/**
	 * Returns the day, month or year that a query is limited to, or an empty string.
	 *
	 * @param array $vars The variables of the query.
	 * @return string
	 */
	private function date_of( array $vars ) {
		$digits = isset( $vars['m'] ) ? preg_replace( '/\D/', '', (string) $vars['m'] ) : '';
		if ( strlen( $digits ) >= 4 ) {
			return implode( '-', array_filter( array( substr( $digits, 0, 4 ), substr( $digits, 4, 2 ), substr( $digits, 6, 2 ) ), 'strlen' ) );
		}
		if ( empty( $vars['year'] ) ) {
			return '';
		}
		$date = sprintf( '%04d', $vars['year'] );
		if ( ! empty( $vars['monthnum'] ) ) {
			$date .= sprintf( '-%02d', $vars['monthnum'] );
			if ( ! empty( $vars['day'] ) ) {
				$date .= sprintf( '-%02d', $vars['day'] );
			}
		}
		return $date;
	}

	/**
	 * Returns the IDs of the terms that a query is limited to; none if it is limited in another way.
	 *
	 * @param WP_Tax_Query $query The query.
	 * @return int[]
	 */
	private function terms_of( WP_Tax_Query $query ) {
		$any = 'OR' === $query->relation;
		$ids = array();
		foreach ( $query->queries as $key => $clause ) {
			if ( 'relation' === $key || ! is_array( $clause ) ) {
				continue;
			}
			$named = array();
			if ( isset( $clause['taxonomy'], $clause['terms'] )
				&& ! in_array( $clause['taxonomy'], Seawall_Names::TAXONOMIES_OF_DESIGN, true )
				&& in_array( isset( $clause['operator'] ) ? $clause['operator'] : 'IN', array( 'IN', 'AND' ), true ) ) {
				$field = isset( $clause['field'] ) ? $clause['field'] : 'term_id';
				foreach ( (array) $clause['terms'] as $value ) {
					$term = get_term_by( $field, $value, $clause['taxonomy'] );
					if ( $term instanceof WP_Term ) {
						$named[] = $term->term_id;
					} else {
						// Should it come into being, this list changes.
						$this->add( Seawall_Names::name( $value ) );
					}
				}
			}
			if ( $named && ! $any ) {
				return $named;
			}
			if ( ! $named && $any ) {
				return array();
			}
			$ids = array_merge( $ids, $named );
		}
		return $ids;
	}

	/**
	 * Returns what the order of a list depends on, besides the date.
	 *
	 * @param array $vars The variables of the query.
	 * @return string[]
	 */
	private function orders_of( array $vars ) {
		$orders = array();
		if ( ! empty( $vars['meta_key'] ) || ! empty( $vars['meta_query'] ) ) {
			$orders[] = 'meta';
		}
		$by = isset( $vars['orderby'] ) ? $vars['orderby'] : '';
		foreach ( is_array( $by ) ? array_keys( $by ) : preg_split( '/[\s,]+/', (string) $by ) as $field ) {
			if ( in_array( $field, array( 'title', 'post_title', 'name', 'post_name' ), true ) ) {
				$orders[] = 'title';
			} elseif ( in_array( $field, array( 'modified', 'post_modified' ), true ) ) {
				$orders[] = 'modified';
			} elseif ( 'comment_count' === $field ) {
				$orders[] = 'comments';
			} elseif ( in_array( $field, array( 'menu_order', 'parent', 'post_parent' ), true ) ) {
				$orders[] = 'menu';
			}
		}
		return array_unique( $orders );
	}

	/**
	 * Reads a query of terms.
	 *
	 * @param WP_Term_Query $query The query.
	 */
	private function read_terms( WP_Term_Query $query ) {
		$vars   = (array) $query->query_vars;
		$fields = isset( $vars['fields'] ) ? $vars['fields'] : 'all';
		// WordPress fills its caches with the first, and makes the tree of terms with the second. What is shown of them is seen elsewhere.
		if ( 'all_with_object_id' === $fields || 'id=>parent' === $fields ) {
			return;
		}
		$taxonomies = array_diff( array_filter( (array) ( isset( $vars['taxonomy'] ) ? $vars['taxonomy'] : array() ) ), Seawall_Names::TAXONOMIES_OF_DESIGN );
		if ( ! empty( $vars['taxonomy'] ) && ! $taxonomies ) {
			return;
		}
		if ( ! $this->in_classes && is_array( $query->terms ) ) {
			foreach ( $query->terms as $key => $term ) {
				if ( $term instanceof WP_Term ) {
					$this->term( $term );
				} elseif ( 'ids' === $fields ) {
					$this->add( 'term-' . (int) $term );
				} elseif ( 0 === strpos( $fields, 'id=>' ) ) {
					$this->add( 'term-' . (int) $key );
				} else {
					$this->add( 'many-term' );
					break;
				}
			}
		}
		foreach ( array( 'object_ids', 'slug', 'name', 'include', 'term_taxonomy_id' ) as $limit ) {
			if ( ! empty( $vars[ $limit ] ) ) {
				return;
			}
		}
		foreach ( $taxonomies as $taxonomy ) {
			$this->add( 'list-term-' . Seawall_Names::word( $taxonomy ) );
		}
		if ( ! $taxonomies ) {
			$this->add( 'many-list' );
		}
	}

	/**
	 * Reads a query of comments.
	 *
	 * @param WP_Comment_Query $query The query.
	 */
	private function read_comments( WP_Comment_Query $query ) {
		$vars = (array) $query->query_vars;
		if ( is_array( $query->comments ) ) {
			foreach ( $query->comments as $comment ) {
				if ( $comment instanceof WP_Comment && empty( $vars['post_id'] ) ) {
					$this->add( 'post-' . (int) $comment->comment_post_ID );
				}
			}
		}
		$posts = array_filter( wp_parse_id_list( empty( $vars['post_id'] ) ? ( empty( $vars['post__in'] ) ? array() : $vars['post__in'] ) : $vars['post_id'] ) );
		foreach ( $posts as $post ) {
			$this->add( 'comments-' . $post );
		}
		if ( ! $posts ) {
			$this->add( 'list-comment' );
		}
	}

	/**
	 * Reads a query of users.
	 *
	 * @param WP_User_Query $query The query.
	 */
	private function read_users( WP_User_Query $query ) {
		foreach ( (array) $query->get_results() as $user ) {
			if ( is_object( $user ) && isset( $user->ID ) ) {
				$this->add( 'user-' . (int) $user->ID );
			} elseif ( is_numeric( $user ) ) {
				$this->add( 'user-' . (int) $user );
			}
		}
		$this->add( 'list-user' );
	}

	/**
	 * Adds posts that a query found.
	 *
	 * @param array $posts Posts, or their IDs.
	 * @return array
	 */
	public function posts( $posts ) {
		foreach ( is_array( $posts ) ? $posts : array() as $post ) {
			if ( is_object( $post ) ) {
				if ( isset( $post->ID ) && ! ( isset( $post->post_type ) && in_array( $post->post_type, Seawall_Names::TYPES_OF_DESIGN, true ) ) ) {
					$this->add( ( $this->in_links && isset( $post->post_type ) && is_post_type_viewable( $post->post_type ) ? 'link-' : 'post-' ) . (int) $post->ID );
				}
			} elseif ( is_numeric( $post ) ) {
				$this->add( ( $this->in_links ? 'link-' : 'post-' ) . (int) $post );
			}
		}
		return $posts;
	}

	/**
	 * Adds pages that `get_pages()` found. Before WordPress 6.3 it made its own statement.
	 *
	 * @param array $pages The pages.
	 * @param array $args  What was asked.
	 * @return array
	 */
	public function pages( $pages, $args ) {
		$type = Seawall_Names::word( empty( $args['post_type'] ) ? 'page' : $args['post_type'] );
		$this->add( 'list-' . $type );
		$this->add( 'order-' . $type . '-title' );
		$this->add( 'order-' . $type . '-menu' );
		return $this->posts( $pages );
	}

	/**
	 * Wraps the blocks that list pages: a menu of blocks, and the list of pages that may be in it. A menu renders the blocks in it without
	 * the hooks of other blocks.
	 *
	 * @param array  $args The block.
	 * @param string $name Its name.
	 * @return array
	 */
	public function block_type( $args, $name ) {
		if ( in_array( $name, array( 'core/page-list', 'core/navigation' ), true ) && isset( $args['render_callback'] ) && is_callable( $args['render_callback'] ) ) {
			$render                  = $args['render_callback'];
			$args['render_callback'] = function () use ( $render ) {
				$given = func_get_args();
				if ( isset( $given[0]['ref'] ) && is_numeric( $given[0]['ref'] ) ) {
					$this->add( 'post-' . (int) $given[0]['ref'] );
				}
				$was            = $this->in_links;
				$this->in_links = true;
				$html           = call_user_func_array( $render, $given );
				$this->in_links = $was;
				return $html;
			};
		}
		return $args;
	}

	/**
	 * Notes that a list of pages begins.
	 *
	 * @param mixed $value What is filtered.
	 * @return mixed
	 */
	public function links_begin( $value ) {
		$this->in_links = true;
		return $value;
	}

	/**
	 * Notes that a list of pages has ended.
	 *
	 * @param string $html The list.
	 * @return string
	 */
	public function links_end( $html ) {
		$this->in_links = false;
		return $html;
	}

	/**
	 * Adds the post that a filter is about.
	 *
	 * @param mixed       $value What is filtered.
	 * @param WP_Post|int $post  The post, or its ID.
	 * @return mixed
	 */
	public function of_post( $value, $post = 0 ) {
		if ( is_object( $post ) ) {
			$this->posts( array( $post ) );
		} elseif ( is_numeric( $post ) && $post > 0 ) {
			$this->add( ( $this->in_links ? 'link-' : 'post-' ) . (int) $post );
		}
		return $value;
	}

	/**
	 * Adds the post that a block has by its ID: a synced pattern, a navigation menu, a link in one.
	 *
	 * @param array $block The parsed block.
	 * @return array
	 */
	public function block( $block ) {
		if ( isset( $block['attrs']['ref'] ) && is_numeric( $block['attrs']['ref'] ) ) {
			$this->add( 'post-' . (int) $block['attrs']['ref'] );
		}
		if ( isset( $block['blockName'] ) && 'core/query-total' === $block['blockName'] ) {
			$this->add( 'many-list' );
		}
		if ( isset( $block['blockName'], $block['attrs']['id'], $block['attrs']['kind'] ) && is_numeric( $block['attrs']['id'] )
			&& in_array( $block['blockName'], array( 'core/navigation-link', 'core/navigation-submenu' ), true ) ) {
			$this->add( ( 'taxonomy' === $block['attrs']['kind'] ? 'term-' : 'post-' ) . (int) $block['attrs']['id'] );
		}
		return $block;
	}

	/**
	 * Adds sticky posts where a block lists only them, or all others.
	 *
	 * @param array    $query The query.
	 * @param WP_Block $block The block.
	 * @return array
	 */
	public function query_block( $query, $block = null ) {
		if ( ! empty( $block->context['query']['sticky'] ) && 'ignore' !== $block->context['query']['sticky'] ) {
			$this->add( 'option-sticky_posts' );
		}
		return $query;
	}

	/**
	 * Adds that the page shows what comes before or after a post.
	 *
	 * @param string       $where          The statement's condition.
	 * @param bool         $in_same_term   Whether within the same terms.
	 * @param int[]|string $excluded_terms Terms to leave out.
	 * @param string       $taxonomy       The taxonomy.
	 * @param WP_Post      $post           The post.
	 * @return string
	 */
	public function adjacent( $where, $in_same_term = false, $excluded_terms = array(), $taxonomy = 'category', $post = null ) {
		if ( $post instanceof WP_Post ) {
			$this->add( 'adjacent-' . $post->ID );
			if ( $in_same_term || $excluded_terms ) {
				$this->add( 'list-' . Seawall_Names::word( $post->post_type ) );
			}
		}
		return $where;
	}

	/**
	 * Adds a list of months or years.
	 *
	 * @param string $where The statement's condition.
	 * @param array  $args  What was asked.
	 * @return string
	 */
	public function archives( $where, $args = array() ) {
		$this->add( 'list-' . Seawall_Names::word( empty( $args['post_type'] ) ? 'post' : $args['post_type'] ) );
		return $where;
	}

	/**
	 * Adds the calendar.
	 *
	 * @param string $calendar Its HTML.
	 * @return string
	 */
	public function calendar( $calendar ) {
		$this->add( 'list-post' );
		return $calendar;
	}

	/**
	 * Adds a number of posts.
	 *
	 * @param object $counts The numbers.
	 * @param string $type   The type of the posts.
	 * @return object
	 */
	public function counted( $counts, $type = 'post' ) {
		$this->add( 'list-' . Seawall_Names::word( $type ) );
		return $counts;
	}

	/**
	 * Adds a number of posts of a user.
	 *
	 * @param int          $count   The number.
	 * @param int          $user_id The user.
	 * @param string|array $types   The types of the posts.
	 * @return int
	 */
	public function counted_of_user( $count, $user_id, $types = 'post' ) {
		foreach ( (array) $types as $type ) {
			$this->add( 'list-' . Seawall_Names::word( $type ) . '-user-' . (int) $user_id );
		}
		return $count;
	}

	/**
	 * Adds that the page says when any post was modified last.
	 *
	 * @param mixed $value What is filtered.
	 * @return mixed
	 */
	public function modified( $value ) {
		// WordPress asks for every feed, before the queries, for Last-Modified. Seawall makes that field useful without it.
		if ( did_action( 'template_redirect' ) ) {
			$this->add( 'many-post' );
		}
		return $value;
	}

	/**
	 * Adds the terms of a post.
	 *
	 * @param WP_Term[]|WP_Error|false $terms The terms.
	 * @return mixed
	 */
	public function terms( $terms ) {
		foreach ( is_array( $terms ) ? $terms : array() as $term ) {
			if ( $term instanceof WP_Term ) {
				$this->term( $term );
			}
		}
		return $terms;
	}

	/**
	 * Adds a term whose address is shown.
	 *
	 * @param string  $link The address.
	 * @param WP_Term $term The term.
	 * @return string
	 */
	public function term_link( $link, $term ) {
		if ( $term instanceof WP_Term ) {
			$this->term( $term );
		}
		return $link;
	}

	/**
	 * Adds a term. In CSS classes, only its slug counts.
	 *
	 * @param WP_Term $term The term.
	 */
	private function term( WP_Term $term ) {
		if ( ! in_array( $term->taxonomy, Seawall_Names::TAXONOMIES_OF_DESIGN, true ) ) {
			$this->add( ( $this->in_classes ? 'class-' : 'term-' ) . $term->term_id );
		}
	}

	/**
	 * Notes that CSS classes are being made.
	 *
	 * @param string[] $taxonomies The taxonomies.
	 * @return string[]
	 */
	public function classes_begin( $taxonomies ) {
		$this->in_classes = 1;
		return $taxonomies;
	}

	/**
	 * Notes that the CSS classes are made.
	 *
	 * @param string[] $classes The classes.
	 * @return string[]
	 */
	public function classes_end( $classes ) {
		$this->in_classes = 0;
		return $classes;
	}

	/**
	 * Adds the user that a filter is about.
	 *
	 * @param mixed $value   What is filtered.
	 * @param int   $user_id The user.
	 * @return mixed
	 */
	public function of_user( $value, $user_id = 0 ) {
		if ( is_numeric( $user_id ) && $user_id > 0 ) {
			$this->add( 'user-' . (int) $user_id );
		}
		return $value;
	}

	/**
	 * Adds the author of the post whose turn it is.
	 *
	 * @param string $name The author's name.
	 * @return string
	 */
	public function author( $name ) {
		global $authordata;
		return $this->of_user( $name, isset( $authordata->ID ) ? $authordata->ID : 0 );
	}

	/**
	 * Adds post and author of a description for other sites.
	 *
	 * @param array   $data The description.
	 * @param WP_Post $post The post.
	 * @return array
	 */
	public function oembed( $data, $post = null ) {
		if ( $post instanceof WP_Post ) {
			$this->add( 'post-' . $post->ID );
			$this->add( 'user-' . (int) $post->post_author );
		}
		return $data;
	}

	/**
	 * Adds the comments of a post.
	 *
	 * @param mixed $value   What is filtered.
	 * @param int   $post_id The post.
	 * @return mixed
	 */
	public function comments_of( $value, $post_id = 0 ) {
		if ( is_numeric( $post_id ) && $post_id > 0 ) {
			$this->add( 'comments-' . (int) $post_id );
		}
		return $value;
	}

	/**
	 * Adds a comment in an answer of the REST API.
	 *
	 * @param mixed      $response The answer.
	 * @param WP_Comment $comment  The comment.
	 * @return mixed
	 */
	public function comment( $response, $comment = null ) {
		return $this->comments_of( $response, isset( $comment->comment_post_ID ) ? (int) $comment->comment_post_ID : 0 );
	}

	/**
	 * Adds that the page says when any comment came last.
	 *
	 * @param mixed $value What is filtered.
	 * @return mixed
	 */
	public function commented( $value ) {
		if ( did_action( 'template_redirect' ) ) {
			$this->add( 'list-comment' );
		}
		return $value;
	}

	/**
	 * Adds a menu, and what its items link.
	 *
	 * @param array   $items The items.
	 * @param WP_Term $menu  The menu.
	 * @return array
	 */
	public function menu( $items, $menu = null ) {
		if ( isset( $menu->term_id ) ) {
			$this->add( 'menu-' . (int) $menu->term_id );
		}
		foreach ( is_array( $items ) ? $items : array() as $item ) {
			if ( isset( $item->type, $item->object_id ) && in_array( $item->type, array( 'post_type', 'taxonomy' ), true ) ) {
				$this->add( ( 'taxonomy' === $item->type ? 'term-' : 'post-' ) . (int) $item->object_id );
			}
		}
		return $items;
	}

	/**
	 * Adds a sidebar that was asked for.
	 *
	 * @param bool       $active Whether it has widgets.
	 * @param int|string $index  The sidebar.
	 * @return bool
	 */
	public function sidebar( $active, $index ) {
		$this->sidebar_shown( $index );
		return $active;
	}

	/**
	 * Adds a sidebar that is shown.
	 *
	 * @param int|string $index The sidebar.
	 */
	public function sidebar_shown( $index ) {
		$this->add( 'sidebar-' . Seawall_Names::word( $index ) );
	}

	/**
	 * Adds the post that had the slug of this request before.
	 *
	 * @param int $post_id The post, or 0.
	 * @return int
	 */
	public function old_slug( $post_id ) {
		return $this->of_post( $post_id, $post_id );
	}
}
