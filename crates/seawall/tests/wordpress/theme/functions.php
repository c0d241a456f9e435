<?php
add_action(
	'after_setup_theme',
	function () {
		add_theme_support( 'title-tag' );
		add_theme_support( 'widgets' );
		register_nav_menus( array( 'main' => 'Main' ) );
	}
);
add_action( 'widgets_init', fn() => register_sidebar( array( 'id' => 'beside', 'name' => 'Beside' ) ) );
