<?php
/**
 * What administrators see: a menu in the admin bar, and a settings page.
 *
 * @package Seawall
 */

defined( 'ABSPATH' ) || exit;

/**
 * Shows what Seawall does, and lets people purge.
 */
final class Seawall_Admin {

	/** The settings page. */
	const PAGE = 'seawall';

	/** The actions of admin-post.php. */
	const PURGE = 'seawall_purge_now';
	const TEST  = 'seawall_test';

	/**
	 * What takes changes to Seawall.
	 *
	 * @var Seawall_Purger
	 */
	private $purger;

	/**
	 * Makes the pages.
	 *
	 * @param Seawall_Purger $purger What takes changes to Seawall.
	 */
	public function __construct( Seawall_Purger $purger ) {
		$this->purger = $purger;
	}

	/**
	 * Begins to watch.
	 */
	public function watch() {
		add_action( 'admin_bar_menu', array( $this, 'admin_bar' ), 90 );
		add_action( 'admin_menu', array( $this, 'menu' ) );
		add_action( 'admin_init', array( $this, 'settings' ) );
		add_action( 'admin_post_' . self::PURGE, array( $this, 'purge' ) );
		add_action( 'admin_post_' . self::TEST, array( $this, 'test' ) );
		add_action( 'admin_notices', array( $this, 'notice' ) );
		add_filter( 'plugin_action_links_' . plugin_basename( SEAWALL_PLUGIN_FILE ), array( $this, 'links' ) );
	}

	/**
	 * Returns whether the user may purge.
	 *
	 * @param string $what 'page' or 'all'.
	 * @return bool
	 */
	private function may_purge( $what ) {
		/**
		 * Filters what a user must be able to do to purge a page, or everything.
		 *
		 * @param string $capability The capability.
		 * @param string $what       'page' or 'all'.
		 */
		return current_user_can( apply_filters( 'seawall_capability', 'page' === $what ? 'edit_others_posts' : 'manage_options', $what ) );
	}

	/**
	 * Returns the address that purges.
	 *
	 * @param string $what 'page' or 'all'.
	 * @param string $path The page.
	 * @return string
	 */
	private function purge_url( $what, $path ) {
		return wp_nonce_url(
			add_query_arg(
				array(
					'action' => self::PURGE,
					'what'   => $what,
					'page'   => rawurlencode( $path ),
				),
				admin_url( 'admin-post.php' )
			),
			self::PURGE
		);
	}

	/**
	 * Adds the menu to the admin bar.
	 *
	 * @param WP_Admin_Bar $bar The bar.
	 */
	public function admin_bar( $bar ) {
		if ( ! $this->may_purge( 'page' ) && ! $this->may_purge( 'all' ) ) {
			return;
		}
		$bar->add_node(
			array(
				'id'    => 'seawall',
				'title' => esc_html__( 'Seawall', 'seawall' ),
				'href'  => $this->may_purge( 'all' ) ? admin_url( 'options-general.php?page=' . self::PAGE ) : false,
			)
		);
		$this->admin_bar_notice( $bar );
		$path = $this->path_shown();
		if ( '' !== $path && $this->may_purge( 'page' ) ) {
			$bar->add_node(
				array(
					'id'     => 'seawall-page',
					'parent' => 'seawall',
					'title'  => esc_html__( 'Purge this page', 'seawall' ),
					'href'   => $this->purge_url( 'page', $path ),
				)
			);
		}
		if ( $this->may_purge( 'all' ) ) {
			$bar->add_node(
				array(
					'id'     => 'seawall-all',
					'parent' => 'seawall',
					'title'  => esc_html__( 'Purge everything', 'seawall' ),
					'href'   => $this->purge_url( 'all', '' ),
				)
			);
		}
	}

