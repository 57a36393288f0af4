//! What untaint is tested against.
