//! Snapshots of a live host beside what ip, ss and tc say of the same, in namespaces of their own.

mod elsewhere;
mod queues;
mod routes;
mod sockets;
mod space;
