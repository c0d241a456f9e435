<?php
// A plugin with a form, which begins a session where the form is.
add_action( 'template_redirect', fn() => is_page( 'contact' ) && session_start() );
