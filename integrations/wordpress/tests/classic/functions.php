<?php
/**
 * A theme without blocks, for tests.
 *
 * @package Seawall
 */

add_action(
	'after_setup_theme',
	function () {
		register_nav_menus( array( 'main' => 'Main' ) );
		add_theme_support( 'title-tag' );
		add_theme_support( 'automatic-feed-links' );
	}
);
add_action(
	'widgets_init',
	function () {
		register_sidebar(
			array(
				'id'   => 'footer',
				'name' => 'Footer',
			)
		);
	}
);
