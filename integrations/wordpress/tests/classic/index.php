<?php
/**
 * All pages of the theme.
 *
 * @package Seawall
 */

?><!DOCTYPE html>
<html <?php language_attributes(); ?>>
<head><?php wp_head(); ?></head>
<body <?php body_class(); ?>>
<h1><?php bloginfo( 'name' ); ?></h1>
<p><?php echo esc_html( get_theme_mod( 'motto', '' ) ); ?></p>
<?php
wp_nav_menu( array( 'theme_location' => 'main' ) );
while ( have_posts() ) {
	the_post();
	echo '<article ';
	post_class();
	echo '><h2><a href="', esc_url( get_permalink() ), '">', esc_html( get_the_title() ), '</a></h2>';
	echo '<p>', esc_html( get_the_date() ), ' ';
	the_author_posts_link();
	echo ' ';
	the_category( ', ' );
	the_tags();
	echo ' ', esc_html( get_comments_number() ), '</p>';
	if ( is_singular() ) {
		the_content();
		previous_post_link();
		next_post_link();
		comments_template();
	} else {
		the_excerpt();
	}
	echo '</article>';
}
the_posts_pagination();
dynamic_sidebar( 'footer' );
wp_footer();
?>
</body>
</html>
