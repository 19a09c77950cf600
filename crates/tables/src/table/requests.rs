//! Requests and their answers.

use tcpwhy::report::{Exchange, Transfer};

use crate::column::{Column, int, text, time};
use crate::whole::{OfConnection, Whole, count, keys};

/// A request of a connection.
pub(super) struct Row<'a> {
    whole: &'a Whole<'a>,
    number: usize,
    exchange: &'a Exchange,
}

impl OfConnection for Row<'_> {
    fn whole(&self) -> &Whole<'_> {
        self.whole
    }
}

impl Row<'_> {
    fn transfer(&self, number: u64) -> Option<&Transfer> {
        self.whole.connection.transfers.get(usize::try_from(number).ok()?)
    }

    fn request(&self) -> Option<&Transfer> {
        self.transfer(self.exchange.request)
    }

    fn response(&self) -> Option<&Transfer> {
        self.transfer(self.exchange.response?)
    }
}

pub(super) fn rows<'a>(all: &'a [Whole<'a>]) -> Vec<Row<'a>> {
    let of = |whole: &'a Whole<'a>| {
        let numbered = whole.connection.exchanges.iter().enumerate();
        numbered.map(move |(number, exchange)| Row { whole, number, exchange })
    };
    all.iter().flat_map(of).collect()
}

pub(super) fn columns<'a>() -> Vec<Column<Row<'a>>> {
    let mut columns = keys();
    columns.extend(when());
    columns.extend([
        int("request_bytes", "Payload of the request.", |row: &Row<'_>| {
            count(row.request()?.bytes)
        }),
        int("response_bytes", "Payload of the answer; null if none came.", |row| {
            count(row.response()?.bytes)
        }),
        text("method", "HTTP/1 method, where it is in clear.", |row| {
            Some((&*row.exchange.http.as_ref()?.method).into())
        }),
        text("target", "HTTP/1 target without the query, where it is in clear.", |row| {
            Some((&*row.exchange.http.as_ref()?.target).into())
        }),
        int("status", "HTTP/1 status of the answer, where it is in clear.", |row| {
            row.exchange.http.as_ref()?.status.map(i64::from)
        }),
    ]);
    columns
}

fn when<'a>() -> [Column<Row<'a>>; 9] {
    [
        int("request", "Its number in the connection, from 0.", |row: &Row<'_>| {
            count(row.number as u64)
        }),
        int("request_transfer", "The transfer that is the request.", |row| {
            count(row.exchange.request)
        }),
        int("response_transfer", "The transfer that is the answer; null if none came.", |row| {
            row.exchange.response.and_then(count)
        }),
        time("start_time", "Its first byte; null where the input has no dates.", |row| {
            row.whole.at(row.request()?.start_ns)
        }),
        int("start_ns", "Its first byte.", |row| row.request().map(|request| request.start_ns)),
        int("think_ns", "Last request byte to first response byte, as seen at the tap.", |row| {
            row.exchange.think_ns
        }),
        int("server_think_ns", "The same less the round trip from the tap to the server.", |row| {
            row.exchange.server_think_ns
        }),
        int("first_byte_ns", "First request byte to first response byte.", |row| {
            row.exchange.first_byte_ns
        }),
        int("total_ns", "First request byte to the last ACK of the answer.", |row| {
            row.exchange.total_ns
        }),
    ]
}
