//! Stored responses: memory tier, collapsing, generations, purge
