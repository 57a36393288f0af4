//! What is shipped for clusters: as kustomize renders it, as the real API server takes it, and as the program itself
//! reads it.

mod forms;
mod image;
mod permissions;
mod pods;
mod render;
mod server;
