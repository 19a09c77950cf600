//! Columns: a name, a type, what it means, and where its value comes from, in one place.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::builder::{Int64Builder, ListBuilder, MapBuilder, MapFieldNames, StringBuilder};
use arrow_array::{
    ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray, TimestampNanosecondArray,
};
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};

/// Nanoseconds and their name.
pub(crate) type Span<'a> = (Cow<'a, str>, i64);

/// One column of a table whose rows are made from `R`.
pub(crate) struct Column<R> {
    /// With the unit at its end where it has one: `_ns`, `_bytes`, `_bps`, `_segments`.
    pub(crate) name: &'static str,
    /// One sentence, and what an absent value means.
    pub(crate) doc: &'static str,
    pub(crate) value: Value<R>,
}

/// The type of a column, and how a row's value is found. An absent value is null.
pub(crate) enum Value<R> {
    /// Counts, spans, bytes and rates.
    Int(fn(&R) -> Option<i64>),
    /// A word or a sentence.
    Text(fn(&R) -> Option<Cow<'_, str>>),
    /// Whether.
    Flag(fn(&R) -> Option<bool>),
    /// An instant, UTC, in nanoseconds since 1970.
    Time(fn(&R) -> Option<i64>),
    /// Several words or sentences.
    Texts(fn(&R) -> Vec<Cow<'_, str>>),
    /// Nanoseconds by name.
    Spans(fn(&R) -> Vec<Span<'_>>),
}

impl<R> Column<R> {
    /// The field, documented in its own metadata.
    pub(crate) fn field(&self) -> Field {
        let is_nullable = !matches!(self.value, Value::Texts(_) | Value::Spans(_));
        let doc = HashMap::from([("description".to_owned(), self.doc.to_owned())]);
        Field::new(self.name, self.value.data_type(), is_nullable).with_metadata(doc)
    }
}

impl<R> Value<R> {
    fn data_type(&self) -> DataType {
        match self {
            Self::Int(_) => DataType::Int64,
            Self::Text(_) => DataType::Utf8,
            Self::Flag(_) => DataType::Boolean,
            Self::Time(_) => DataType::Timestamp(TimeUnit::Nanosecond, Some(UTC.into())),
            Self::Texts(_) => DataType::List(Arc::new(item())),
            Self::Spans(_) => DataType::Map(Arc::new(entries()), false),
        }
    }

    /// The values of all rows.
    fn gather(&self, rows: &[R]) -> ArrayRef {
        match self {
            Self::Int(of) => Arc::new(rows.iter().map(of).collect::<Int64Array>()),
            Self::Flag(of) => Arc::new(rows.iter().map(of).collect::<BooleanArray>()),
            Self::Text(of) => Arc::new(rows.iter().map(of).collect::<StringArray>()),
            Self::Time(of) => {
                let times: TimestampNanosecondArray = rows.iter().map(of).collect();
                Arc::new(times.with_timezone(UTC))
            }
            Self::Texts(of) => gather_texts(rows, *of),
            Self::Spans(of) => gather_spans(rows, *of),
        }
    }
}

fn gather_texts<R>(rows: &[R], of: fn(&R) -> Vec<Cow<'_, str>>) -> ArrayRef {
    let mut all = ListBuilder::new(StringBuilder::new()).with_field(item());
    for row in rows {
        for one in of(row) {
            all.values().append_value(one);
        }
        all.append(true);
    }
    Arc::new(all.finish())
}

fn gather_spans<R>(rows: &[R], of: fn(&R) -> Vec<Span<'_>>) -> ArrayRef {
    let [key, value] = KEY_AND_VALUE.map(str::to_owned);
    let names = MapFieldNames { entry: ENTRIES.to_owned(), key, value };
    let empty = MapBuilder::new(Some(names), StringBuilder::new(), Int64Builder::new());
    let mut all = empty.with_values_field(value_field());
    for row in rows {
        for (name, span) in of(row) {
            all.keys().append_value(name);
            all.values().append_value(span);
        }
        all.append(true).expect("as many names as spans");
    }
    Arc::new(all.finish())
}

/// The zone of instants.
const UTC: &str = "UTC";
/// The names that the format's specification gives to the parts of a map.
const ENTRIES: &str = "entries";
const KEY_AND_VALUE: [&str; 2] = ["key", "value"];

fn item() -> Field {
    Field::new("item", DataType::Utf8, false)
}

fn value_field() -> Field {
    Field::new(KEY_AND_VALUE[1], DataType::Int64, false)
}

fn entries() -> Field {
    let key = Field::new(KEY_AND_VALUE[0], DataType::Utf8, false);
    Field::new(ENTRIES, DataType::Struct(Fields::from(vec![key, value_field()])), false)
}

/// The schema of these columns.
pub(crate) fn schema<R>(columns: &[Column<R>], metadata: HashMap<String, String>) -> SchemaRef {
    let fields: Vec<_> = columns.iter().map(Column::field).collect();
    Arc::new(Schema::new_with_metadata(fields, metadata))
}

/// The rows as columns.
pub(crate) fn batch<R>(
    columns: &[Column<R>],
    schema: &SchemaRef,
    rows: &[R],
) -> Result<RecordBatch, arrow_schema::ArrowError> {
    let arrays = columns.iter().map(|column| column.value.gather(rows)).collect();
    RecordBatch::try_new(Arc::clone(schema), arrays)
}

/// A column of counts, spans, bytes or rates.
pub(crate) const fn int<R>(
    name: &'static str,
    doc: &'static str,
    value: fn(&R) -> Option<i64>,
) -> Column<R> {
    Column { name, doc, value: Value::Int(value) }
}

/// A column of words.
pub(crate) const fn text<R>(
    name: &'static str,
    doc: &'static str,
    value: fn(&R) -> Option<Cow<'_, str>>,
) -> Column<R> {
    Column { name, doc, value: Value::Text(value) }
}

/// A column of lists of words.
pub(crate) const fn texts<R>(
    name: &'static str,
    doc: &'static str,
    value: fn(&R) -> Vec<Cow<'_, str>>,
) -> Column<R> {
    Column { name, doc, value: Value::Texts(value) }
}

/// A column of yes and no.
pub(crate) const fn flag<R>(
    name: &'static str,
    doc: &'static str,
    value: fn(&R) -> Option<bool>,
) -> Column<R> {
    Column { name, doc, value: Value::Flag(value) }
}

/// A column of instants.
pub(crate) const fn time<R>(
    name: &'static str,
    doc: &'static str,
    value: fn(&R) -> Option<i64>,
) -> Column<R> {
    Column { name, doc, value: Value::Time(value) }
}

/// A column of spans by name.
pub(crate) const fn spans<R>(
    name: &'static str,
    doc: &'static str,
    value: fn(&R) -> Vec<Span<'_>>,
) -> Column<R> {
    Column { name, doc, value: Value::Spans(value) }
}