	/**
	 * Shows the result of a purge once as an item of the menu, and beside its name, where there are no admin notices.
	 *
	 * @param WP_Admin_Bar $bar The bar.
	 */
	private function admin_bar_notice( $bar ) {
		$key    = 'seawall_notice_' . get_current_user_id();
		$notice = is_admin() ? false : get_transient( $key );
		if ( ! is_array( $notice ) ) {
			return;
		}
		delete_transient( $key );
		$bar->add_node(
			array(
				'id'    => 'seawall',
				'title' => $notice['ok'] ? esc_html__( 'Seawall: purged', 'seawall' ) : esc_html__( 'Seawall: not purged', 'seawall' ),
			)
		);
		$bar->add_node(
			array(
				'id'     => 'seawall-result',
				'parent' => 'seawall',
				'title'  => esc_html( $notice['text'] ),
			)
		);
	}

	/**
	 * Returns the path of the page that the user looks at or edits, or an empty string.
	 *
	 * @return string
	 */
	private function path_shown() {
		if ( ! is_admin() ) {
			$uri = isset( $_SERVER['REQUEST_URI'] ) ? esc_url_raw( wp_unslash( $_SERVER['REQUEST_URI'] ) ) : '';
			return (string) strtok( $uri, '?' );
		}
		$post = get_post();
		if ( $post instanceof WP_Post && 'publish' === $post->post_status && is_post_type_viewable( $post->post_type ) ) {
			return (string) wp_parse_url( (string) get_permalink( $post ), PHP_URL_PATH );
		}
		return '';
	}

	/**
	 * Purges a page or everything, and goes back.
	 */
	public function purge() {
		check_admin_referer( self::PURGE );
		$what = isset( $_GET['what'] ) && 'all' === $_GET['what'] ? 'all' : 'page';
		if ( ! $this->may_purge( $what ) ) {
			wp_die( esc_html__( 'You may not purge.', 'seawall' ), '', array( 'response' => 403 ) );
		}
		$path = isset( $_GET['page'] ) ? esc_url_raw( wp_unslash( $_GET['page'] ) ) : '';
		$this->run( 'all' === $what ? array( '*' ) : array( 'url=' . str_replace( ',', '%2C', $path ) ), 'admin bar' );
		wp_safe_redirect( wp_get_referer() ? wp_get_referer() : admin_url() );
		exit;
	}

	/**
	 * Purges now, so that the result can be shown; in the response as well, where no address for purges is known.
	 *
	 * @param string[] $words  What.
	 * @param string   $reason Why.
	 */
	private function run( array $words, $reason ) {
		if ( '' === Seawall_Settings::url() ) {
			Seawall_Plugin::changes()->add( $words, $reason );
			$result = array(
				'ok'   => Seawall_Settings::through_seawall(),
				'text' => __( 'The purge is in this response: Seawall obeys it if the response goes through Seawall.', 'seawall' ),
			);
		} else {
			$result = $this->purger->send( $words, $reason );
		}
		set_transient( 'seawall_notice_' . get_current_user_id(), $result, MINUTE_IN_SECONDS );
	}

	/**
	 * Sends a purge that purges nothing, and goes back to the settings page.
	 */
	public function test() {
		check_admin_referer( self::TEST );
		if ( ! current_user_can( 'manage_options' ) ) {
			wp_die( esc_html__( 'You may not change settings.', 'seawall' ), '', array( 'response' => 403 ) );
		}
		set_transient( 'seawall_notice_' . get_current_user_id(), $this->purger->test( 'test' ), MINUTE_IN_SECONDS );
		wp_safe_redirect( admin_url( 'options-general.php?page=' . self::PAGE ) );
		exit;
	}

	/**
	 * Shows the result of a purge once.
	 */
	public function notice() {
		$key    = 'seawall_notice_' . get_current_user_id();
		$notice = get_transient( $key );
		if ( ! is_array( $notice ) ) {
			return;
		}
		delete_transient( $key );
		printf(
			'<div class="notice notice-%s is-dismissible"><p>%s %s</p></div>',
			$notice['ok'] ? 'success' : 'error',
			esc_html__( 'Seawall:', 'seawall' ),
			esc_html( $notice['text'] )
		);
	}

	/**
	 * Adds the settings page.
	 */
	public function menu() {
		add_options_page( __( 'Seawall', 'seawall' ), __( 'Seawall', 'seawall' ), 'manage_options', self::PAGE, array( $this, 'page' ) );
	}

