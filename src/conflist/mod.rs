//! What a CNI configuration directory means to a container runtime. Pure: contents come in.
