<?php
/**
 * The names that pages and changes have in common.
 *
 * @package Seawall
 */

defined( 'ABSPATH' ) || exit;

/**
 * Makes the words that stand in `Cache-Tag` and in purges.
 *
 * | word | a page has it | a change has it |
 * |---|---|---|
 * | `post-12` | shows or links post 12 (of any type) | post 12 changed |
 * | `link-12` | has post 12 in a menu of pages, by its title alone | its title, address or place changed |
 * | `list-post`, `list-post-term-3`, `-user-2`, `-date-2025-06` | lists posts, all or those of a term, author, time | the list got or lost a post |
 * | `list-post-first-10` | lists the first posts by date, these 10 at most | one of the first 10 came, went or moved |
 * | `list-post-pages-9` | lists posts on pages of 9 | the number of pages is another |
 * | `order-post-title`, `-modified`, `-comments`, `-meta`, `-menu` | lists posts in that order | what the order depends on changed |
 * | `adjacent-12` | shows what comes before or after post 12 | that changed |
 * | `name-about` | looked for a post or term with that slug | it came or went |
 * | `term-3`, `class-3` | shows term 3; has only its slug, in a CSS class | the term changed; its slug changed, or its name, which orders the classes |
 * | `list-term-category` | lists terms | a term came or went, or has more or fewer posts |
 * | `user-2`, `list-user` | shows an author; lists authors | the profile changed; an author came or went |
 * | `comments-12`, `list-comment` | shows the comments of post 12, or their number; lists the latest | a comment changed |
 * | `menu-5`, `sidebar-footer`, `theme`, `option-blogname` | has the menu, the widgets, the theme's design, reads the option | it changed |
 * | `search`, `404`, `feed`, `home`, `rest`, `sitemap` | is one | a post changed (`search`); the others are for people |
 * | `many-post`, `many-list`, ... | has too many words of the kind to list them | anything of the kind changed |
 */
final class Seawall_Names {

	/** The lengths of lists of the newest posts that have words of their own. A list has the next larger one. */
	const FIRST = array( 5, 10, 20, 50, 100 );

	/** The longest page of a list whose number of pages has a word. */
	const PAGE_MAX = 50;

	/** Types of posts that are never part of a page. */
	const TYPES_UNSEEN = array( 'revision', 'customize_changeset', 'oembed_cache', 'user_request', 'wp_font_family', 'wp_font_face', 'scheduled-action' );

	/** Types of posts with names of their own: a menu, or the theme. */
	const TYPES_OF_DESIGN = array( 'nav_menu_item', 'wp_global_styles', 'custom_css' );

	/** Taxonomies that sort parts of the design. They are not shown. */
	const TAXONOMIES_OF_DESIGN = array( 'nav_menu', 'wp_theme', 'wp_template_part_area', 'wp_pattern_category' );

	/** Options that a page depends on only if it read them. */
	const OPTIONS_SHOWN = array(
		'blogname',
		'blogdescription',
		'date_format',
		'time_format',
		'site_icon',
		'site_logo',
		'show_avatars',
		'avatar_default',
		'avatar_rating',
		'posts_per_rss',
		'rss_use_excerpt',
		'thread_comments',
		'thread_comments_depth',
		'page_comments',
		'comments_per_page',
		'default_comments_page',
		'comment_order',
		'comment_registration',
		'require_name_email',
		'show_comments_cookies_opt_in',
		'close_comments_for_old_posts',
		'close_comments_days_old',
		'wp_page_for_privacy_policy',
		'use_smilies',
	);

	/** Options that change any page, or the addresses of pages. */
	const OPTIONS_OF_ALL = array(
		'home',
		'siteurl',
		'permalink_structure',
		'category_base',
		'tag_base',
		'show_on_front',
		'page_on_front',
		'page_for_posts',
		'blog_public',
		'blog_charset',
		'WPLANG',
		'timezone_string',
		'gmt_offset',
		'start_of_week',
		'active_plugins',
		'active_sitewide_plugins',
		'upload_path',
		'upload_url_path',
		'use_balanceTags',
		'html_type',
		'default_post_format',
		'template',
		'stylesheet',
	);

	/** Options that change no page for readers, although a settings page has them. */
	const OPTIONS_UNSEEN = array(
		'admin_email',
		'new_admin_email',
		'adminhash',
		'users_can_register',
		'default_role',
		'default_category',
		'default_email_category',
		'default_link_category',
		'default_ping_status',
		'default_comment_status',
		'default_pingback_flag',
		'mailserver_url',
		'mailserver_port',
		'mailserver_login',
		'mailserver_pass',
		'ping_sites',
		'comments_notify',
		'moderation_notify',
		'comment_moderation',
		'comment_previously_approved',
		'comment_max_links',
		'moderation_keys',
		'disallowed_keys',
		'uploads_use_yearmonth_folders',
		'thumbnail_size_w',
		'thumbnail_size_h',
		'thumbnail_crop',
		'medium_size_w',
		'medium_size_h',
		'medium_large_size_w',
		'medium_large_size_h',
		'large_size_w',
		'large_size_h',
		'rewrite_rules',
		'cron',
		'recently_edited',
		'recently_activated',
		'uninstall_plugins',
		'auto_core_update_notified',
		'user_count',
		'db_upgraded',
		'fresh_site',
		'can_compress_scripts',
		'finished_updating_comment_type',
		'https_detection_errors',
		'auth_key',
		'auth_salt',
	);

	/**
	 * Returns the word for a slug. Slugs with other characters than a tag may have, or very long ones, become a hash.
	 *
	 * @param string $slug The slug.
	 * @return string
	 */
	public static function name( $slug ) {
		return 'name-' . self::word( strtolower( (string) $slug ) );
	}

	/**
	 * Returns a string that can be part of a tag.
	 *
	 * @param string $text Any string.
	 * @return string
	 */
	public static function word( $text ) {
		$text = (string) $text;
		return preg_match( '/^[A-Za-z0-9_.-]{1,64}$/', $text ) ? $text : substr( md5( $text ), 0, 12 );
	}

	/**
	 * Returns the kind of a word: what it begins with.
	 *
	 * @param string $word A word.
	 * @return string
	 */
	public static function kind( $word ) {
		$dash = strpos( $word, '-' );
		return false === $dash ? $word : substr( $word, 0, $dash );
	}

	/**
	 * Returns the IDs of a term and of the terms above it: their archives list its posts too.
	 *
	 * @param int    $term_id  The term.
	 * @param string $taxonomy Its taxonomy.
	 * @return int[]
	 */
	public static function term_and_ancestors( $term_id, $taxonomy ) {
		$ids = array( (int) $term_id );
		if ( is_taxonomy_hierarchical( $taxonomy ) ) {
			$ids = array_merge( $ids, array_map( 'intval', get_ancestors( $term_id, $taxonomy, 'taxonomy' ) ) );
		}
		return $ids;
	}
}