	/**
	 * Adds a link to the settings page to the list of plugins.
	 *
	 * @param string[] $links The links.
	 * @return string[]
	 */
	public function links( $links ) {
		array_unshift( $links, '<a href="' . esc_url( admin_url( 'options-general.php?page=' . self::PAGE ) ) . '">' . esc_html__( 'Settings', 'seawall' ) . '</a>' );
		return $links;
	}

	/**
	 * Registers the settings.
	 */
	public function settings() {
		register_setting(
			self::PAGE,
			Seawall_Settings::OPTION,
			array(
				'type'              => 'array',
				'sanitize_callback' => array( $this, 'clean' ),
			)
		);
	}

	/**
	 * Cleans what the form sends. An empty field for the secret keeps the one that is there: the form does not show it.
	 *
	 * @param mixed $input What the form sends.
	 * @return array
	 */
	public function clean( $input ) {
		$typed  = isset( $input['url'] ) && is_string( $input['url'] ) ? sanitize_text_field( $input['url'] ) : '';
		$url    = preg_match( '~^https?://[^/]~i', $typed ) ? esc_url_raw( $typed, array( 'http', 'https' ) ) : '';
		$secret = isset( $input['secret'] ) && is_string( $input['secret'] ) ? trim( $input['secret'] ) : '';
		$page   = Seawall_Settings::page();
		if ( '' === $secret && '' !== $url && empty( $input['forget'] ) ) {
			$secret = $page['secret'];
		}
		if ( '' === $url && '' !== $typed ) {
			add_settings_error( Seawall_Settings::OPTION, 'seawall-url', __( 'Write the address with http://, such as http://127.0.0.1/.seawall/wordpress.', 'seawall' ) );
			// What was typed stays in the form, and is used for nothing.
			return array(
				'url'    => '',
				'typed'  => $typed,
				'secret' => '' === $secret ? $page['secret'] : $secret,
			);
		}
		return array(
			'url'    => $url,
			'secret' => $secret,
		);
	}

	/**
	 * Says in words where the address and the secret come from.
	 *
	 * @return string
	 */
	public static function source_text() {
		switch ( Seawall_Settings::source() ) {
			case 'constant':
				return __( 'from the constants SEAWALL_PURGE_URL and SEAWALL_SECRET in wp-config.php', 'seawall' );
			case 'parameter':
				return __( 'from Seawall, which runs this PHP: there is nothing to set', 'seawall' );
			case 'environment':
				return __( 'from the environment variables SEAWALL_PURGE_URL and SEAWALL_SECRET', 'seawall' );
			case 'page':
				return __( 'from this page', 'seawall' );
			case 'remembered':
				return __( 'from Seawall, which ran this PHP before; this request came another way', 'seawall' );
			default:
				return __( 'not known: purges go with the responses only, which Seawall sees if it is in front of this site', 'seawall' );
		}
	}

