<?php
// What every test's WordPress has: nobody there is too quick, and mail goes nowhere.
add_filter( 'comment_flood_filter', '__return_false' );
add_filter( 'wp_is_comment_flood', '__return_false' );
add_filter( 'pre_wp_mail', '__return_true' );
