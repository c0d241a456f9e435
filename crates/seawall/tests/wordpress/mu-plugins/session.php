<?php
// A plugin that begins a session for everybody, as too many do.
add_action( 'init', fn() => session_start() );
