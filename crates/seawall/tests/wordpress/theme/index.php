<!doctype html>
<html <?php language_attributes(); ?>>
<head><meta charset="utf-8"><?php wp_head(); ?></head>
<body <?php body_class( 'seaside' ); ?>>
<h1><?php bloginfo( 'name' ); ?></h1>
<?php wp_nav_menu( array( 'theme_location' => 'main' ) ); ?>
<?php
while ( have_posts() ) {
	the_post();
	printf( '<h2><a href="%s">%s</a></h2>', esc_url( get_permalink() ), esc_html( get_the_title() ) );
	the_content();
	if ( is_single() ) {
		comments_template();
	}
}
?>
<aside><?php dynamic_sidebar( 'beside' ); ?></aside>
<?php wp_footer(); ?>
</body>
</html>
