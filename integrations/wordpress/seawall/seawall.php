<?php
/**
 * Plugin Name:       Seawall
 * Description:       Tells the Seawall cache which posts, terms and lists each page shows, and what a change concerns. So pages can be stored for a day, and what you publish is live on the next request.
 * Version:           1.0.0
 * Requires at least: 5.9
 * Requires PHP:      7.4
 * Author:            The Seawall authors
 * License:           GPL-2.0-or-later
 * License URI:       https://www.gnu.org/licenses/gpl-2.0.html
 * Text Domain:       seawall
 * Domain Path:       /languages
 *
 * @package Seawall
 */

defined( 'ABSPATH' ) || exit;

define( 'SEAWALL_PLUGIN_VERSION', '1.0.0' );
define( 'SEAWALL_PLUGIN_FILE', __FILE__ );

require __DIR__ . '/includes/class-seawall-settings.php';
require __DIR__ . '/includes/class-seawall-names.php';
require __DIR__ . '/includes/class-seawall-tags.php';
require __DIR__ . '/includes/class-seawall-changes.php';
require __DIR__ . '/includes/class-seawall-purger.php';
require __DIR__ . '/includes/class-seawall-response.php';
require __DIR__ . '/includes/class-seawall-plugin.php';

Seawall_Plugin::start();