	/**
	 * Shows the settings page.
	 */
	public function page() {
		$page  = Seawall_Settings::page();
		$where = Seawall_Settings::source();
		$fixed = in_array( $where, array( 'constant', 'parameter', 'environment' ), true );
		?>
		<div class="wrap">
			<h1><?php esc_html_e( 'Seawall', 'seawall' ); ?></h1>
			<table class="form-table" role="presentation">
				<tr>
					<th scope="row"><?php esc_html_e( 'This request', 'seawall' ); ?></th>
					<td>
					<?php
					if ( Seawall_Settings::through_seawall() ) {
						/* translators: %s: a version. */
						echo esc_html( sprintf( __( 'came through Seawall %s, which runs this PHP.', 'seawall' ), Seawall_Settings::version() ) );
					} else {
						esc_html_e( 'was not made by Seawall itself. It may still have come through Seawall and another server.', 'seawall' );
					}
					?>
					</td>
				</tr>
				<tr>
					<th scope="row"><?php esc_html_e( 'Address for purges', 'seawall' ); ?></th>
					<td><code><?php echo esc_html( '' === Seawall_Settings::url() ? '-' : Seawall_Settings::url() ); ?></code>
						<p class="description"><?php echo esc_html( self::source_text() ); ?></p></td>
				</tr>
				<tr>
					<th scope="row"><?php esc_html_e( 'Secret', 'seawall' ); ?></th>
					<td><?php '' === Seawall_Settings::secret() ? esc_html_e( 'none', 'seawall' ) : esc_html_e( 'there is one', 'seawall' ); ?></td>
				</tr>
			</table>
			<?php if ( '' !== Seawall_Settings::url() ) : ?>
				<p>
					<a class="button" href="<?php echo esc_url( wp_nonce_url( admin_url( 'admin-post.php?action=' . self::TEST ), self::TEST ) ); ?>"><?php esc_html_e( 'Test the purge', 'seawall' ); ?></a>
				</p>
			<?php endif; ?>
			<?php if ( ! $fixed ) : ?>
				<form method="post" action="options.php">
					<?php settings_fields( self::PAGE ); ?>
					<h2><?php esc_html_e( 'Where Seawall is', 'seawall' ); ?></h2>
					<p><?php esc_html_e( 'Needed only where Seawall does not run PHP itself: behind nginx, Apache or in another container.', 'seawall' ); ?></p>
					<table class="form-table" role="presentation">
						<tr>
							<th scope="row"><label for="seawall-url"><?php esc_html_e( 'Address for purges', 'seawall' ); ?></label></th>
							<td><input id="seawall-url" class="regular-text code" type="text" inputmode="url" name="<?php echo esc_attr( Seawall_Settings::OPTION ); ?>[url]" value="<?php echo esc_attr( '' === $page['url'] ? $page['typed'] : $page['url'] ); ?>" placeholder="http://127.0.0.1/.seawall/wordpress"></td>
						</tr>
						<tr>
							<th scope="row"><label for="seawall-secret"><?php esc_html_e( 'Secret', 'seawall' ); ?></label></th>
							<td><input id="seawall-secret" class="regular-text" type="password" autocomplete="new-password" name="<?php echo esc_attr( Seawall_Settings::OPTION ); ?>[secret]" value="">
								<p class="description"><?php esc_html_e( 'The value of [wordpress] secret in seawall.toml. Empty: stays as it is.', 'seawall' ); ?></p>
								<label><input type="checkbox" name="<?php echo esc_attr( Seawall_Settings::OPTION ); ?>[forget]" value="1"> <?php esc_html_e( 'Forget the secret', 'seawall' ); ?></label></td>
						</tr>
					</table>
					<?php submit_button(); ?>
				</form>
			<?php endif; ?>
			<h2><?php esc_html_e( 'The last purges', 'seawall' ); ?></h2>
			<?php $this->log_table(); ?>
		</div>
		<?php
	}

	/**
	 * Shows the last purges.
	 */
	private function log_table() {
		$log = Seawall_Purger::last();
		if ( ! $log ) {
			echo '<p>', esc_html__( 'None yet.', 'seawall' ), '</p>';
			return;
		}
		echo '<table class="widefat striped"><thead><tr><th>', esc_html__( 'When', 'seawall' ), '</th><th>', esc_html__( 'Reason', 'seawall' ),
			'</th><th>', esc_html__( 'What', 'seawall' ), '</th><th>', esc_html__( 'Result', 'seawall' ), '</th></tr></thead><tbody>';
		foreach ( $log as $purge ) {
			$words = implode( ', ', (array) $purge['words'] );
			if ( $purge['count'] > count( (array) $purge['words'] ) ) {
				/* translators: 1: some tags, 2: how many more. */
				$words = sprintf( __( '%1$s and %2$d more', 'seawall' ), $words, $purge['count'] - count( (array) $purge['words'] ) );
			}
			$result = false === $purge['ok'] ? '<strong>' . esc_html( $purge['text'] ) . '</strong>' : esc_html( $purge['text'] );
			echo '<tr><td>', esc_html( wp_date( 'Y-m-d H:i:s', $purge['time'] ) ), '</td><td>', esc_html( Seawall_Purger::reason_in_words( (string) $purge['reason'] ) ),
				'</td><td><code>', esc_html( $words ), '</code></td><td>', $result, '</td></tr>'; // phpcs:ignore WordPress.Security.EscapeOutput.OutputNotEscaped -- It was escaped above.
		}
		echo '</tbody></table>';
	}
}
