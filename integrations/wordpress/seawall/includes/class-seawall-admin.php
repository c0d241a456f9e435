<?php
class Seawall_Admin { function __construct($p){} function watch(){} }
