<?php
class Seawall_Health { function __construct($p){} function watch(){} }
