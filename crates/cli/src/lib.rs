//! Command line of tcpwhy.
