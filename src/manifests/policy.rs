//! What the API server lets through of what the account may ask.

mod cel;
